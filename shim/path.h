/*
 * Paths put together. Each is the caller's to free; out of memory ends the process (must.h).
 */
#ifndef SHIM_PATH_H
#define SHIM_PATH_H

/* "<dir>/<name>" */
char *path_join(const char *dir, const char *name) __attribute__((warn_unused_result));

/* `name` in the directory of the absolute `path`. */
char *path_beside(const char *path, const char *name) __attribute__((warn_unused_result));

#endif
