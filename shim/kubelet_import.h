/*
 * cri-device-shim --import-kubelet-checkpoint: what the kubelet's device manager knows becomes our
 * own state, once, before the shim takes over a node.
 */
#ifndef SHIM_KUBELET_IMPORT_H
#define SHIM_KUBELET_IMPORT_H

/*
 * Verifies the kubelet's checkpoint `path` and adds its resources and allocations to the checkpoint
 * in `state_dir`, all of them in one commit or none; rows that are there already stay as they are.
 * Says on stdout what was imported, on stderr what went wrong. The daemon must not run: its lock on
 * the checkpoint is respected. Blocks on the disk. 0, or -1 with nothing changed.
 *
 * The kubelet does not tell in which boot a plugin gave an allocation its options. They count as
 * given in this one if the kubelet wrote the file in this one, which is its own rule (it never asks
 * again); else they are asked for anew.
 */
int import_kubelet_checkpoint(const char *path, const char *state_dir)
    __attribute__((warn_unused_result));

#endif
