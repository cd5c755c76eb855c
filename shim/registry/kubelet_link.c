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

static void name_of(const char *path, const struct stat *st, char out[static NAME_BYTES_MAX])
{
    struct file_identity is = file_identity_of(st);
    uint64_t hash = hash_word(hash_word(HASH_BEGIN, is.inode), is.modified_ns);

    snprintf(out, NAME_BYTES_MAX, KUBELET_LINK_PREFIX "%016" PRIx64 ".sock", hash_text(hash, path));
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

static int make_in(int directory, const char *path, int file)
{
    char name[NAME_BYTES_MAX];
    struct stat st;

    if (fstat(file, &st) < 0)
        return -errno;
    name_of(path, &st, name);
    if (leads_to(directory, name, path))
        return 0;
    unlinkat(directory, name, 0);
    return symlinkat(path, directory, name) < 0 ? -errno : 1;
}

int kubelet_link_make(const char *directory, const char *path, int file)
{
    int fd = open_directory(directory), result;

    if (fd < 0)
        return fd;
    result = make_in(fd, path, file);
    close(fd);
    return result;
}

void kubelet_link_remove(const char *directory, const char *path, int file)
{
    char name[NAME_BYTES_MAX];
    struct stat st;
    int fd;

    if (fstat(file, &st) < 0)
        return;
    fd = open_directory(directory);
    if (fd < 0)
        return;
    name_of(path, &st, name);
    unlinkat(fd, name, 0);
    close(fd);
}

/* Whether a link of ours leads to the socket that it was made for. */
static bool is_right(int directory, const char *name)
{
    char target[PATH_MAX], expected[NAME_BYTES_MAX];
    ssize_t len = readlinkat(directory, name, target, sizeof target - 1);
    struct stat st;

    if (len < 0)
        return errno == EINVAL; /* no symlink, and so none of ours */
    target[len] = '\0';
    if (stat(target, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    name_of(target, &st, expected);
    return strcmp(name, expected) == 0;
}

void kubelet_link_clean(const char *directory)
{
    DIR *names = opendir(directory);
    const struct dirent *entry;

    while (names && (entry = readdir(names))) {
        if (strncmp(entry->d_name, KUBELET_LINK_PREFIX, strlen(KUBELET_LINK_PREFIX)) == 0 &&
            !is_right(dirfd(names), entry->d_name))
            unlinkat(dirfd(names), entry->d_name, 0);
    }
    if (names)
        closedir(names);
}
