/*
 * cri-device-shim --list-tokens: the containers whose devices the kubelet knows as our token only,
 * and the pods whose claims it has devices for by the shim's own DRA driver.
 *
 * Without the shim in front of the runtime the kubelet would make them anew with that annotation,
 * or with names of CDI devices that there are not, and without a device, and not notice; so whoever
 * takes the shim away asks first.
 */
#ifndef SHIM_TOKEN_LIST_H
#define SHIM_TOKEN_LIST_H

/*
 * Prints a line for each in the kubelet's checkpoint below `kubelet_plugin_dir`: pod UID,
 * container, resource and the devices' ids with commas between them, separated by tabs; control
 * characters are printed as '?'. The file is an upper bound, see kubelet_checkpoint.h. And one for
 * each device of a claim in the file beside `kubelet_registry_dir` (dra/kubelet_claims.h), with
 * "claim NAMESPACE/NAME" in the place of a container; of a claim whose devices the kubelet has not
 * yet the driver's name is its resource, and there is no device. 0, also if there is no such file;
 * -1 with the reason on stderr.
 */
int token_list_print(const char *kubelet_plugin_dir, const char *kubelet_registry_dir)
    __attribute__((warn_unused_result));

#endif
