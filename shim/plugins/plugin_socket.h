/*
 * A plugin's socket, found sound and connected to.
 *
 * A plugin's container has the directory, and may put another file, or a symlink, under the name at
 * any moment. So the file is opened once: what is looked at is what is connected to.
 */
#ifndef SHIM_PLUGINS_PLUGIN_SOCKET_H
#define SHIM_PLUGINS_PLUGIN_SOCKET_H

#include <sys/types.h>

/*
 * A descriptor connected to who listens at `path`, whose last part is not followed where it leads.
 * The file must be a socket, owned and served by root or by `uid`. Or a negative errno, with
 * `*wrong` a text that says why it never will be, or NULL: it may be there, or be served, later.
 */
int plugin_socket_connect(const char *path, uid_t uid, const char **wrong)
    __attribute__((warn_unused_result));

#endif
