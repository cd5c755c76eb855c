#include "shim/registry/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "shim/boot_clock.h"
#include "shim/directory.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/registry/limits.h"
#include "shim/stopping.h"
#include "shim/watch.h"

#define DIRECTORY_MODE 0755

struct one {
    UT_hash_handle hh; /* by path */
    char *path;
    int file;
    dev_t device;
    ino_t inode;
    struct timespec made; /* or changed since */
    uint64_t seen;        /* the look that saw it last */
    void *told;           /* NULL: not yet */
};

/* A directory whose name begins with a dot, and which was there at the start. */
struct dotted {
    SLIST_ENTRY(dotted) entry;
    char *path;
    ino_t inode;
};

struct sockets {
    uv_loop_t *loop;
    struct sockets_place place;
    const struct sockets_ops *ops;
    void *user;
    struct watch watch;
    uv_timer_t timer; /* of the next look */
    struct one *all;
    SLIST_HEAD(, dotted) dotted;
    uint64_t look;        /* its number */
    uint64_t not_before;  /* the next, on the loop's clock */
    unsigned directories; /* of this look */
    unsigned names;
    int error;           /* of the last look */
    uint64_t failing_ms; /* since when none was a success; only with `error` */
    int shortage;        /* of this look: why not all of it was seen, so that more may be there; an
                          * errno */
    bool unwatched;      /* something is not told by inotify */
    bool full;           /* a socket was left out, for which another may go */
    bool too_many;       /* something was left out, */
    bool told_many;      /* and the log says so */
    struct stopping stopping;
};

/* ---- a look ---- */

static void one_free(struct sockets *s, struct one *one)
{
    HASH_DEL(s->all, one);
    close(one->file);
    free(one->path);
    free(one);
}

static void one_went(struct sockets *s, struct one *one)
{
    void *told = one->told;

    one->told = NULL;
    if (told)
        s->ops->went(s->user, told);
    one_free(s, one);
}

/* `file` is taken. */
static void note_new(struct sockets *s, const char *path, int file, const struct stat *st)
{
    struct one *one = must(calloc(1, sizeof *one));

    one->path = must(strdup(path));
    one->file = file;
    one->device = st->st_dev;
    one->inode = st->st_ino;
    one->made = st->st_ctim;
    one->seen = s->look;
    HASH_ADD_KEYPTR(hh, s->all, one->path, strlen(one->path), one);
}

/* Something could not be opened. If that is for want of what we must have ourselves, it may be
 * there all the same. */
static void note_unseen(struct sockets *s, int error)
{
    if (error == EMFILE || error == ENFILE || error == ENOMEM)
        s->shortage = error;
}

static void note_left_out(struct sockets *s)
{
    s->too_many = true;
    s->full = s->ops->dead != NULL;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Whether there is room for one that was made then, for which the oldest that nobody serves
 * goes. */
static bool make_room(struct sockets *s, const struct timespec *made)
{
    struct one *dead = NULL;

    if (HASH_COUNT(s->all) < REGISTRY_SOCKETS_MAX)
        return true;
    for (struct one *one = s->all; one && s->ops->dead; one = one->hh.next) {
        if (one->told && is_before(&one->made, dead ? &dead->made : made) &&
            s->ops->dead(s->user, one->told))
            dead = one;
    }
    if (!dead)
        return false;
    one_went(s, dead);
    note_left_out(s);
    return true;
}

/* What stands at `path` may be a socket. */
static void look_at_file(struct sockets *s, int directory, const char *name, const char *path)
{
    struct stat st;
    struct one *one;
    int file = openat(directory, name, O_PATH | O_CLOEXEC);

    if (file < 0) {
        note_unseen(s, errno);
        return;
    }
    if (fstat(file, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        close(file);
        return;
    }
    HASH_FIND_STR(s->all, path, one);
    if (one && one->device == st.st_dev && one->inode == st.st_ino) {
        one->seen = s->look;
        close(file);
        return;
    }
    if (one)
        one_went(s, one);
    if (make_room(s, &st.st_ctim)) {
        note_new(s, path, file, &st);
    } else {
        note_left_out(s);
        close(file);
    }
}

static struct dotted *dotted_find(struct sockets *s, const char *path)
{
    struct dotted *d;

    SLIST_FOREACH(d, &s->dotted, entry)
    {
        if (strcmp(d->path, path) == 0)
            return d;
    }
    return NULL;
}

/* Whether what lies in this directory, whose name begins with a dot, counts. */
static bool dotted_counts(struct sockets *s, const char *path, ino_t inode)
{
    struct dotted *d = dotted_find(s, path);

    if (s->look > 1 || s->directories >= REGISTRY_DIRECTORIES_MAX)
        return d && d->inode == inode;
    d = must(calloc(1, sizeof *d));
    d->path = must(strdup(path));
    d->inode = inode;
    SLIST_INSERT_HEAD(&s->dotted, d, entry);
    return true;
}

static int look_into(struct sockets *s, const char *path, unsigned depth);

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than REGISTRY_DEPTH_MAX */
static void look_at_name(struct sockets *s, int directory, const struct dirent *entry,
                         const char *above, unsigned depth)
{
    bool dot = entry->d_name[0] == '.';
    struct stat st = {.st_ino = entry->d_ino};
    char path[PATH_MAX];
    bool inside = entry->d_type == DT_DIR;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", above, entry->d_name) >= sizeof path)
        return;
    if (entry->d_type == DT_UNKNOWN &&
        fstatat(directory, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        inside = S_ISDIR(st.st_mode);
    if (inside && (!dot || dotted_counts(s, path, st.st_ino)))
        (void)!look_into(s, path, depth + 1);
    else if (!inside && !dot &&
             (entry->d_type == DT_SOCK || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN))
        look_at_file(s, directory, entry->d_name, path);
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than REGISTRY_DEPTH_MAX */
static void look_at_names(struct sockets *s, DIR *directory, const char *path, unsigned depth)
{
    const struct dirent *entry;

    while (errno = 0, (entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (++s->names > REGISTRY_NAMES_MAX) {
            s->too_many = true;
            return;
        }
        look_at_name(s, dirfd(directory), entry, path, depth);
    }
    if (errno != 0)
        s->shortage = errno;
}

/* Watched first, so that what comes while it is read is told. 0 or a negative errno. */
/* NOLINTNEXTLINE(misc-no-recursion): no deeper than REGISTRY_DEPTH_MAX */
static int look_into(struct sockets *s, const char *path, unsigned depth)
{
    DIR *directory;
    int fd, error;

    if (depth > REGISTRY_DEPTH_MAX || ++s->directories > REGISTRY_DIRECTORIES_MAX) {
        s->too_many = true;
        return 0;
    }
    if (watch_directory(&s->watch, path) < 0)
        s->unwatched = true;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (depth > 0 ? O_NOFOLLOW : 0));
    directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory) {
        error = errno;
        note_unseen(s, error);
        if (fd >= 0)
            close(fd);
        return -error;
    }
    look_at_names(s, directory, path, depth);
    closedir(directory);
    return 0;
}

/* ---- what becomes of it ---- */

static void tell_went(struct sockets *s)
{
    struct one *one, *next;

    HASH_ITER(hh, s->all, one, next) {
        if (one->seen != s->look)
            one_went(s, one);
    }
}

static void tell_came(struct sockets *s)
{
    struct one *one, *next;

    HASH_ITER(hh, s->all, one, next) {
        if (!one->told)
            one->told = s->ops->came(s->user, one->path, one->file);
    }
}

/* Once, until it is another. */
static void tell_trouble(struct sockets *s, int error)
{
    if (error && error != s->error)
        log_error("%s = \"%s\": %s; trying again until it works", s->place.setting,
                  s->place.directory, strerror(-error));
    else if (!error && s->error)
        log_info("%s = \"%s\": works now", s->place.setting, s->place.directory);
    if (error && !s->error)
        s->failing_ms = boot_now_ms();
    s->error = error;
    if (s->too_many && !s->told_many)
        log_warning("%s = \"%s\": more than %d sockets, %d names, or %d directories of "
                    "at most %d levels; the rest is left out",
                    s->place.setting, s->place.directory, REGISTRY_SOCKETS_MAX, REGISTRY_NAMES_MAX,
                    REGISTRY_DIRECTORIES_MAX, REGISTRY_DEPTH_MAX);
    s->told_many = s->too_many;
}

static void on_look(uv_timer_t *timer)
{
    struct sockets *s = timer->data;
    uint64_t began_ns = uv_hrtime(), took_ms;
    int error = 0;

    s->look++;
    s->directories = s->names = 0;
    s->shortage = 0;
    s->too_many = s->full = false;
    s->unwatched = !watch_runs(&s->watch);
    if (s->place.is_ours)
        error = directory_make(s->place.directory, DIRECTORY_MODE);
    if (!error)
        error = look_into(s, s->place.directory, 0);
    if (error == -ENOENT && !s->place.is_ours) {
        s->unwatched = true;
        error = 0;
    }
    if (!error)
        error = -s->shortage;
    tell_trouble(s, error);
    if (!s->shortage) /* what was not seen may be there */
        tell_went(s);
    tell_came(s);
    uv_update_time(s->loop);
    took_ms = (uv_hrtime() - began_ns) / 1000000;
    s->not_before =
        uv_now(s->loop) + (10 * took_ms > SOCKETS_PAUSE_MS ? 10 * took_ms : SOCKETS_PAUSE_MS);
    if (s->unwatched || error || s->full)
        uv_timer_start(timer, on_look, SOCKETS_LOOK_MS, 0);
}

void sockets_look(struct sockets *s)
{
    uint64_t now = uv_now(s->loop);

    if (!uv_is_active((uv_handle_t *)&s->timer) || s->unwatched || s->error || s->full)
        uv_timer_start(&s->timer, on_look, s->not_before > now ? s->not_before - now : 0, 0);
}

static void on_changed(void *user, bool overflow)
{
    (void)overflow; /* all of it is looked at in any case */
    sockets_look(user);
}

/* ---- life ---- */

static const struct watch_ops WATCH_OPS = {.changed = on_changed};

struct sockets *sockets_start(uv_loop_t *loop, const struct sockets_place *place,
                              const struct sockets_ops *ops, void *user)
{
    struct sockets *s = must(calloc(1, sizeof *s));
    int err;

    s->loop = loop;
    s->place = *place;
    s->ops = ops;
    s->user = user;
    SLIST_INIT(&s->dotted);
    err = watch_init(&s->watch, loop, &WATCH_OPS, s);
    if (err < 0)
        log_warning("%s = \"%s\": it cannot be watched (%s); it is looked at every %d ms",
                    place->setting, place->directory, strerror(-err), SOCKETS_LOOK_MS);
    uv_timer_init(loop, &s->timer);
    s->timer.data = s;
    uv_timer_start(&s->timer, on_look, 0, 0);
    return s;
}

const char *sockets_trouble(const struct sockets *sockets, uint64_t *since_ms)
{
    if (!sockets->error)
        return NULL;
    *since_ms = sockets->failing_ms;
    return strerror(-sockets->error);
}

static void sockets_free(void *thing)
{
    struct sockets *s = thing;
    struct dotted *d;

    while ((d = SLIST_FIRST(&s->dotted))) {
        SLIST_REMOVE_HEAD(&s->dotted, entry);
        free(d->path);
        free(d);
    }
    free(s);
}

void sockets_stop(struct sockets *sockets, void (*done)(void *user), void *user)
{
    struct one *one, *next;

    HASH_ITER(hh, sockets->all, one, next) {
        one_went(sockets, one);
    }
    sockets->stopping = (struct stopping){1, sockets_free, sockets, done, user};
    if (watch_runs(&sockets->watch)) {
        sockets->stopping.parts++;
        watch_close(&sockets->watch, stopping_part, &sockets->stopping);
    }
    stopping_close(&sockets->stopping, (uv_handle_t *)&sockets->timer);
}
