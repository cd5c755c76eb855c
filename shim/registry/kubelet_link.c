#include "shim/registry/kubelet_link.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/file_identity.h"
#include "shim/hash.h"

#define NAME_BYTES_MAX (sizeof KUBELET_LINK_PREFIX + 16 + 5)
/* The kubelet does not look at names that begin with a dot. */
#define UNFINISHED "." KUBELET_LINK_PREFIX "new"

static void name_of(const char *boot_id, const char *path, char out[static NAME_BYTES_MAX])
{
    snprintf(out, NAME_BYTES_MAX, KUBELET_LINK_PREFIX "%016" PRIx64 ".sock",
             hash_text(hash_text(HASH_BEGIN, boot_id), path));
}

/* Seconds that every file system can keep. */
static time_t mark_of(const struct stat *socket)
{
    struct file_identity is = file_identity_of(socket);

    return (time_t)(hash_bytes(hash_bytes(HASH_BEGIN, &is.inode, sizeof is.inode), &is.modified_ns,
                               sizeof is.modified_ns) &
                    INT32_MAX);
}

static bool is_marked(int directory, const char *name, const struct stat *socket)
{
    struct stat st;

    return fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) &&
           st.st_mtime == mark_of(socket);
}

static int mark(int directory, const char *name, const struct stat *socket)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = mark_of(socket)}};

    return utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int open_directory(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* Whether the symlink `name` leads to `path`. */
static bool leads_to(int directory, const char *name, const char *path)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(directory, name, target, sizeof target);

    return len >= 0 && (size_t)len == strlen(path) && memcmp(target, path, (size_t)len) == 0;
}

/* It is under its name in one step: the kubelet takes that for a new one, also where one was. */
static int make_in(int directory, const char *boot_id, const char *path, int file)
{
    char name[NAME_BYTES_MAX];
    struct stat st;
    int result;

    if (fstat(file, &st) < 0)
        return -errno;
    name_of(boot_id, path, name);
    if (leads_to(directory, name, path) && is_marked(directory, name, &st))
        return 0;
    unlinkat(directory, UNFINISHED, 0);
    if (symlinkat(path, directory, UNFINISHED) < 0)
        return -errno;
    result = mark(directory, UNFINISHED, &st);
    if (!result && renameat(directory, UNFINISHED, directory, name) < 0)
        result = -errno;
    if (result) {
        unlinkat(directory, UNFINISHED, 0);
        return result;
    }
    return 1;
}

int kubelet_link_make(const char *directory, const char *boot_id, const char *path, int file)
{
    int fd = open_directory(directory), result;

    if (fd < 0)
        return fd;
    result = make_in(fd, boot_id, path, file);
    close(fd);
    return result;
}

void kubelet_link_remove(const char *directory, const char *boot_id, const char *path)
{
    char name[NAME_BYTES_MAX];
    int fd = open_directory(directory);

    if (fd < 0)
        return;
    name_of(boot_id, path, name);
    unlinkat(fd, name, 0);
    close(fd);
}

/* Whether a link of ours leads to the socket that it was made for, and is of this boot. */
static bool is_right(int directory, const char *boot_id, const char *name)
{
    char target[PATH_MAX], expected[NAME_BYTES_MAX];
    ssize_t len = readlinkat(directory, name, target, sizeof target - 1);
    struct stat st;

    if (len < 0)
        return errno == EINVAL; /* no symlink, and so none of ours */
    target[len] = '\0';
    if (stat(target, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    name_of(boot_id, target, expected);
    return strcmp(name, expected) == 0 && is_marked(directory, name, &st);
}

void kubelet_link_clean(const char *directory, const char *boot_id)
{
    DIR *names = opendir(directory);
    const struct dirent *entry;

    while (names && (entry = readdir(names))) {
        if (strncmp(entry->d_name, KUBELET_LINK_PREFIX, strlen(KUBELET_LINK_PREFIX)) == 0 &&
            !is_right(dirfd(names), boot_id, entry->d_name))
            unlinkat(dirfd(names), entry->d_name, 0);
    }
    if (names)
        closedir(names);
}
