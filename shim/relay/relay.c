#include "shim/relay/relay.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/log.h"
#include "shim/relay/connection.h"
#include "shim/relay/limits.h"
#include "shim/rpc/listen.h"

#define BACKLOG 511

struct relay {
    uv_pipe_t listener;
    uv_timer_t drain;
    uv_timer_t retry;        /* of a connection that could not be taken */
    const char *listen_path; /* NULL: not ours to remove */
    const char *runtime_path;
    struct calls *calls;
    struct connection *connections;
    int handles;       /* not yet closed */
    bool drained;      /* `drain` is closed, or about to be */
    bool runtime_away; /* the last try to reach it failed */
    bool waiting;      /* a client, for memory */
    void (*done)(void *user);
    void *done_user;
    char read_buffer[RELAY_READ_BYTES];
};

static void on_handle_closed(uv_handle_t *handle);

static void finish_if_empty(struct relay *relay)
{
    if (!relay->done || relay->connections)
        return;
    if (!relay->drained) {
        relay->drained = true;
        uv_close((uv_handle_t *)&relay->drain, on_handle_closed);
    }
    if (relay->handles > 0)
        return;
    relay->done(relay->done_user);
    free(relay);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct relay *relay = handle->data;

    relay->handles--;
    finish_if_empty(relay);
}

static void on_begun(void *user, struct session *session, pid_t pid)
{
    struct relay *relay = user;

    calls_begun(relay->calls, session, pid);
}

static void on_gone(void *user, struct session *session)
{
    struct relay *relay = user;

    calls_gone(relay->calls, session);
}

static void on_request(void *user, struct session *session, struct session_call *call)
{
    struct relay *relay = user;

    calls_request(relay->calls, session, call);
}

static void on_answered(void *user, struct session_call *call, int status, const uint8_t *message,
                        size_t message_bytes)
{
    struct relay *relay = user;

    calls_answered(relay->calls, call, status, message, message_bytes);
}

static void on_ended(void *user, struct session_call *call)
{
    struct relay *relay = user;

    calls_ended(relay->calls, call);
}

static void on_runtime(void *user, int error)
{
    struct relay *relay = user;
    bool away = error < 0;

    if (away && !relay->runtime_away)
        log_error(
            "relay: the runtime at %s cannot be reached: %s; connections are closed until it can",
            relay->runtime_path, uv_strerror(error));
    if (!away && relay->runtime_away) {
        log_info("relay: the runtime at %s is back", relay->runtime_path);
        calls_runtime_back(relay->calls);
    }
    relay->runtime_away = away;
}

static void on_closed(void *user, struct connection *connection)
{
    struct relay *relay = user;

    connection_unlink(connection, &relay->connections);
    finish_if_empty(relay);
}

static const struct connection_ops CONNECTION_OPS = {on_begun, on_gone,    on_request, on_answered,
                                                     on_ended, on_runtime, on_closed};

static void on_retry(uv_timer_t *timer);

/* Takes the connection that waits. libuv asks for no other until it is taken. */
static void accept_next(struct relay *relay)
{
    struct connection *c = connection_accept((uv_stream_t *)&relay->listener, relay->runtime_path,
                                             relay->read_buffer, &CONNECTION_OPS, relay);

    if (c)
        connection_link(c, &relay->connections);
    if (!c && !relay->waiting)
        log_error("relay: a client waits: out of memory");
    relay->waiting = !c;
    if (!c)
        uv_timer_start(&relay->retry, on_retry, RELAY_ACCEPT_RETRY_MS, 0);
}

static void on_retry(uv_timer_t *timer)
{
    accept_next(timer->data);
}

static void on_connection(uv_stream_t *listener, int status)
{
    if (status < 0)
        log_error("relay: accept: %s", uv_strerror(status));
    else
        accept_next(listener->data);
}

static void on_unopened(uv_handle_t *handle)
{
    free(handle->data);
}

int relay_start(uv_loop_t *loop, const char *listen_path, int fd, const char *runtime_path,
                struct calls *calls, struct relay **out)
{
    struct relay *relay = calloc(1, sizeof *relay);
    int r = 0;

    if (!relay)
        return -ENOMEM;
    relay->runtime_path = runtime_path;
    relay->calls = calls;
    if (fd < 0) {
        relay->listen_path = listen_path;
        r = listen_unix(listen_path, 0600, &fd);
        if (r < 0) {
            free(relay);
            return r;
        }
    }
    uv_pipe_init(loop, &relay->listener, 0);
    relay->listener.data = relay;
    r = uv_pipe_open(&relay->listener, fd);
    if (r < 0)
        close(fd);
    if (r == 0)
        r = uv_listen((uv_stream_t *)&relay->listener, BACKLOG, on_connection);
    if (r < 0) {
        uv_close((uv_handle_t *)&relay->listener, on_unopened);
        return r;
    }
    uv_timer_init(loop, &relay->drain);
    relay->drain.data = relay;
    uv_timer_init(loop, &relay->retry);
    relay->retry.data = relay;
    relay->handles = 3;
    *out = relay;
    return 0;
}

void relay_stop_now(struct relay *relay)
{
    for (struct connection *c = relay->connections; c; c = connection_next(c))
        connection_close(c);
}

static void on_drained(uv_timer_t *timer)
{
    relay_stop_now(timer->data);
}

void relay_stop(struct relay *relay, uint64_t drain_ms, void (*done)(void *user), void *user)
{
    relay->done = done;
    relay->done_user = user;
    if (relay->listen_path)
        unlink(relay->listen_path);
    uv_close((uv_handle_t *)&relay->listener, on_handle_closed);
    uv_close((uv_handle_t *)&relay->retry, on_handle_closed);
    for (struct connection *c = relay->connections; c; c = connection_next(c))
        connection_drain(c);
    calls_drain(relay->calls);
    uv_timer_start(&relay->drain, on_drained, drain_ms, 0);
    finish_if_empty(relay);
}
