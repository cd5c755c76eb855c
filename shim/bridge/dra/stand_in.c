#include "shim/bridge/dra/stand_in.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "cri-proto/dra_health_v1alpha1.pb-c.h"
#include "cri-proto/methods.h"
#include "cri-proto/pluginregistration_v1.pb-c.h"
#include "shim/bridge/dra/claims_call.h"
#include "shim/bridge/dra/health_streams.h"
#include "shim/bridge/kept_connection.h"
#include "shim/bridge/kept_server.h"
#include "shim/bridge/limits.h"
#include "shim/bridge/names.h"
#include "shim/file_identity.h"
#include "shim/hash.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/path.h"
#include "shim/pause.h"
#include "shim/rpc/stored_listener.h"

#define TYPE "DRAPlugin" /* pkg/kubelet/pluginmanager's type of DRA drivers */
#define HEALTH_SERVICE "v1alpha1.DRAResourceHealth"
#define DIR_MODE 0755 /* the kubelet's own of plugins_registry */

/* Those that a kubelet knows, for a driver that has none of them. */
static const char *const KNOWN[] = {"v1.DRAPlugin", "v1beta1.DRAPlugin"};
#define KNOWN_LEN (sizeof KNOWN / sizeof *KNOWN)

/* The registration's socket. */
struct door {
    struct kept_server *server; /* NULL: not yet */
    char *name;
    struct file_identity endpoint; /* which it leads to */
    bool refused;
    uint64_t again_ms; /* the loop's time: when it is made anew; only if `refused` */
    uint64_t pause_ms;
    unsigned count; /* of those that were refused, modulo STAND_IN_DOORS */
};

struct stand_in {
    const struct stand_in_world *world;
    char *name;
    char **services; /* as the kubelet is told */
    size_t services_len;
    char **own_services; /* as the driver registered them */
    size_t own_services_len;
    bool health_untold; /* the kubelet may have registered it without */
    Bridge__V1__Driver message;
    char *endpoint_name, *endpoint_path;
    struct kept_server *endpoint;
    struct door door;
    struct claims_calls calls;
    struct health_streams streams;
    int error; /* of the sockets, as it was said last */
};

/* ---- the endpoint ---- */

static void on_prepare(struct kept_call *call, const ProtobufCMessage *message, void *user)
{
    const Dra__V1__NodePrepareResourcesRequest *request = (const void *)message;
    struct stand_in *stand_in = user;

    claims_call_start(&stand_in->calls, true, request->claims, request->n_claims, call);
}

static void on_unprepare(struct kept_call *call, const ProtobufCMessage *message, void *user)
{
    const Dra__V1__NodeUnprepareResourcesRequest *request = (const void *)message;
    struct stand_in *stand_in = user;

    claims_call_start(&stand_in->calls, false, request->claims, request->n_claims, call);
}

static void on_health(struct kept_call *call, const ProtobufCMessage *message, void *user)
{
    struct stand_in *stand_in = user;

    health_streams_add(&stand_in->streams, call, !message);
}

/* A method's number is kept (kept_call.h). */
static const struct kept_method METHODS[] = {
    {DRA_V1_PREPARE, &dra__v1__node_prepare_resources_request__descriptor, on_prepare},
    {DRA_V1_UNPREPARE, &dra__v1__node_unprepare_resources_request__descriptor, on_unprepare},
    {DRA_V1BETA1_PREPARE, &dra__v1__node_prepare_resources_request__descriptor, on_prepare},
    {DRA_V1BETA1_UNPREPARE, &dra__v1__node_unprepare_resources_request__descriptor, on_unprepare},
    {DRA_HEALTH_V1ALPHA1_WATCH, &dra_health__v1alpha1__node_watch_resources_request__descriptor,
     on_health},
};

static void endpoint_make(struct stand_in *stand_in)
{
    const struct stand_in_world *world = stand_in->world;
    const struct socket_place place = {
        .dir = world->endpoint_dir, .dir_mode = DIR_MODE, .name = stand_in->endpoint_name};

    stand_in->endpoint = must(kept_server_new(world->loop, &place, world->store, METHODS,
                                              sizeof METHODS / sizeof *METHODS, stand_in));
    kept_server_go_on(stand_in->endpoint);
}

/* ---- the registration ---- */

static void on_get_info(struct kept_call *call, const ProtobufCMessage *request, void *user)
{
    Pluginregistration__PluginInfo info = PLUGINREGISTRATION__PLUGIN_INFO__INIT;
    struct stand_in *stand_in = user;

    (void)request;
    info.type = (char *)TYPE;
    info.name = stand_in->name;
    info.endpoint = stand_in->endpoint_path;
    info.supported_versions = stand_in->services;
    info.n_supported_versions = stand_in->services_len;
    kept_call_answer(call, &info.base);
}

/* Once: the kubelet tries one that it refuses again by itself, after pauses that grow. */
static void put_off(struct stand_in *stand_in)
{
    struct door *door = &stand_in->door;

    if (door->refused)
        return;
    door->refused = true;
    door->pause_ms = pause_longer(door->pause_ms, STAND_IN_AGAIN_MS_MIN, STAND_IN_AGAIN_MS_MAX);
    door->again_ms = uv_now(stand_in->world->loop) + door->pause_ms;
}

static void on_notify(struct kept_call *call, const ProtobufCMessage *message, void *user)
{
    const Pluginregistration__RegistrationStatus *status = (const void *)message;
    Pluginregistration__RegistrationStatusResponse none =
        PLUGINREGISTRATION__REGISTRATION_STATUS_RESPONSE__INIT;
    struct stand_in *stand_in = user;

    if (status->plugin_registered)
        log_info("driver %s: the kubelet has registered it", stand_in->name);
    else
        log_warning("driver %s: the kubelet does not register it: %s", stand_in->name,
                    status->error);
    if (status->plugin_registered) {
        stand_in->door.refused = false;
        stand_in->door.pause_ms = 0;
    } else {
        put_off(stand_in);
    }
    kept_server_set_kept(stand_in->door.server, status->plugin_registered);
    kept_call_answer(call, &none.base);
}

static const struct kept_method DOOR_METHODS[] = {
    {PLUGINREGISTRATION_GET_INFO, &pluginregistration__info_request__descriptor, on_get_info},
    {PLUGINREGISTRATION_NOTIFY, &pluginregistration__registration_status__descriptor, on_notify},
};

static void door_close(struct stand_in *stand_in, bool leaves)
{
    struct door *door = &stand_in->door;

    kept_server_close(door->server, leaves);
    door->server = NULL;
}

/* Another one for another file, and for each that was refused. NULL: no room. */
static char *door_name(const char *dir, const char *driver, const struct file_identity *endpoint,
                       unsigned count)
{
    uint64_t hash = hash_word(hash_bytes(HASH_BEGIN, endpoint, sizeof *endpoint), count);
    char suffix[32];

    snprintf(suffix, sizeof suffix, "-%08" PRIx32 ".sock", (uint32_t)(hash >> 32));
    return name_socket(dir, STAND_IN_PREFIX, driver, suffix);
}

/* Whether a process before has left one of that count; then *count_out is what to go on with: the
 * next one, if it was refused. */
static bool door_is_left(const struct stand_in *stand_in, const struct file_identity *endpoint,
                         unsigned count, unsigned *count_out)
{
    const struct stand_in_world *world = stand_in->world;
    char *name = door_name(world->registry_dir, stand_in->name, endpoint, count);
    bool handed = name && stored_listener_handed(world->store, name), there = handed;

    if (name && !handed) {
        struct file_identity file = file_identity_at(world->registry_dir, name, S_IFSOCK);

        there = !file_identity_is_none(&file);
    }
    free(name);
    if (there)
        *count_out = handed || stand_in_is_registered(stand_in) ? count : count + 1;
    return there;
}

static unsigned door_first_count(const struct stand_in *stand_in,
                                 const struct file_identity *endpoint)
{
    unsigned first = 0;

    for (unsigned count = 0; count < STAND_IN_DOORS; count++) {
        if (door_is_left(stand_in, endpoint, count, &first))
            break;
    }
    return first;
}

static void door_make(struct stand_in *stand_in, const struct file_identity *endpoint)
{
    const struct stand_in_world *world = stand_in->world;
    struct door *door = &stand_in->door;
    struct socket_place place = {.dir = world->registry_dir, .dir_mode = DIR_MODE};

    if (!door->name)
        door->count = door_first_count(stand_in, endpoint);
    door->count = (door->count + door->refused) % STAND_IN_DOORS;
    free(door->name);
    door->name = door_name(world->registry_dir, stand_in->name, endpoint, door->count);
    place.name = door->name;
    door->refused = false;
    door->endpoint = *endpoint;
    door->server = must(kept_server_new(world->loop, &place, world->store, DOOR_METHODS,
                                        sizeof DOOR_METHODS / sizeof *DOOR_METHODS, stand_in));
    kept_server_go_on(door->server);
}

/* ---- both ---- */

static void say(struct stand_in *stand_in, int err)
{
    if (err < 0 && err != stand_in->error)
        log_warning("driver %s: cannot be shown to the kubelet: %s/%s, %s: %s", stand_in->name,
                    stand_in->world->endpoint_dir, stand_in->endpoint_name,
                    stand_in->world->registry_dir, strerror(-err));
    stand_in->error = err < 0 ? err : 0;
}

/* The endpoint first: the kubelet calls it as soon as it has seen the other one. */
static int look(struct stand_in *stand_in)
{
    struct door *door = &stand_in->door;
    int err = kept_server_listen(stand_in->endpoint);
    bool again = door->refused && uv_now(stand_in->world->loop) >= door->again_ms;
    struct file_identity file;

    if (err < 0)
        return err;
    file = file_identity_at(stand_in->world->endpoint_dir, stand_in->endpoint_name, S_IFSOCK);
    if (!door->server || !file_identity_is(&file, &door->endpoint) || again) {
        door_close(stand_in, false);
        door_make(stand_in, &file);
    }
    return kept_server_listen(door->server);
}

/* A kubelet up to 1.36 asks every driver for its health, a later one those that had announced it
 * when they were registered. With another endpoint it registers it anew. */
static void tell_of_health(struct stand_in *stand_in)
{
    if (!LIST_EMPTY(&stand_in->streams.list))
        stand_in->health_untold = false;
    if (!stand_in->health_untold || !stand_in_is_idle(stand_in))
        return;
    log_info("driver %s: withdrawn from the kubelet, which does not know of its health yet",
             stand_in->name);
    stand_in->health_untold = false;
    kept_server_close(stand_in->endpoint, false);
    endpoint_make(stand_in);
}

void stand_in_look(struct stand_in *stand_in)
{
    tell_of_health(stand_in);
    say(stand_in, look(stand_in));
    claims_calls_look(&stand_in->calls);
    health_streams_look(&stand_in->streams);
}

void stand_in_look_at_health(struct stand_in *stand_in)
{
    health_streams_look(&stand_in->streams);
}

void stand_in_end_health(struct stand_in *stand_in)
{
    health_streams_end(&stand_in->streams);
}

/* ---- life ---- */

static char **texts_copy(char *const *texts, size_t len)
{
    char **copy = must(calloc(len + 1, sizeof *copy));

    for (size_t i = 0; i < len; i++)
        copy[i] = must(strdup(texts[i]));
    return copy;
}

static void texts_free(char **texts, size_t len)
{
    for (size_t i = 0; i < len; i++)
        free(texts[i]);
    free(texts);
}

static bool is_known(const char *service)
{
    for (size_t i = 0; i < KNOWN_LEN; i++) {
        if (strcmp(service, KNOWN[i]) == 0)
            return true;
    }
    return false;
}

static bool has_health(const struct stand_in *stand_in)
{
    for (size_t i = 0; i < stand_in->services_len; i++) {
        if (strcmp(stand_in->services[i], HEALTH_SERVICE) == 0)
            return true;
    }
    return false;
}

static void forget_services(struct stand_in *stand_in)
{
    texts_free(stand_in->services, stand_in->services_len);
    texts_free(stand_in->own_services, stand_in->own_services_len);
    stand_in->services_len = 0;
}

/* What the kubelet is told: of the driver's services those that it knows, in the driver's order.
 * One of an older release has others, which are translated (shim/dra). */
static void set_services(struct stand_in *stand_in, char *const *services, size_t len)
{
    bool known = false;

    stand_in->own_services = texts_copy(services, len);
    stand_in->own_services_len = len;
    stand_in->services = must(calloc(len + KNOWN_LEN, sizeof *stand_in->services));
    for (size_t i = 0; i < len; i++) {
        if (!is_known(services[i]) && strcmp(services[i], HEALTH_SERVICE) != 0)
            continue;
        known = known || is_known(services[i]);
        stand_in->services[stand_in->services_len++] = must(strdup(services[i]));
    }
    for (size_t i = 0; !known && i < KNOWN_LEN; i++)
        stand_in->services[stand_in->services_len++] = must(strdup(KNOWN[i]));
    stand_in->message.services = stand_in->own_services;
    stand_in->message.n_services = len;
}

void stand_in_set_services(struct stand_in *stand_in, char *const *services, size_t services_len)
{
    bool untold = stand_in->health_untold || !has_health(stand_in);

    forget_services(stand_in);
    set_services(stand_in, services, services_len);
    stand_in->health_untold = untold && has_health(stand_in);
    stand_in->door.again_ms = stand_in->door.pause_ms = 0; /* if it was refused for the others */
}

static char *endpoint_name_of(const struct stand_in_world *world, const char *name)
{
    return name_socket(world->endpoint_dir, "", name, ".sock");
}

bool stand_in_is_left(const struct stand_in_world *world, const char *name)
{
    char *endpoint_name = endpoint_name_of(world, name);
    bool is = endpoint_name && kept_connections_handed(world->store, endpoint_name);

    free(endpoint_name);
    return is;
}

bool stand_in_is_kept(const struct stand_in_world *world, const char *name)
{
    char *endpoint_name = endpoint_name_of(world, name);
    bool is = endpoint_name && stored_listener_handed(world->store, endpoint_name);

    free(endpoint_name);
    return is;
}

struct stand_in *stand_in_new(const struct stand_in_world *world, const char *name,
                              char *const *services, size_t services_len)
{
    char *endpoint_name = endpoint_name_of(world, name),
         *first_door = door_name(world->registry_dir, name, &(struct file_identity){0}, 0);
    struct stand_in *stand_in;

    free(first_door);
    if (!endpoint_name || !first_door) {
        log_warning("driver %s: no room for its sockets in %s or %s; not shown", name,
                    world->endpoint_dir, world->registry_dir);
        free(endpoint_name);
        return NULL;
    }
    stand_in = must(calloc(1, sizeof *stand_in));
    stand_in->world = world;
    stand_in->name = must(strdup(name));
    bridge__v1__driver__init(&stand_in->message);
    stand_in->message.name = stand_in->name;
    stand_in->message.serves = true;
    set_services(stand_in, services, services_len);
    stand_in->endpoint_name = endpoint_name;
    stand_in->endpoint_path = path_join(world->endpoint_dir, endpoint_name);
    stand_in->calls =
        (struct claims_calls){.driver = stand_in->name, .feed = world->feed, .loop = world->loop};
    stand_in->streams = (struct health_streams){.driver = stand_in->name, .words = world->health};
    endpoint_make(stand_in);
    stand_in_look(stand_in);
    return stand_in;
}

void stand_in_free(struct stand_in *stand_in)
{
    if (!stand_in)
        return;
    door_close(stand_in, stand_in->world->leaves);
    kept_server_close(stand_in->endpoint, stand_in->world->leaves);
    claims_calls_clear(&stand_in->calls);
    health_streams_clear(&stand_in->streams);
    forget_services(stand_in);
    free(stand_in->door.name);
    free(stand_in->endpoint_name);
    free(stand_in->endpoint_path);
    free(stand_in->name);
    free(stand_in);
}

bool stand_in_is_registered(const struct stand_in *stand_in)
{
    return kept_server_is_connected(stand_in->endpoint);
}

bool stand_in_is_idle(const struct stand_in *stand_in)
{
    return LIST_EMPTY(&stand_in->calls.list);
}

const char *stand_in_name(const struct stand_in *stand_in)
{
    return stand_in->name;
}

Bridge__V1__Driver *stand_in_message(struct stand_in *stand_in)
{
    return &stand_in->message;
}

bool stand_in_has_services(const struct stand_in *stand_in, char *const *services,
                           size_t services_len)
{
    if (services_len != stand_in->own_services_len)
        return false;
    for (size_t i = 0; i < services_len; i++) {
        if (strcmp(services[i], stand_in->own_services[i]) != 0)
            return false;
    }
    return true;
}
