/*
 * The files of a store, and the directory they lie in.
 *
 * All functions but store_file_path() block on the disk; those that give an int give 0, or -1 with
 * errno set.
 */
#ifndef DEVICEMGR_STORE_STORE_FILE_H
#define DEVICEMGR_STORE_STORE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* The checkpoint's name in its directory. */
#define STORE_FILE "checkpoint.db"
/* With the NUL; leaves room for every suffix. */
#define STORE_PATH_BYTES_MAX (PATH_MAX - 128)
#define STORE_ASIDE_BYTES_MAX (PATH_MAX - 32)
/* How many files that were set aside as one kind are kept: no disk is filled by a fault that comes
 * again and again. */
#define STORE_ASIDE_MAX 8

/* The path of the checkpoint in `dir`. -1, ENAMETOOLONG, if no checkpoint can be there, since it
 * would not fit; `path` is untouched then. */
int store_file_path(const char *dir, char path[STORE_PATH_BYTES_MAX])
    __attribute__((warn_unused_result));
/* Makes the directory, given absolutely, and those above it, where they are missing. */
int store_file_make_dir(const char *dir);
/* What was made, renamed or removed in it is so after a power loss, too. */
int store_file_sync_dir(const char *dir);
void store_file_suffixed(char out[PATH_MAX], const char *path, const char *suffix);
/* Whether there is one: 1, 0, or -1 with errno if it cannot be told, as of a disk that fails. */
int store_file_find(const char *path);
/* Also false if it cannot be told; errno says why not. */
bool store_file_exists(const char *path);
/* How many bytes the file has, and what SQLite keeps beside it; what cannot be told counts as none.
 */
uint64_t store_file_bytes(const char *path);
/* Which file had a name, how long it was, and when it was written; `inode` 0: none had it. */
struct store_file_mark {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec written;
};

/* Where that cannot be told, as of a disk that fails, *mark stays as it is. */
void store_file_mark(const char *path, struct store_file_mark *mark);
/* Whether it is still that one, or that cannot be told, and nobody has made it shorter: what SQLite
 * has open it never does. */
bool store_file_is(const char *path, const struct store_file_mark *mark);
/* Of one that nobody writes: another disk's may have its numbers. */
bool store_file_is_as_it_was(const char *path, const struct store_file_mark *mark);
/* A name beside `path` that is free, with `kind` and a time stamp. */
void store_file_name_aside(const char *path, const char *kind, char base[STORE_ASIDE_BYTES_MAX]);
/* Moves the file and what SQLite keeps beside it out of the way, under names by which SQLite still
 * finds them together: those of `base`, which is filled. Of more than STORE_ASIDE_MAX of that kind
 * the oldest of those from before are removed; a journal without its file counts as one. */
int store_file_set_aside(const char *dir, const char *path, const char *kind,
                         char base[STORE_ASIDE_BYTES_MAX]);

#endif
