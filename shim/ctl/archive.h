/*
 * An archive of small files that are made as it is written: POSIX's ustar (pax(1)), through gzip.
 */
#ifndef SHIM_CTL_ARCHIVE_H
#define SHIM_CTL_ARCHIVE_H

#include <stddef.h>

struct archive;

/* Makes `path` (0600), which must not be there; its files will be in `directory` (copied). NULL: it
 * cannot be made, and errno says why. */
struct archive *archive_new(const char *path, const char *directory);
/* Adds a file. Directory and name have 100 bytes together at most. */
void archive_add(struct archive *archive, const char *name, const void *bytes, size_t len);
/* Ends and frees it. 0, or -1: it could not be written, and is not whole. */
int archive_finish(struct archive *archive) __attribute__((warn_unused_result));

#endif
