#include "shim/control/follow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "shim/control/limits.h"
#include "shim/must.h"
#include "shim/rpc/message.h"

struct follower {
    struct followers *followers;
    struct rpc_incoming *call;
    Control__V1__EventsRequest *request;
    bool begun;
    uint64_t place; /* the last id that it was sent, or that was not for it */
    LIST_ENTRY(follower) entry;
};

struct followers {
    struct events *events;
    struct events_watch watch;
    uv_timer_t *timer; /* while one lags */
    LIST_HEAD(, follower) list;
    size_t len;
};

static void follower_free(struct follower *follower)
{
    LIST_REMOVE(follower, entry);
    follower->followers->len--;
    control__v1__events_request__free_unpacked(follower->request, NULL);
    free(follower);
}

/* ---- what it wants ---- */

static bool names_pod(const char *wanted, const struct event *event)
{
    size_t len = strlen(event->pod_namespace);

    if (strcmp(wanted, event->pod_uid) == 0 || strcmp(wanted, event->pod_name) == 0)
        return true;
    return strncmp(wanted, event->pod_namespace, len) == 0 && wanted[len] == '/' &&
           strcmp(wanted + len + 1, event->pod_name) == 0;
}

static bool wants(const struct follower *follower, const struct event *event,
                  const struct event_moment *now)
{
    const Control__V1__EventsRequest *request = follower->request;
    uint64_t ago_ms = event_ago_ms(&event->last, now);

    if (ago_ms > EVENTS_AGE_MS_MAX || (request->since_ms > 0 && ago_ms > request->since_ms))
        return false;
    if (request->resource[0] && strcmp(request->resource, event->resource) != 0)
        return false;
    return !request->pod[0] || names_pod(request->pod, event);
}

/* ---- what it is sent; 0 or a negative errno ---- */

void follow_event(Control__V1__Event *message, const struct event *event,
                  const struct event_moment *now)
{
    control__v1__event__init(message);
    event_put(event, message);
    message->last_ms = event_ago_ms(&event->last, now);
    message->first_ms = event_ago_ms(&event->first, now);
}

static int send_event(struct follower *follower, const struct event *event,
                      const struct event_moment *now)
{
    Control__V1__EventsResponse response = CONTROL__V1__EVENTS_RESPONSE__INIT;
    Control__V1__Event message;

    follow_event(&message, event, now);
    response.event = &message;
    return rpc_incoming_send(follower->call, &response.base);
}

static int send_missed(struct follower *follower, uint64_t missed, bool anew)
{
    Control__V1__EventsResponse response = CONTROL__V1__EVENTS_RESPONSE__INIT;

    response.missed = missed;
    response.anew = anew;
    return rpc_incoming_send(follower->call, &response.base);
}

static bool is_full(const struct follower *follower)
{
    return rpc_incoming_queued(follower->call) > CONTROL_FOLLOWER_QUEUE_BYTES;
}

/* Where it begins. */
static int begin(struct follower *follower)
{
    const struct events *events = follower->followers->events;
    uint64_t after = follower->request->after;
    bool anew = after > events_last(events);

    follower->begun = true;
    follower->place = after > 0 && !anew ? after : events_gone(events);
    return send_missed(follower, 0, anew); /* it is heard */
}

/* One that lags is told once it reads again, of all together. */
static int skip_gone(struct follower *follower)
{
    uint64_t gone = events_gone(follower->followers->events), missed = gone - follower->place;
    int r;

    if (gone <= follower->place)
        return 0;
    if (is_full(follower))
        return -ENOBUFS;
    r = send_missed(follower, missed, false);
    if (r == 0)
        follower->place = gone;
    return r;
}

/* 1: all that there is. */
static int send_all(struct follower *follower)
{
    const struct events *events = follower->followers->events;
    const struct event *event;
    struct event_moment now;
    int r;

    if (!follower->begun && (r = begin(follower)) < 0)
        return r;
    if ((r = skip_gone(follower)) < 0)
        return r;
    events_now(events, &now);
    event = events_after(events, follower->place);
    for (; event; event = events_next(events, event)) {
        if (is_full(follower))
            return -ENOBUFS;
        if (wants(follower, event, &now) && (r = send_event(follower, event, &now)) < 0)
            return r;
        follower->place = event->id;
    }
    return 1;
}

/* ---- all of them ---- */

static void on_timer(uv_timer_t *timer);

static void follower_look(struct follower *follower)
{
    struct followers *followers = follower->followers;
    int r = events_loaded(followers->events) ? send_all(follower) : 0;

    if (r == -ENOBUFS) {
        uv_timer_start(followers->timer, on_timer, CONTROL_FOLLOWER_LOOK_MS, 0);
    } else if (r < 0) {
        rpc_incoming_finish(follower->call, RPC_RESOURCE_EXHAUSTED, strerror(-r));
        follower_free(follower);
    } else if (r == 1 && !follower->request->follow) {
        rpc_incoming_finish(follower->call, RPC_OK, NULL);
        follower_free(follower);
    }
}

static void look(void *user)
{
    struct followers *followers = user;
    struct follower *follower, *next;

    for (follower = LIST_FIRST(&followers->list); follower; follower = next) {
        next = LIST_NEXT(follower, entry);
        follower_look(follower);
    }
}

static void on_timer(uv_timer_t *timer)
{
    look(timer->data);
}

static void on_cancelled(void *user)
{
    follower_free(user);
}

void followers_add(struct followers *followers, struct rpc_incoming *call,
                   const Control__V1__EventsRequest *request)
{
    ProtobufCMessage *copy;
    struct follower *follower;

    if (followers->len == CONTROL_FOLLOWERS_MAX) {
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too many follow events already");
        return;
    }
    copy = message_copy(&request->base);
    if (!copy) {
        rpc_incoming_finish(call, RPC_INVALID_ARGUMENT, CONTROL_UNREADABLE);
        return;
    }
    follower = must(calloc(1, sizeof *follower));
    follower->followers = followers;
    follower->call = call;
    follower->request = (void *)copy;
    LIST_INSERT_HEAD(&followers->list, follower, entry);
    followers->len++;
    rpc_incoming_on_cancel(call, on_cancelled, follower);
    follower_look(follower);
}

struct followers *followers_new(uv_loop_t *loop, struct events *events)
{
    struct followers *followers = must(calloc(1, sizeof *followers));

    followers->events = events;
    followers->timer = must(malloc(sizeof *followers->timer));
    uv_timer_init(loop, followers->timer);
    followers->timer->data = followers;
    followers->watch = (struct events_watch){.more = look, .user = followers};
    events_watch(events, &followers->watch);
    return followers;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

void followers_free(struct followers *followers)
{
    while (followers->len > 0)
        follower_free(LIST_FIRST(&followers->list));
    events_unwatch(&followers->watch);
    uv_close((uv_handle_t *)followers->timer, on_closed);
    free(followers);
}
