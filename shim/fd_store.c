#include "shim/fd_store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "shim/log.h"
#include "shim/must.h"
#include "shim/service_manager.h"

/* One that was handed over. */
struct handed {
    char *name;
    int fd; /* -1: it was taken */
};

/* What the manager has under one name. */
struct kept_name {
    UT_hash_handle hh;
    size_t n;
    char name[];
};

struct fd_store {
    struct handed *handed;
    size_t len;
    size_t promised;
    struct kept_name *kept;
    size_t kept_len;   /* descriptors */
    size_t kept_bytes; /* of the names, each as often as it stands in $LISTEN_FDNAMES, with a ':' */
    bool told_full;
    char *untold[FD_STORE_UNTOLD_MAX]; /* names that the manager is to let go of */
    size_t untold_len;
};

/* "FDSTOREREMOVE=1\nFDNAME=" and the name */
#define STATE_BYTES_MAX (32 + FD_STORE_NAME_BYTES_MAX)

static struct kept_name *find_kept(const struct fd_store *store, const char *name)
{
    struct kept_name *kept;

    HASH_FIND(hh, store->kept, name, strlen(name), kept);
    return kept;
}

static void count(struct fd_store *store, const char *name, size_t n)
{
    struct kept_name *kept = find_kept(store, name);
    size_t len = strlen(name);

    if (!kept) {
        kept = must(calloc(1, sizeof *kept + len + 1));
        memcpy(kept->name, name, len);
        HASH_ADD_KEYPTR(hh, store->kept, kept->name, len, kept);
    }
    kept->n += n;
    store->kept_len += n;
    store->kept_bytes += n * (len + 1);
}

static void uncount(struct fd_store *store, const char *name)
{
    struct kept_name *kept = find_kept(store, name);

    if (!kept)
        return;
    store->kept_len -= kept->n;
    store->kept_bytes -= kept->n * (strlen(kept->name) + 1);
    HASH_DELETE(hh, store->kept, kept);
    free(kept);
}

struct fd_store *fd_store_new(void)
{
    struct fd_store *store = must(calloc(1, sizeof *store));
    const char *names = getenv("LISTEN_FDNAMES");
    size_t passed = service_manager_passed();

    store->handed = must(calloc(passed + 1, sizeof *store->handed));
    for (size_t i = 0; i < passed; i++) {
        size_t len = names ? strcspn(names, ":") : 0;
        int fd = SERVICE_MANAGER_FD_FIRST + (int)i;

        if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) {
            char *name = must(strndup(names ? names : "", len));

            store->handed[store->len++] = (struct handed){.name = name, .fd = fd};
            count(store, name, 1);
        }
        if (names)
            names += len + (names[len] == ':');
    }
    service_manager_forget_passed();
    store->promised = service_manager_keeps();
    return store;
}

void fd_store_free(struct fd_store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < store->len; i++) {
        if (store->handed[i].fd >= 0)
            close(store->handed[i].fd);
        free(store->handed[i].name);
    }
    free(store->handed);
    for (size_t i = 0; i < store->untold_len; i++)
        free(store->untold[i]);
    while (store->kept)
        uncount(store, store->kept->name);
    free(store);
}

bool fd_store_usable(const struct fd_store *store)
{
    return store && service_manager_there();
}

size_t fd_store_promised(const struct fd_store *store)
{
    return fd_store_usable(store) ? store->promised : 0;
}

static struct handed *find(const struct fd_store *store, const char *prefix)
{
    for (size_t i = 0; store && i < store->len; i++) {
        if (store->handed[i].fd >= 0 && strncmp(store->handed[i].name, prefix, strlen(prefix)) == 0)
            return &store->handed[i];
    }
    return NULL;
}

int fd_store_take(struct fd_store *store, const char *prefix, const char **name)
{
    struct handed *handed = find(store, prefix);
    int fd;

    if (!handed)
        return -1;
    fd = handed->fd;
    handed->fd = -1;
    if (name)
        *name = handed->name;
    return fd;
}

bool fd_store_has(const struct fd_store *store, const char *prefix)
{
    return find(store, prefix) != NULL;
}

bool fd_store_is_socket(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

static bool option_is(int fd, int option, int wanted)
{
    int value = -1;
    socklen_t len = sizeof value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == wanted;
}

static bool is_listening_unix_stream(int fd)
{
    return option_is(fd, SO_DOMAIN, AF_UNIX) && option_is(fd, SO_TYPE, SOCK_STREAM) &&
           option_is(fd, SO_ACCEPTCONN, 1);
}

int fd_store_take_socket(struct fd_store *store)
{
    for (size_t i = 0; store && i < store->len; i++) {
        struct handed *handed = &store->handed[i];
        int fd = handed->fd;

        if (fd < 0 || strchr(handed->name, '/') || !is_listening_unix_stream(fd))
            continue;
        handed->fd = -1;
        return fd;
    }
    return -1;
}

void fd_store_drop(struct fd_store *store, const char *prefix)
{
    const char *name;
    int fd;

    while ((fd = fd_store_take(store, prefix, &name)) >= 0) {
        shutdown(fd, SHUT_RDWR); /* also of the manager's duplicate, if it is a socket */
        fd_store_remove(store, name);
        close(fd);
    }
}

static bool is_name(const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < len; i++) {
        if (name[i] < ' ' || name[i] > '~' || name[i] == ':')
            return false;
    }
    return len > 0 && len <= FD_STORE_NAME_BYTES_MAX;
}

static int tell(const char *what, const char *name, const int *fds, size_t n)
{
    char state[STATE_BYTES_MAX];

    assert(is_name(name));
    if (!service_manager_there())
        return -ENOTCONN;
    snprintf(state, sizeof state, "%s\nFDNAME=%s", what, name);
    return service_manager_notify_with(state, fds, n);
}

#define REMOVE "FDSTOREREMOVE=1"

/* 0, -EAGAIN: some are still untold, or -ENOTCONN. */
static int tell_untold(struct fd_store *store)
{
    size_t told = 0;

    if (!store)
        return -ENOTCONN;
    while (told < store->untold_len && tell(REMOVE, store->untold[told], NULL, 0) != -EAGAIN)
        free(store->untold[told++]);
    store->untold_len -= told;
    memmove(store->untold, store->untold + told, store->untold_len * sizeof *store->untold);
    return store->untold_len > 0 ? -EAGAIN : 0;
}

/* False: it never is. */
static bool tell_later(struct fd_store *store, const char *name)
{
    char *copy = store->untold_len < FD_STORE_UNTOLD_MAX ? strdup(name) : NULL;

    if (copy)
        store->untold[store->untold_len++] = copy;
    return copy;
}

static bool is_untold(const struct fd_store *store, const char *name)
{
    for (size_t i = 0; i < store->untold_len; i++) {
        if (strcmp(store->untold[i], name) == 0)
            return true;
    }
    return false;
}

/* Of a room of `max`, what goes alone leaves a quarter to what goes together. */
static bool fits(size_t used, size_t more, size_t max, bool alone)
{
    return used + more <= (alone ? max - max / 4 : max);
}

static bool has_room(const struct fd_store *store, const char *name, size_t n, bool alone)
{
    return fits(store->kept_bytes, n * (strlen(name) + 1), FD_STORE_NAMES_BYTES_MAX, alone) &&
           (store->promised == 0 || fits(store->kept_len, n, store->promised, alone));
}

/* Said once: what comes next most likely finds no room either. */
static int refuse(struct fd_store *store)
{
    if (!store->told_full)
        log_warning("the service manager keeps %zu descriptors, with %zu bytes of names, and has "
                    "no room for another: it ends with this process",
                    store->kept_len, store->kept_bytes);
    store->told_full = true;
    return -ENOSPC;
}

static int put(struct fd_store *store, const char *what, const char *name, const int *fds, size_t n,
               bool alone)
{
    int r = tell_untold(store);

    if (r == 0 && !has_room(store, name, n, alone))
        r = refuse(store);
    if (r == 0)
        r = tell(what, name, fds, n);
    if (r == 0)
        count(store, name, n);
    return r;
}

int fd_store_put(struct fd_store *store, const char *name, int fd)
{
    return put(store, "FDSTORE=1", name, &fd, 1, true);
}

/* FDPOLL=0: what belongs together goes together, and its owner sees what has become of a peer. */
int fd_store_put_all(struct fd_store *store, const char *name, const int *fds, size_t n)
{
    return put(store, "FDSTORE=1\nFDPOLL=0", name, fds, n, false);
}

int fd_store_remove(struct fd_store *store, const char *name)
{
    int r;

    if (store && is_untold(store, name)) {
        tell_untold(store);
        return is_untold(store, name) ? -EAGAIN : 0;
    }
    r = tell_untold(store);
    if (r == 0)
        r = tell(REMOVE, name, NULL, 0);
    if (store && (r != -EAGAIN || tell_later(store, name)))
        uncount(store, name);
    return r;
}
