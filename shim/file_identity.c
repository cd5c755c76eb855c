#include "shim/file_identity.h"

#include <limits.h>
#include <stdio.h>

struct file_identity file_identity_of(const struct stat *st)
{
    return (struct file_identity){st->st_dev, st->st_ino,
                                  (uint64_t)st->st_mtim.tv_sec * 1000000000 +
                                      (uint64_t)st->st_mtim.tv_nsec};
}

struct file_identity file_identity_at(const char *dir, const char *name, mode_t type)
{
    char path[PATH_MAX];
    struct stat st;

    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path ||
        lstat(path, &st) < 0 || (st.st_mode & S_IFMT) != type)
        return (struct file_identity){0};
    return file_identity_of(&st);
}

bool file_identity_is(const struct file_identity *a, const struct file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->modified_ns == b->modified_ns;
}

bool file_identity_is_none(const struct file_identity *a)
{
    return file_identity_is(a, &(struct file_identity){0});
}
