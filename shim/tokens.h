/*
 * cri-device-shim --list-tokens: the containers whose devices the kubelet knows as our token only.
 *
 * Without the shim in front of the runtime the kubelet would make them anew with that annotation
 * and without a device, and not notice; so whoever takes the shim away asks first.
 */
#ifndef SHIM_TOKENS_H
#define SHIM_TOKENS_H

/*
 * Prints a line for each in the kubelet's checkpoint below `kubelet_plugin_dir`: pod UID,
 * container, resource and the devices' ids with commas between them, separated by tabs; control
 * characters are printed as '?'. The file is an upper bound, see kubelet_checkpoint.h. 0, also if
 * there is no such file; -1 with the reason on stderr.
 */
int tokens_list(const char *kubelet_plugin_dir) __attribute__((warn_unused_result));

#endif
