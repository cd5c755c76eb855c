/*
 * Registration sockets that are none of ours, shown to the kubelet: each is a symlink in its
 * plugins_registry.
 *
 * Not a hard link: that cannot leave its file system, needs CAP_FOWNER for a socket of another user
 * (fs.protected_hardlinks), and would go on leading to a socket that its plugin has replaced. The
 * kubelet looks at what a symlink leads to, at its start and later
 * (pkg/kubelet/pluginmanager/pluginwatcher/plugin_watcher.go), and so finds the plugin that is
 * there, also one that has come while no daemon ran.
 *
 * A link's name is made of the socket's path, and stays while plugins replace their sockets: the
 * kubelet then does one thing after the other, as for a plugin that stands there itself. Of two
 * names it would let one go and take the other at the same time, and it lets go of a CSI driver by
 * the driver's name (pkg/volume/csi/csi_plugin.go, DeRegisterPlugin): the new one would be off the
 * node with the old. In another boot it is another name, since the kubelet's back-off is by name,
 * and before a plugin's first start what stands at its path may be dead.
 *
 * Which socket it was made for, of those that have stood at its path (file_identity.h), is in its
 * time of modification: so a daemon that starts leaves those that are right as they are, and the
 * kubelet hears of a socket that was replaced while no daemon ran.
 */
#ifndef SHIM_REGISTRY_KUBELET_LINK_H
#define SHIM_REGISTRY_KUBELET_LINK_H

#include "shim/kubelet_registry.h"

/* In front of sixteen hexadecimal digits and ".sock". */
#define KUBELET_LINK_PREFIX KUBELET_REGISTRY_LINK

/* Sees to it that `directory` has the link to the socket at `path`, of which `file` is open
 * (O_PATH). 1: it is made, 0: it was there; or a negative errno (-ENOENT: there is no such
 * directory). `boot_id`: this boot's, or "". */
int kubelet_link_make(const char *directory, const char *boot_id, const char *path, int file)
    __attribute__((warn_unused_result));

/* Removes it; one that is not there is no error. */
void kubelet_link_remove(const char *directory, const char *boot_id, const char *path);

/* Removes those that daemons before this one have left and that are of another boot, or lead to no
 * socket, or to another than they did. */
void kubelet_link_clean(const char *directory, const char *boot_id);

#endif
