/*
 * Shared libraries that are loaded when they are needed: with all that they link themselves some
 * take MiB, which a process that never calls them does not.
 */
#ifndef SHIM_LIBRARY_H
#define SHIM_LIBRARY_H

#include <stddef.h>

/* One of a library's functions, and where in the caller's table of them its pointer belongs. */
struct library_function {
    const char *name;
    size_t offset;
};

/* Loads `file` ("libx.so.1") for the life of the process, and fills `table`, which is the caller's.
 * NULL, or why there is none of it, static or until the next call: the table is not to be used
 * then. */
const char *library_load(const char *file, const struct library_function *functions, size_t len,
                         void *table) __attribute__((warn_unused_result));

/* Lets go of the pages of all programs' and libraries' files that nobody has written to. Loading
 * them, and whatever a process does only once, has touched many that it never needs again; of the
 * others the kernel maps one as soon as it is wanted. */
void library_let_go(void);

#endif
