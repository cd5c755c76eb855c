/*
 * Small files, read and written as a whole.
 */
#ifndef SHIM_FILE_H
#define SHIM_FILE_H

#include <stddef.h>

/* Reads `bytes` of `fd`, or as many as there are, into `out`. 0 and *len, or a negative errno. */
int file_read(int fd, void *out, size_t bytes, size_t *len) __attribute__((warn_unused_result));

/* Writes all of it to `fd`, which blocks. 0, or a negative errno: a part of it may be written. */
int file_write(int fd, const void *bytes, size_t len) __attribute__((warn_unused_result));

/* The text of a file that fits `text` with a NUL behind it; of a longer one its beginning. Not
 * through a symlink, nor waiting for a pipe. The length, or a negative errno. */
int file_read_text(const char *path, char *text, size_t bytes) __attribute__((warn_unused_result));

/* Makes `path` (0600) have this content, or leaves it as it is: written beside it, then renamed.
 * What is in the way beside it, "<path>.new", goes. Not synced: it is to outlive the process, not
 * the kernel, so that it waits for no disk. 0 or a negative errno. */
int file_replace(const char *path, const void *bytes, size_t len)
    __attribute__((warn_unused_result));
/* The same for what is to outlive the kernel, too: they wait for the disk, for the file and for its
 * directory; if only the latter fails, it is done, and may be undone by a power loss. `path` is
 * absolute. One that is not there need not be removed. */
int file_replace_synced(const char *path, const void *bytes, size_t len)
    __attribute__((warn_unused_result));
int file_remove_synced(const char *path) __attribute__((warn_unused_result));

#endif
