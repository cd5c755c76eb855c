/*
 * Names of resources in a small file, one a line: what the Node is still to be told is removed, for
 * the daemon that follows. It waits for no disk (file_replace()): a kernel that dies may cost it.
 */
#ifndef SHIM_CLUSTER_REMOVED_FILE_H
#define SHIM_CLUSTER_REMOVED_FILE_H

#include <stddef.h>

#define REMOVED_FILE "removed-resources"

/* Calls `each` for those in the file at `path`, before it returns; what is no name of a resource is
 * left out. One that cannot be read is warned of, one that is not there has none. */
void removed_file_read(const char *path, void (*each)(void *user, const char *name), void *user);

/* These are in it from now on; the file of none is removed. 0 or a negative errno. */
int removed_file_write(const char *path, const char *const *names, size_t len)
    __attribute__((warn_unused_result));

#endif
