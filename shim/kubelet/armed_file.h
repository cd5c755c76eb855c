/*
 * Who is armed, in a file that outlives the daemon: a line for each, "BOOT_ID PID STARTED DEVICE
 * INODE MODIFIED".
 *
 * The last three are kubelet.sock's from before; earlier releases wrote the first three only. It is
 * not to outlive the kernel, nor the kubelets in it.
 */
#ifndef SHIM_KUBELET_ARMED_FILE_H
#define SHIM_KUBELET_ARMED_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "shim/kubelet/kubelets.h"

/* All that are not open; none: removes the file. A failure is a line in the log. */
void armed_file_save(const char *path, const char *boot_id, const struct kubelets *kubelets);

/* Adds those of this boot that live, and that `is_kubelet` says are one; the others are dropped
 * from the file. */
void armed_file_restore(const char *path, const char *boot_id, struct kubelets *kubelets,
                        bool (*is_kubelet)(const void *user, pid_t pid), const void *user);

#endif
