/*
 * Registration sockets that are none of ours, shown to the kubelet: each is a symlink in its
 * plugins_registry.
 *
 * Not a hard link: that cannot leave its file system, needs CAP_FOWNER for a socket of another user
 * (fs.protected_hardlinks), and would go on leading to a socket that its plugin has replaced. The
 * kubelet looks at what a symlink leads to, at its start and later
 * (pkg/kubelet/pluginmanager/pluginwatcher/plugin_watcher.go), and so finds the plugin that is there,
 * also one that has come while no daemon ran.
 *
 * A link's name is made of the socket's path and of which file that is (file_identity.h). So whoever
 * made it knows it again, a daemon that starts leaves those that are right as they are, and a socket
 * that takes another's place gets a new name, which the kubelet dials at once: its back-off is by name,
 * and it sees nothing of what changes behind a name.
 */
#ifndef SHIM_REGISTRY_KUBELET_LINK_H
#define SHIM_REGISTRY_KUBELET_LINK_H

/* In front of sixteen hexadecimal digits and ".sock". */
#define KUBELET_LINK_PREFIX "cri-device-shim-"

/* Sees to it that `directory` has the link to the socket at `path`, of which `file` is open (O_PATH).
 * 1: it is made, 0: it was there; or a negative errno (-ENOENT: there is no such directory). */
int kubelet_link_make(const char *directory, const char *path, int file)
    __attribute__((warn_unused_result));

/* Removes it; one that is not there is no error. */
void kubelet_link_remove(const char *directory, const char *path, int file);

/* Removes those that daemons before this one have left and that lead to no socket, or to another than
 * they did. */
void kubelet_link_clean(const char *directory);

#endif
