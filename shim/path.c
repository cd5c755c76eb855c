#include "shim/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In front of the last slash. */
static int directory_len(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (int)(slash - path) : 0;
}

char *path_join(const char *dir, const char *name)
{
    char *path;

    if (asprintf(&path, "%s/%s", dir, name) < 0)
        abort();
    return path;
}

char *path_beside(const char *path, const char *name)
{
    char *other;

    if (asprintf(&other, "%.*s/%s", directory_len(path), path, name) < 0)
        abort();
    return other;
}
