#include "devicemgr/store/store_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A checkpoint has these: its own, and those that SQLite keeps beside it. */
static const char *const PARTS[] = {"", "-wal", "-shm", "-journal"};
#define PARTS_LEN (sizeof PARTS / sizeof *PARTS)

#define DIR_MODE 0700
#define PARENT_MODE 0755 /* less the umask */

int store_file_path(const char *dir, char path[STORE_PATH_BYTES_MAX])
{
    if (strlen(dir) + sizeof "/" STORE_FILE > STORE_PATH_BYTES_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    snprintf(path, STORE_PATH_BYTES_MAX, "%s/" STORE_FILE, dir);
    return 0;
}

int store_file_sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc, saved;

    if (fd < 0)
        return -1;
    rc = fsync(fd);
    saved = errno;
    close(fd);
    errno = saved;
    return rc;
}

/* A directory that was just made is on the disk once its parent is. */
static int make_one(char *path, mode_t mode)
{
    char *slash = strrchr(path, '/');
    int rc;

    if (mkdir(path, mode) < 0)
        return errno == EEXIST ? 0 : -1;
    *slash = '\0';
    rc = store_file_sync_dir(slash == path ? "/" : path);
    *slash = '/';
    return rc;
}

/* What is above it may be others' as well (/var/lib), and is not to be closed to them because we
 * came first. */
int store_file_make_dir(const char *dir)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s", dir);
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        if (make_one(path, PARENT_MODE) < 0)
            return -1;
        *p = '/';
    }
    return make_one(path, DIR_MODE);
}

void store_file_suffixed(char out[PATH_MAX], const char *path, const char *suffix)
{
    snprintf(out, PATH_MAX, "%s%s", path, suffix);
}

int store_file_find(const char *path)
{
    if (access(path, F_OK) == 0)
        return 1;
    return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
}

bool store_file_exists(const char *path)
{
    return store_file_find(path) > 0;
}

uint64_t store_file_bytes(const char *path)
{
    uint64_t bytes = 0;
    char part[PATH_MAX];
    struct stat st;

    for (size_t i = 0; i < PARTS_LEN; i++) {
        store_file_suffixed(part, path, PARTS[i]);
        if (stat(part, &st) == 0)
            bytes += (uint64_t)st.st_size;
    }
    return bytes;
}

void store_file_mark(const char *path, struct store_file_mark *mark)
{
    struct stat st;

    if (stat(path, &st) == 0)
        *mark = (struct store_file_mark){st.st_dev, st.st_ino, st.st_size, st.st_mtim};
    else if (errno == ENOENT || errno == ENOTDIR)
        *mark = (struct store_file_mark){0};
}

bool store_file_is(const char *path, const struct store_file_mark *mark)
{
    struct store_file_mark now = *mark;

    store_file_mark(path, &now);
    return now.device == mark->device && now.inode == mark->inode && now.bytes >= mark->bytes;
}

bool store_file_is_as_it_was(const char *path, const struct store_file_mark *mark)
{
    struct store_file_mark now = *mark;

    store_file_mark(path, &now);
    return store_file_is(path, mark) && now.written.tv_sec == mark->written.tv_sec &&
           now.written.tv_nsec == mark->written.tv_nsec;
}

void store_file_name_aside(const char *path, const char *kind, char base[STORE_ASIDE_BYTES_MAX])
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    int n = 1;

    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    do {
        /* A second one within the second gets a number. */
        if (n == 1)
            snprintf(base, STORE_ASIDE_BYTES_MAX, "%s.%s-%s", path, kind, stamp);
        else
            snprintf(base, STORE_ASIDE_BYTES_MAX, "%s.%s-%s.%d", path, kind, stamp, n);
        n++;
    } while (store_file_exists(base));
}

/* Which part of what was set aside has this name: it has a '-' before its time. */
static size_t part_of(const char *name)
{
    const char *last = strrchr(name, '-');

    for (size_t i = 1; i < PARTS_LEN; i++) {
        if (strcmp(last, PARTS[i]) == 0)
            return i;
    }
    return 0;
}

/* Whether it is the first that is there of what was set aside together, whose name is `base`: a
 * journal may be without its file. */
static bool is_first(const char *dir, const char *name, char base[NAME_MAX + 1])
{
    size_t part = part_of(name);
    char path[PATH_MAX];

    snprintf(base, NAME_MAX + 1, "%.*s", (int)(strlen(name) - strlen(PARTS[part])), name);
    for (size_t i = 0; i < part; i++) {
        snprintf(path, sizeof path, "%s/%s%s", dir, base, PARTS[i]);
        if (store_file_exists(path))
            return false;
    }
    return true;
}

/* How many there are whose names begin so; `oldest` is that of one of them, but not `last`: that
 * was set aside just now, whatever the clock said. */
static size_t count_aside(const char *dir, const char *prefix, const char *last,
                          char oldest[NAME_MAX + 1])
{
    DIR *entries = opendir(dir);
    char base[NAME_MAX + 1];
    size_t count = 0;

    *oldest = '\0';
    if (!entries)
        return 0;
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
            !is_first(dir, entry->d_name, base))
            continue;
        count++;
        if (strcmp(base, last) == 0)
            continue;
        if (*oldest == '\0' || strverscmp(base, oldest) < 0)
            snprintf(oldest, NAME_MAX + 1, "%s", base);
    }
    closedir(entries);
    return count;
}

static void remove_parts(const char *dir, const char *base)
{
    char path[PATH_MAX];

    for (size_t i = PARTS_LEN; i-- > 0;) {
        snprintf(path, sizeof path, "%s/%s%s", dir, base, PARTS[i]);
        unlink(path);
    }
}

/* Until it does not help any more. */
static void remove_oldest_aside(const char *dir, const char *kind, const char *last)
{
    char prefix[64], oldest[NAME_MAX + 1];
    size_t count, before = SIZE_MAX;

    snprintf(prefix, sizeof prefix, STORE_FILE ".%s-", kind);
    while ((count = count_aside(dir, prefix, last, oldest)) > STORE_ASIDE_MAX && count < before) {
        remove_parts(dir, oldest);
        before = count;
    }
}

int store_file_set_aside(const char *dir, const char *path, const char *kind,
                         char base[STORE_ASIDE_BYTES_MAX])
{
    char from[PATH_MAX], to[PATH_MAX];

    store_file_name_aside(path, kind, base);
    for (size_t i = 0; i < PARTS_LEN; i++) {
        store_file_suffixed(from, path, PARTS[i]);
        store_file_suffixed(to, base, PARTS[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            return -1;
    }
    remove_oldest_aside(dir, kind, strrchr(base, '/') + 1);
    return store_file_sync_dir(dir);
}
