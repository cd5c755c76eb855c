#include "shim/directory.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static int make_one(const char *path, mode_t mode)
{
    struct stat st;

    if (mkdir(path, mode) == 0)
        return chmod(path, mode) < 0 ? -errno : 0; /* mkdir(2) obeys the umask */
    if (errno != EEXIST)
        return -errno;
    if (stat(path, &st) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int directory_make(const char *path, mode_t mode)
{
    size_t len = strlen(path);
    char piece[PATH_MAX];
    int r = 0;

    if (len >= sizeof piece)
        return -ENAMETOOLONG;
    for (size_t i = 1; i <= len && r == 0; i++) {
        if (i < len && path[i] != '/')
            continue;
        memcpy(piece, path, i);
        piece[i] = '\0';
        r = make_one(piece, mode);
    }
    return r;
}
