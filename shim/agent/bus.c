#include "shim/agent/bus.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/agent/backoff.h"
#include "shim/agent/limits.h"
#include "shim/agent/systemd.h"
#include "shim/must.h"

struct bus {
    uv_loop_t *loop;
    const struct bus_ops *ops;
    void *user;
    const struct systemd *sd; /* NULL: not loaded, and there is no connection */
    sd_bus *connection;       /* NULL: none */
    uv_poll_t *poll;          /* the connection's */
    int fd;                   /* that it is of */
    uv_timer_t timer;         /* the connection's, or until the next attempt */
    struct backoff backoff;
    bool given_up;
    char words[ERROR_WORDS_BYTES_MAX]; /* why */
};

static void on_timer(uv_timer_t *timer);

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle);
}

/* The poll before the descriptor that it is of. */
static void disconnect(struct bus *bus)
{
    if (bus->poll)
        uv_close((uv_handle_t *)bus->poll, on_poll_closed);
    bus->poll = NULL;
    if (bus->connection)
        bus->connection = bus->sd->close_unref(bus->connection);
}

static void lose(struct bus *bus)
{
    disconnect(bus);
    bus->given_up = false;
    uv_timer_start(&bus->timer, on_timer,
                   backoff_failed(&bus->backoff, uv_now(bus->loop), 0, BUS_AGAIN_MS_MAX), 0);
    bus->ops->lost(bus->user, bus->words);
}

void bus_give_up(struct bus *bus, const char *words)
{
    if (bus->given_up)
        return;
    bus->given_up = true;
    snprintf(bus->words, sizeof bus->words, "%s", words);
    uv_timer_start(&bus->timer, on_timer, 0, 0);
}

static void give_up_for(struct bus *bus, int error)
{
    char words[ERROR_WORDS_BYTES_MAX];

    snprintf(words, sizeof words, "the system bus: %s", strerror(-error));
    bus_give_up(bus, words);
}

static void on_poll(uv_poll_t *poll, int status, int events);

/* When sd-bus wants to be called again: its moments are of CLOCK_MONOTONIC, as uv_hrtime()'s. */
static void wait_for_it(struct bus *bus)
{
    int events = bus->sd->get_events(bus->connection);
    uint64_t until_us, now_us = uv_hrtime() / 1000;

    if (events < 0 || bus->sd->get_fd(bus->connection) != bus->fd ||
        bus->sd->get_timeout(bus->connection, &until_us) < 0) {
        give_up_for(bus, -ENOTCONN);
        return;
    }
    uv_poll_start(bus->poll,
                  (events & POLLIN ? UV_READABLE : 0) | (events & POLLOUT ? UV_WRITABLE : 0),
                  on_poll);
    if (until_us == UINT64_MAX)
        uv_timer_stop(&bus->timer);
    else
        uv_timer_start(&bus->timer, on_timer,
                       until_us > now_us ? (until_us - now_us + 999) / 1000 : 0, 0);
}

void bus_called(struct bus *bus)
{
    if (bus->connection && !bus->given_up)
        wait_for_it(bus);
}

/* All that there is to be done. */
static void process(struct bus *bus)
{
    int r = 1;

    while (r > 0 && !bus->given_up)
        r = bus->sd->process(bus->connection, NULL);
    if (r < 0)
        give_up_for(bus, r);
    bus_called(bus);
}

/* What the socket has to say of an error sd-bus finds out by itself. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct bus *bus = poll->data;

    (void)status;
    (void)events;
    if (!bus->given_up)
        process(bus);
}

static void connect_bus(struct bus *bus)
{
    const char *why;
    int r;

    bus->sd = systemd_load(&why);
    if (!bus->sd) {
        bus_give_up(bus, why);
        return;
    }
    r = bus->sd->open_system(&bus->connection);
    if (r >= 0)
        r = bus->sd->set_method_call_timeout(bus->connection, BUS_CALL_TIMEOUT_MS * 1000);
    if (r >= 0)
        r = bus->fd = bus->sd->get_fd(bus->connection);
    if (r >= 0) {
        bus->poll = must(malloc(sizeof *bus->poll));
        bus->poll->data = bus;
        r = uv_poll_init(bus->loop, bus->poll, bus->fd);
        if (r < 0) {
            free(bus->poll);
            bus->poll = NULL;
        }
    }
    if (r < 0) {
        give_up_for(bus, r);
        return;
    }
    bus->ops->connected(bus->user, bus->connection);
    bus_called(bus);
}

static void on_timer(uv_timer_t *timer)
{
    struct bus *bus = timer->data;

    if (bus->given_up)
        lose(bus);
    else if (bus->connection)
        process(bus);
    else
        connect_bus(bus);
}

struct bus *bus_start(uv_loop_t *loop, const struct bus_ops *ops, void *user)
{
    struct bus *bus = must(calloc(1, sizeof *bus));

    bus->loop = loop;
    bus->ops = ops;
    bus->user = user;
    uv_timer_init(loop, &bus->timer);
    bus->timer.data = bus;
    uv_timer_start(&bus->timer, on_timer, 0, 0);
    return bus;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void bus_stop(struct bus *bus)
{
    if (!bus)
        return;
    disconnect(bus);
    uv_close((uv_handle_t *)&bus->timer, on_timer_closed);
}
