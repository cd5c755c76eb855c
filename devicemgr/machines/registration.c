/*
 * Register calls: what is checked, and the dial that each is worth.
 */
#include <string.h>

#include "cri-proto/methods.h"
#include "cri-proto/resource_name.h"
#include "devicemgr/books/state.h"
#include "devicemgr/machines/plugin.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/name.h"

#define KUBELET_SOCKET "kubelet.sock"

/* Of a Register call a bare name, which stays in the plugins' directory. */
static bool is_socket_name(const char *name)
{
    return name[0] != '\0' && !strchr(name, '/') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 && strcmp(name, KUBELET_SOCKET) != 0 &&
           strlen(name) <= SOCKET_NAME_BYTES_MAX;
}

/* Whether the newest registration of the resource is by this socket. */
static bool is_of_socket(const struct resource *resource, const char *socket_name)
{
    const struct endpoint *endpoint = &resource->endpoint;
    const char *newest =
        endpoint->put_off.socket_name ? endpoint->put_off.socket_name : endpoint->socket_name;

    return newest && strcmp(newest, socket_name) == 0;
}

/* Whether this socket may have one more, so that none can take all names there may be. */
static bool has_room(const struct state *state, const char *socket_name)
{
    size_t n = 0;

    for (const struct resource *r = state->resources; r; r = r->hh.next)
        n += is_of_socket(r, socket_name);
    return n < SOCKET_RESOURCES_MAX;
}

/* The kubelet's checks, in its order and words, then ours. 0, or the code of the refusal. */
static int check_register(const struct state *state, const char *version, const char *socket_name,
                          bool is_path, const char *name, struct text *text)
{
    const struct resource *resource = resources_find(state->resources, name);

    if (strcmp(version, DEVICEPLUGIN_VERSION) != 0) {
        text_add(text, "requested API version \"");
        text_add_words(text, version, TEXT_WORDS_BYTES_MAX);
        text_add(text, "\" is not supported by kubelet. Supported version is [\"%s\"]",
                 DEVICEPLUGIN_VERSION);
        return CODE_UNKNOWN;
    }
    if (!resource_name_valid(name)) {
        text_add(text, "the ResourceName \"");
        text_add_words(text, name, TEXT_WORDS_BYTES_MAX);
        text_add(text, "\" is invalid");
        return CODE_UNKNOWN;
    }
    if (!is_path && !is_socket_name(socket_name)) {
        text_add(text, "the endpoint \"");
        text_add_words(text, socket_name, TEXT_WORDS_BYTES_MAX);
        text_add(text,
                 "\" is not the name of a socket in the plugin directory: expected 1 to %d "
                 "characters without '/', not \".\", \"..\" or \"%s\"",
                 SOCKET_NAME_BYTES_MAX, KUBELET_SOCKET);
        return CODE_INVALID_ARGUMENT;
    }
    if (resource && resource->builtin) {
        text_add(text, "resource %s is a built-in device of this node's configuration", name);
        return CODE_INVALID_ARGUMENT;
    }
    if (!resource && HASH_COUNT(state->resources) >= RESOURCES_MAX) {
        text_add(text, "%d resources are registered already", RESOURCES_MAX);
        return CODE_RESOURCE_EXHAUSTED;
    }
    if (!(resource && is_of_socket(resource, socket_name)) && !has_room(state, socket_name)) {
        text_add(text, "%d resources are registered with endpoint \"", SOCKET_RESOURCES_MAX);
        text_add_words(text, socket_name, TEXT_WORDS_BYTES_MAX);
        text_add(text, "\" already");
        return CODE_RESOURCE_EXHAUSTED;
    }
    return 0;
}

static void log_registering(struct state *state, const struct resource *resource)
{
    struct text text = {0};

    text_add(&text, "resource %s: plugin registers with endpoint \"", resource->name);
    text_add_words(&text, resource->endpoint.socket_name, TEXT_WORDS_BYTES_MAX);
    text_add(&text, "\"");
    state_log_about(state, LEVEL_INFO,
                    name_line(DEVICEMGR_LINE_REGISTERED, name_about_resource(resource->name)),
                    &text);
}

/* Not each, if there are too many; those between are counted. */
static void log_refused(struct state *state, const char *name, const struct text *reason)
{
    struct text text = *reason;

    if (paced_ms(state->registrations.paid_ms, state->now_ms, REFUSALS_TOLD_AT_ONCE,
                 REFUSAL_TOLD_EVERY_MS) > state->now_ms) {
        state->registrations.untold++;
        return;
    }
    if (state->registrations.untold > 0)
        text_add(&text, "; %zu registrations before it were refused without a line",
                 state->registrations.untold);
    state_log_about(state, LEVEL_WARNING, name_about_resource(name), &text);
    state->registrations.untold = 0;
    state->registrations.paid_ms = paced_paid_ms(state->registrations.paid_ms, state->now_ms,
                                                 REFUSALS_TOLD_AT_ONCE, REFUSAL_TOLD_EVERY_MS);
}

/* The newest registration's socket takes the place of what there is. */
static void dial_registered(struct state *state, struct resource *resource, uint64_t registration,
                            const char *socket_name, uint32_t uid)
{
    plugin_hang_up(state, &resource->endpoint);
    plugin_dial(state, resource, ENDPOINT_REGISTERED, socket_name, uid);
    endpoint_set_registration(&resource->endpoint, registration);
    log_registering(state, resource);
    wake_resource(&state->wakes, resource->name);
}

/* The plugin registers too often: its dial waits for its turn, and an older one that waits is not
 * made at all. */
static void dial_later(struct state *state, struct resource *resource, uint64_t registration,
                       const char *socket_name, uint32_t uid)
{
    struct text text = {0};

    if (!endpoint_put_off(&resource->endpoint, registration, socket_name, uid))
        return;
    text_add(&text, "resource %s: plugin registers too often, it is dialled at most every ",
             resource->name);
    text_add_duration(&text, DIAL_EVERY_MS);
    text_add(&text, " now");
    state_log_about(state, LEVEL_WARNING, name_about_resource(resource->name), &text);
}

void registration_dial_waiting(struct state *state, struct resource *resource)
{
    uint64_t registration;
    uint32_t uid;
    char *socket_name = endpoint_take_put_off(&resource->endpoint, &registration, &uid);

    dial_registered(state, resource, registration, socket_name, uid);
    free(socket_name);
}

void registration_begin(struct state *state, uint64_t registration, const char *version,
                        const char *socket_name, uint32_t uid, bool is_path, const char *name)
{
    struct text text = {0};
    struct resource *resource;
    int code;

    code = check_register(state, version, socket_name, is_path, name, &text);
    if (code != 0) {
        plugin_answer_call(state, registration, code, &text);
        log_refused(state, name, &text);
        return;
    }
    resource = resources_edit(&state->resources, name);
    if (!resource)
        resource = resources_add(&state->resources, name);
    text_add(&text, "a newer registration of resource %s has come", name);
    plugin_answer_all(state, &resource->endpoint, CODE_ABORTED, &text);
    if (resource->endpoint.put_off.socket_name ||
        endpoint_dial_ms(&resource->endpoint, state->now_ms) > state->now_ms)
        dial_later(state, resource, registration, socket_name, uid);
    else
        dial_registered(state, resource, registration, socket_name, uid);
}

void registration_cancelled(struct state *state, uint64_t registration)
{
    for (struct resource *r = state->resources; r; r = r->hh.next)
        endpoint_forget_registration(&r->endpoint, registration);
}
