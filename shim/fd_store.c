#include "shim/fd_store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/must.h"
#include "shim/service_manager.h"

/* One that was handed over. */
struct handed {
    char *name;
    int fd; /* -1: it was taken */
};

struct fd_store {
    struct handed *handed;
    size_t len;
    size_t promised;
    char *untold[FD_STORE_UNTOLD_MAX]; /* names that the manager is to let go of */
    size_t untold_len;
};

/* "FDSTOREREMOVE=1\nFDNAME=" and the name */
#define STATE_BYTES_MAX (32 + FD_STORE_NAME_BYTES_MAX)

struct fd_store *fd_store_new(void)
{
    struct fd_store *store = must(calloc(1, sizeof *store));
    const char *names = getenv("LISTEN_FDNAMES");
    size_t passed = service_manager_passed();

    store->handed = must(calloc(passed + 1, sizeof *store->handed));
    for (size_t i = 0; i < passed; i++) {
        size_t len = names ? strcspn(names, ":") : 0;
        int fd = SERVICE_MANAGER_FD_FIRST + (int)i;

        if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
            store->handed[store->len++] =
                (struct handed){.name = must(strndup(names ? names : "", len)), .fd = fd};
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

/* 0, or -EAGAIN: some are still untold. */
static int tell_untold(struct fd_store *store)
{
    size_t told = 0;

    while (told < store->untold_len && tell(REMOVE, store->untold[told], NULL, 0) != -EAGAIN)
        free(store->untold[told++]);
    store->untold_len -= told;
    memmove(store->untold, store->untold + told, store->untold_len * sizeof *store->untold);
    return store->untold_len > 0 ? -EAGAIN : 0;
}

static void tell_later(struct fd_store *store, const char *name)
{
    char *copy = store->untold_len < FD_STORE_UNTOLD_MAX ? strdup(name) : NULL;

    if (copy)
        store->untold[store->untold_len++] = copy;
}

static bool is_untold(const struct fd_store *store, const char *name)
{
    for (size_t i = 0; i < store->untold_len; i++) {
        if (strcmp(store->untold[i], name) == 0)
            return true;
    }
    return false;
}

static int tell_in_order(struct fd_store *store, const char *what, const char *name, const int *fds,
                         size_t n)
{
    int r = store ? tell_untold(store) : -ENOTCONN;

    return r < 0 ? r : tell(what, name, fds, n);
}

int fd_store_put(struct fd_store *store, const char *name, int fd)
{
    return tell_in_order(store, "FDSTORE=1", name, &fd, 1);
}

/* FDPOLL=0: what belongs together goes together, and its owner sees what has become of a peer. */
int fd_store_put_all(struct fd_store *store, const char *name, const int *fds, size_t n)
{
    return tell_in_order(store, "FDSTORE=1\nFDPOLL=0", name, fds, n);
}

int fd_store_remove(struct fd_store *store, const char *name)
{
    int r;

    if (store && is_untold(store, name)) {
        tell_untold(store);
        return is_untold(store, name) ? -EAGAIN : 0;
    }
    r = tell_in_order(store, REMOVE, name, NULL, 0);
    if (r == -EAGAIN)
        tell_later(store, name);
    return r;
}
