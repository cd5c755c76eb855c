/*
 * The connection to a plugin: dialled, hung up, and what the Register calls are told that wait for
 * it.
 */
#include <string.h>

#include "devicemgr/books/state.h"
#include "devicemgr/machines/plugin.h"

void plugin_dial(struct state *state, struct resource *resource, enum endpoint_origin origin,
                 const char *socket_name, uint32_t uid)
{
    struct action *action;

    endpoint_dial(&resource->endpoint, state->now_ms, state_number(state), origin, socket_name,
                  uid);
    action = action_push(&state->actions, ACTION_ENDPOINT_OPEN, resource->endpoint.number);
    action->resource = mem_strdup(resource->name);
    action->socket_name = mem_strdup(resource->endpoint.socket_name);
    action->uid = uid;
}

void plugin_hang_up(struct state *state, struct endpoint *endpoint)
{
    if (!endpoint->number)
        return;
    action_push(&state->actions, ACTION_ENDPOINT_CLOSE, endpoint->number);
    outbox_put(&state->outbox, OUTBOX_ENDPOINT_ENDED, endpoint->number, NULL);
    endpoint_set_disconnected(endpoint);
}

/* ---- answers to Register ---- */

void plugin_answer_call(struct state *state, uint64_t registration, int code,
                        const struct text *text)
{
    struct action *action = action_push(&state->actions, ACTION_REGISTER_DONE, registration);

    action->code = code;
    action->text = text->len > 0 ? mem_strdup(text->buf) : NULL;
}

void plugin_answer(struct state *state, struct endpoint *endpoint, int code,
                   const struct text *text)
{
    uint64_t registration = endpoint_take_registration(endpoint);

    if (registration)
        plugin_answer_call(state, registration, code, text);
}

void plugin_answer_all(struct state *state, struct endpoint *endpoint, int code,
                       const struct text *text)
{
    uint64_t waits = endpoint_take_put_off_registration(endpoint);

    plugin_answer(state, endpoint, code, text);
    if (waits)
        plugin_answer_call(state, waits, code, text);
}

void plugin_answer_failed(struct state *state, struct endpoint *endpoint, const char *reason)
{
    struct text text = {0};

    if (strncmp(reason, "failed to ", strlen("failed to ")) != 0)
        text_add(&text, "failed to dial device plugin: ");
    text_add_words(&text, reason, 2 * TEXT_WORDS_BYTES_MAX);
    plugin_answer(state, endpoint, CODE_UNKNOWN, &text);
}
