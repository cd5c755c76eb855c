#include "shim/rpc/stored_listener.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

void stored_listener_init(struct stored_listener *listener, struct fd_store *store,
                          const char *name)
{
    *listener = (struct stored_listener){.store = store, .name = name};
}

/* The name under which the manager is to keep it begins so. How long that is. */
static size_t put_prefix(const char *name, char prefix[FD_STORE_NAME_BYTES_MAX + 1])
{
    snprintf(prefix, FD_STORE_NAME_BYTES_MAX + 1, STORED_LISTENERS "%s/", name);
    return strlen(prefix);
}

bool stored_listener_handed(const struct fd_store *store, const char *name)
{
    char prefix[FD_STORE_NAME_BYTES_MAX + 1];

    put_prefix(name, prefix);
    return fd_store_has(store, prefix);
}

int stored_listener_take(struct stored_listener *listener, const char **tag)
{
    char prefix[FD_STORE_NAME_BYTES_MAX + 1];
    size_t len = put_prefix(listener->name, prefix);
    const char *stored;
    int fd = fd_store_take(listener->store, prefix, &stored);

    if (fd < 0)
        return -1;
    snprintf(listener->stored, sizeof listener->stored, "%s", stored);
    fd_store_drop(listener->store, prefix); /* what else there may be is of before */
    *tag = listener->stored + len;
    return fd;
}

void stored_listener_put(struct stored_listener *listener, int fd, const char *tag)
{
    char name[FD_STORE_NAME_BYTES_MAX + 1];
    size_t len;

    if (!fd_store_usable(listener->store))
        return;
    len = put_prefix(listener->name, name);
    snprintf(name + len, sizeof name - len, "%s", tag);
    if (strcmp(name, listener->stored) == 0)
        return;
    stored_listener_forget(listener);
    if (fd_store_put(listener->store, name, fd) == 0)
        memcpy(listener->stored, name, sizeof name);
}

void stored_listener_forget(struct stored_listener *listener)
{
    if (listener->stored[0])
        fd_store_remove(listener->store, listener->stored);
    listener->stored[0] = '\0';
}

void stored_listener_end(struct stored_listener *listener, int fd)
{
    if (fd >= 0 && listener->stored[0])
        shutdown(fd, SHUT_RDWR); /* the manager's duplicate is open until it has read of that */
    stored_listener_forget(listener);
}
