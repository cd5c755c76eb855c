/*
 * Which file stands under a name, to tell it from a later one.
 *
 * A file system may give the number of an inode away again at once, so the time counts, too: of the
 * content, since an owner may change the mode or label of what it made.
 */
#ifndef SHIM_FILE_IDENTITY_H
#define SHIM_FILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* All zero: there is none. */
struct file_identity {
    uint64_t device;
    uint64_t inode;
    uint64_t modified_ns;
};

/* Of `name` in `dir`, if it is of that type (S_IFSOCK ...); none else. No symlink is followed. */
struct file_identity file_identity_at(const char *dir, const char *name, mode_t type);
/* Of what was looked at. */
struct file_identity file_identity_of(const struct stat *st);

bool file_identity_is(const struct file_identity *a, const struct file_identity *b);
bool file_identity_is_none(const struct file_identity *a);

#endif
