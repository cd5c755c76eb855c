#include "shim/rpc/acceptor.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/log.h"

/* When one that could not be taken is tried again. */
#define RETRY_MS 100
/* Clients taken in one turn of the loop. */
#define IN_A_ROW_MAX 64
#define HANDLES 2

struct acceptor {
    struct acceptor_owner owner;
    uv_poll_t poll;
    uv_timer_t retry;
    unsigned handles; /* not yet closed */
    int fd;
    int client;  /* accepted, but not taken; -1: none */
    bool paused; /* until `retry` */
    bool told;   /* that one waits, since the last was taken */
};

static void on_retry(uv_timer_t *timer);

static void pause_accepting(struct acceptor *acceptor)
{
    acceptor->paused = true;
    uv_poll_stop(&acceptor->poll);
    uv_timer_start(&acceptor->retry, on_retry, RETRY_MS, 0);
}

static void fail(struct acceptor *acceptor, int err)
{
    if (!acceptor->told)
        log_error("%s: cannot take a connection, which waits: %s", acceptor->owner.name,
                  strerror(-err));
    acceptor->told = true;
    pause_accepting(acceptor);
}

/* Whether there is anybody to make room for. */
static bool one_waits(const struct acceptor *acceptor)
{
    struct pollfd listening = {.fd = acceptor->fd, .events = POLLIN};

    return acceptor->client >= 0 || poll(&listening, 1, 0) > 0;
}

/* Whether one more may wait. */
static bool take_next(struct acceptor *acceptor)
{
    const struct acceptor_owner *owner = &acceptor->owner;
    int err;

    if (owner->has_room && !one_waits(acceptor))
        return false;
    if (owner->has_room && !owner->has_room(owner->user)) {
        pause_accepting(acceptor);
        return false;
    }
    if (acceptor->client < 0)
        acceptor->client = accept4(acceptor->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (acceptor->client < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            fail(acceptor, -errno);
        return false;
    }
    err = owner->take(owner->user, acceptor->client);
    if (err) {
        fail(acceptor, err);
        return false;
    }
    acceptor->client = -1;
    acceptor->told = false;
    return true;
}

static void on_client(uv_poll_t *poll, int status, int events)
{
    struct acceptor *acceptor = poll->data;

    (void)events;
    if (status < 0) { /* libuv has stopped to look */
        fail(acceptor, status);
        return;
    }
    for (int i = 0; i < IN_A_ROW_MAX && take_next(acceptor); i++)
        ;
}

static void on_retry(uv_timer_t *timer)
{
    struct acceptor *acceptor = timer->data;

    acceptor->paused = false;
    uv_poll_start(&acceptor->poll, UV_READABLE, on_client);
    if (acceptor->client >= 0)
        take_next(acceptor);
}

int acceptor_open(uv_loop_t *loop, int fd, const struct acceptor_owner *owner,
                  struct acceptor **out)
{
    struct acceptor *acceptor = malloc(sizeof *acceptor);
    int err = -ENOMEM;

    if (acceptor) {
        *acceptor = (struct acceptor){.owner = *owner, .handles = HANDLES, .fd = fd, .client = -1};
        err = uv_poll_init(loop, &acceptor->poll, fd);
    }
    if (err) {
        free(acceptor);
        close(fd);
        return err;
    }
    uv_timer_init(loop, &acceptor->retry);
    acceptor->poll.data = acceptor->retry.data = acceptor;
    uv_poll_start(&acceptor->poll, UV_READABLE, on_client);
    *out = acceptor;
    return 0;
}

int acceptor_fd(const struct acceptor *acceptor)
{
    return acceptor ? acceptor->fd : -1;
}

/* Not at once: who says so may be in the midst of a connection's end. */
void acceptor_go_on(struct acceptor *acceptor)
{
    if (acceptor && acceptor->paused)
        uv_timer_start(&acceptor->retry, on_retry, 0, 0);
}

static void on_closed(uv_handle_t *handle)
{
    struct acceptor *acceptor = handle->data;
    struct acceptor_owner owner = acceptor->owner;

    if (--acceptor->handles > 0)
        return;
    free(acceptor);
    owner.closed(owner.user);
}

void acceptor_close(struct acceptor *acceptor)
{
    if (!acceptor)
        return;
    uv_close((uv_handle_t *)&acceptor->poll, on_closed);
    uv_close((uv_handle_t *)&acceptor->retry, on_closed);
    close(acceptor->fd);
    if (acceptor->client >= 0)
        close(acceptor->client);
}
