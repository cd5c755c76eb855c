/*
 * Names of the resources' sockets.
 */
#ifndef SHIM_BRIDGE_NAMES_H
#define SHIM_BRIDGE_NAMES_H

/* Where the sockets are, in the kubelet's directory: its clean-up at its start spares
 * sub-directories (removeContents in pkg/kubelet/cm/devicemanager/manager.go). */
#define NAMES_SUBDIRECTORY "cri-device-shim"

/*
 * The endpoint to register, relative to the kubelet's directory `dir`:
 * "cri-device-shim/vendor.com_gpu.sock". Where that would not fit a socket address, the name is cut
 * and a hash of the whole takes the end's place. Different for different resources, always the same
 * for one. The caller frees it; NULL if `dir` leaves no room even so.
 */
char *name_endpoint(const char *dir, const char *resource);

/*
 * A socket's name in the directory `dir`: `prefix`, `name`, `suffix`, with `name` cut as above
 * where it would not fit, and '_' for each '/'. The caller frees it; NULL if `dir` leaves no room.
 */
char *name_socket(const char *dir, const char *prefix, const char *name, const char *suffix);

#endif
