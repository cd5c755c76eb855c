/*
 * Whether there are plugins that were told they are registered and that the checkpoint does not
 * know yet: a file, beside the CRI socket, for as long as that is so.
 *
 * A plugin registers when it starts, and again when kubelet.sock is made anew, or its own socket is
 * removed; these outlive the process. So one that finds the mark of a process before it does both,
 * or such a plugin would be forgotten for good. In a directory that does not outlive the boot, as
 * the sockets do not.
 */
#ifndef SHIM_CORE_REGISTERED_MARK_H
#define SHIM_CORE_REGISTERED_MARK_H

#include <stdbool.h>

/* Embedded in its owner; private. */
struct registered_mark {
    char *path;
    bool is_set;
};

/* Beside the file `listen`; as a process before this one left it. */
void registered_mark_init(struct registered_mark *mark, const char *listen);
/* The file stays as it is. */
void registered_mark_fini(struct registered_mark *mark);

bool registered_mark_is_set(const struct registered_mark *mark);
/* Before the plugin is told. A file that cannot be made is done without, as without a directory
 * that can be written there is no socket that would outlive the process either. */
void registered_mark_set(struct registered_mark *mark);
void registered_mark_clear(struct registered_mark *mark);

#endif
