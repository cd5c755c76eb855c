#include "devicemgr/things/endpoint.h"

#include <assert.h>

#include "devicemgr/things/limits.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/moment.h"

void endpoint_fini(struct endpoint *endpoint)
{
    free(endpoint->socket_name);
    free(endpoint->socket_good);
    free(endpoint->stop_reason);
    free(endpoint->put_off.socket_name);
    *endpoint = (struct endpoint){0};
}

void endpoint_restore(struct endpoint *endpoint, const char *socket_good, uint32_t uid,
                      bool pre_start, bool has_preference)
{
    assert(!endpoint->socket_name && !endpoint->socket_good);
    endpoint->socket_name = mem_strdup(socket_good);
    endpoint->socket_good = mem_strdup(socket_good);
    endpoint->uid = endpoint->uid_good = uid;
    endpoint->pre_start = pre_start;
    endpoint->has_preference = has_preference;
}

/* ---- the state ---- */

static bool move_allowed(enum endpoint_state from, enum endpoint_state to)
{
    switch (from) {
    case ENDPOINT_CONNECTING:
        return true;
    case ENDPOINT_ACTIVE:
        return to != ENDPOINT_ACTIVE;
    case ENDPOINT_GRACE:
        return to == ENDPOINT_CONNECTING || to == ENDPOINT_GONE;
    case ENDPOINT_GONE:
        return false;
    }
    return false;
}

void endpoint_set_state(struct endpoint *endpoint, uint64_t now_ms, enum endpoint_state state)
{
    assert(move_allowed(endpoint->state, state));
    endpoint->state = state;
    endpoint->since_ms = now_ms;
    if (state == ENDPOINT_ACTIVE) {
        free(endpoint->socket_good);
        endpoint->socket_good = mem_strdup(endpoint->socket_name);
        endpoint->uid_good = endpoint->uid;
        endpoint->stopped = false;
        endpoint->listed = true;
    }
}

void endpoint_dial(struct endpoint *endpoint, uint64_t now_ms, uint64_t number,
                   enum endpoint_origin origin, const char *socket_name, uint32_t uid)
{
    char *name = mem_strdup(socket_name); /* it may be our own */

    if (endpoint->state == ENDPOINT_ACTIVE || !endpoint->socket_name)
        endpoint->unlisted_ms = now_ms;
    if (endpoint->dials_ms <= now_ms) {
        endpoint->dials_ms = now_ms;
        endpoint->hasty = false;
    }
    endpoint->dials_ms += DIAL_EVERY_MS;
    endpoint_set_state(endpoint, now_ms, ENDPOINT_CONNECTING);
    endpoint->number = number;
    endpoint->origin = origin;
    endpoint->have_options = false;
    free(endpoint->socket_name);
    endpoint->socket_name = name;
    endpoint->uid = uid;
}

void endpoint_set_disconnected(struct endpoint *endpoint)
{
    endpoint->number = 0;
}

void endpoint_set_options(struct endpoint *endpoint, bool pre_start, bool has_preference)
{
    endpoint->have_options = true;
    endpoint->pre_start = pre_start;
    endpoint->has_preference = has_preference;
}

/* ---- Register calls ---- */

void endpoint_set_registration(struct endpoint *endpoint, uint64_t registration)
{
    assert(!endpoint->registration);
    endpoint->registration = registration;
}

uint64_t endpoint_take_registration(struct endpoint *endpoint)
{
    uint64_t registration = endpoint->registration;

    endpoint->registration = 0;
    return registration;
}

bool endpoint_put_off(struct endpoint *endpoint, uint64_t registration, const char *socket_name,
                      uint32_t uid)
{
    bool first = !endpoint->hasty;

    assert(!endpoint->put_off.registration);
    free(endpoint->put_off.socket_name);
    endpoint->put_off.socket_name = mem_strdup(socket_name);
    endpoint->put_off.uid = uid;
    endpoint->put_off.registration = registration;
    endpoint->hasty = true;
    return first;
}

uint64_t endpoint_take_put_off_registration(struct endpoint *endpoint)
{
    uint64_t registration = endpoint->put_off.registration;

    endpoint->put_off.registration = 0;
    return registration;
}

char *endpoint_take_put_off(struct endpoint *endpoint, uint64_t *registration, uint32_t *uid)
{
    char *socket_name = endpoint->put_off.socket_name;

    endpoint->put_off.socket_name = NULL;
    *registration = endpoint_take_put_off_registration(endpoint);
    *uid = endpoint->put_off.uid;
    return socket_name;
}

void endpoint_forget_registration(struct endpoint *endpoint, uint64_t registration)
{
    if (endpoint->registration == registration)
        endpoint->registration = 0;
    if (endpoint->put_off.registration == registration)
        endpoint->put_off.registration = 0;
}

/* ---- times ---- */

uint64_t endpoint_dial_ms(const struct endpoint *endpoint, uint64_t now_ms)
{
    return paced_ms(endpoint->dials_ms, now_ms, DIALS_AT_ONCE, DIAL_EVERY_MS);
}

uint64_t endpoint_unlisted_ms(const struct endpoint *endpoint)
{
    if (endpoint->state != ENDPOINT_CONNECTING || endpoint->stopped)
        return UINT64_MAX;
    return endpoint->unlisted_ms + FIRST_LIST_MS;
}

void endpoint_stop(struct endpoint *endpoint, uint64_t now_ms, const char *reason)
{
    if (endpoint->stopped)
        return;
    endpoint->stopped = true;
    endpoint->stopped_ms = now_ms;
    free(endpoint->stop_reason);
    endpoint->stop_reason = mem_strdup(reason);
}

bool endpoint_may_redial(const struct endpoint *endpoint, uint64_t now_ms)
{
    if (!endpoint->socket_good || endpoint->socket_good[0] == '\0' ||
        endpoint->put_off.socket_name || endpoint_dial_ms(endpoint, now_ms) > now_ms)
        return false;
    if (endpoint->state == ENDPOINT_CONNECTING)
        return endpoint->origin == ENDPOINT_REGISTERED && !endpoint->stopped;
    return endpoint->state == ENDPOINT_ACTIVE && (endpoint->origin != ENDPOINT_REDIALLED ||
                                                  now_ms - endpoint->since_ms >= REDIAL_AGAIN_MS);
}

uint64_t endpoint_end_ms(const struct endpoint *endpoint, uint64_t grace_ms)
{
    uint64_t end_ms, attempt_ms;

    if (!endpoint->stopped || endpoint->put_off.socket_name || endpoint->state == ENDPOINT_GONE)
        return UINT64_MAX;
    end_ms = later_by(endpoint->stopped_ms, grace_ms);
    if (endpoint->state == ENDPOINT_GRACE)
        return end_ms;
    attempt_ms =
        earlier(later_by(endpoint->since_ms, FIRST_LIST_MS), later_by(end_ms, FIRST_LIST_MS));
    return later(attempt_ms, end_ms);
}

/* A Register call led to its connection. */
static bool is_registering(const struct endpoint *endpoint)
{
    return endpoint->state == ENDPOINT_CONNECTING && endpoint->origin == ENDPOINT_REGISTERED;
}

bool endpoint_awaits_first_list(const struct endpoint *endpoint)
{
    return is_registering(endpoint) && endpoint->have_options;
}

bool endpoint_may_list(const struct endpoint *endpoint, uint64_t now_ms)
{
    return is_registering(endpoint) && now_ms < endpoint->since_ms + FIRST_LIST_MS;
}

void endpoint_move(struct endpoint *from, struct endpoint *to)
{
    *to = (struct endpoint){
        .state = ENDPOINT_CONNECTING,
        .number = from->number,
        .origin = from->origin,
        .socket_name = mem_strdup(from->socket_name),
        .uid = from->uid,
        .registration = endpoint_take_registration(from),
        .since_ms = from->since_ms,
        .unlisted_ms = from->since_ms,
        .dials_ms = from->dials_ms,
        .hasty = from->hasty,
        .have_options = from->have_options,
        .pre_start = from->pre_start,
        .has_preference = from->has_preference,
    };
    from->number = 0;
}

uint64_t endpoint_store_ms(const struct endpoint *endpoint)
{
    if (!endpoint->stopped || endpoint->stop_stored || !endpoint->socket_good)
        return UINT64_MAX;
    return endpoint->stopped_ms + STOP_STORE_MS;
}

void endpoint_set_stop_stored(struct endpoint *endpoint, bool stop_stored)
{
    endpoint->stop_stored = stop_stored;
}
