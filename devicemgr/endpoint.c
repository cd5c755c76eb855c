#include "devicemgr/endpoint.h"

#include <assert.h>

#include "devicemgr/mem.h"

void endpoint_fini(struct endpoint *endpoint)
{
    free(endpoint->socket_name);
    free(endpoint->socket_good);
    free(endpoint->stop_reason);
    *endpoint = (struct endpoint){0};
}

static bool move_allowed(enum endpoint_state from, enum endpoint_state to)
{
    switch (from) {
    case ENDPOINT_CONNECTING:
        return true;
    case ENDPOINT_ACTIVE:
        return to == ENDPOINT_CONNECTING || to == ENDPOINT_GRACE;
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
        endpoint->stopped = false;
    }
}

void endpoint_dial(struct endpoint *endpoint, uint64_t now_ms, uint64_t number,
                   enum endpoint_origin origin, const char *socket_name)
{
    char *name = mem_strdup(socket_name); /* it may be our own */

    endpoint_set_state(endpoint, now_ms, ENDPOINT_CONNECTING);
    endpoint->number = number;
    endpoint->origin = origin;
    endpoint->have_options = false;
    free(endpoint->socket_name);
    endpoint->socket_name = name;
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
    if (!endpoint->socket_good)
        return false;
    if (endpoint->state == ENDPOINT_CONNECTING)
        return endpoint->origin == ENDPOINT_REGISTERED && !endpoint->stopped;
    return endpoint->state == ENDPOINT_ACTIVE && (endpoint->origin != ENDPOINT_REDIALLED ||
                                                  now_ms - endpoint->since_ms >= REDIAL_AGAIN_MS);
}

uint64_t endpoint_end_ms(const struct endpoint *endpoint, uint64_t grace_ms)
{
    uint64_t from_ms = endpoint->since_ms;

    if (endpoint->state == ENDPOINT_ACTIVE || endpoint->state == ENDPOINT_GONE)
        return UINT64_MAX;
    if (endpoint->state == ENDPOINT_GRACE)
        from_ms = endpoint->stopped_ms;
    return grace_ms > UINT64_MAX - from_ms ? UINT64_MAX : from_ms + grace_ms;
}

static void explain_grace(const struct endpoint *endpoint, uint64_t now_ms, uint64_t grace_ms,
                          struct text *text)
{
    uint64_t end_ms = endpoint_end_ms(endpoint, grace_ms);

    text_add(text, " stopped ");
    text_add_duration(text, now_ms - endpoint->stopped_ms);
    text_add(text, " ago (");
    text_add_words(text, endpoint->stop_reason, TEXT_WORDS_BYTES_MAX / 2);
    text_add(text, "), stop grace period ends in ");
    text_add_duration(text, end_ms > now_ms ? end_ms - now_ms : 0);
    text_add(text, ", then the resource is removed");
}

void endpoint_explain(const struct endpoint *endpoint, uint64_t now_ms, uint64_t grace_ms,
                      struct text *text)
{
    text_add(text, "plugin endpoint \"");
    text_add_words(text, endpoint->socket_name, TEXT_WORDS_BYTES_MAX);
    text_add(text, "\"");
    if (endpoint->state == ENDPOINT_GRACE) {
        explain_grace(endpoint, now_ms, grace_ms, text);
        return;
    }
    text_add(text, endpoint->have_options ? " has sent no device list for "
                                          : " has been connecting for ");
    text_add_duration(text, now_ms - endpoint->since_ms);
}
