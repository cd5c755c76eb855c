#include "shim/bridge/endpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/resource_name.h"
#include "shim/bridge/enrolment.h"
#include "shim/bridge/kept_server.h"
#include "shim/bridge/limits.h"
#include "shim/bridge/list_stream.h"
#include "shim/bridge/names.h"
#include "shim/bridge/service.h"
#include "shim/log.h"
#include "shim/must.h"

/* Who has opened the list's stream. */
struct opener {
    pid_t pid;
    unsigned epoch; /* of the registration then, if that was in this process; */
    bool resumed;   /* else its */
    struct file_identity file;
    uint64_t since_ms;
};

struct endpoint {
    const struct endpoint_world *world;
    char *resource;
    char *name; /* of its socket, below the kubelet's directory */
    struct kept_server *server;
    int listen_error;
    struct offer offer;
    struct enrolment enrolment;
    struct list_stream stream;
    struct opener opener; /* while it is open */
    struct service service;
    unsigned handles;
};

static void tell_changed(void *user)
{
    struct endpoint *endpoint = user;

    endpoint->world->changed(endpoint->world->user);
}

/* ---- the list's stream ---- */

/* Whether the stream is one of the kubelet's that we are connected to. */
static bool stream_current(const struct endpoint *endpoint)
{
    const struct registration *registration = endpoint->world->registration;

    const struct opener *opener = &endpoint->opener;
    struct file_identity file = registration_file(registration);

    return endpoint->stream.call && registration_connected(registration) &&
           opener->pid == registration_pid(registration) &&
           (opener->resumed ? file_identity_is(&opener->file, &file)
                            : opener->epoch == registration_epoch(registration));
}

static void on_stream_ended(void *user)
{
    struct endpoint *endpoint = user;

    list_stream_clear(&endpoint->stream);
    enrolment_stream_ended(&endpoint->enrolment,
                           uv_now(endpoint->world->loop) - endpoint->opener.since_ms);
    tell_changed(endpoint);
}

/* The kubelet has taken its end for that of whichever it registered last. */
static void on_older_ended(void *user)
{
    struct endpoint *endpoint = user;

    if (!endpoint->stream.call)
        return;
    kept_call_finish(endpoint->stream.call, RPC_ABORTED, "an older ListAndWatch has ended");
    on_stream_ended(endpoint);
}

/* For a newer one. The older of the same kubelet is left open, also by the next process, with
 * nothing sent on it any more: to end it is to have the newer disconnected. It ends with its
 * connection, see disconnect(). */
static void stream_leave(struct endpoint *endpoint)
{
    struct kept_call *call = endpoint->stream.call;
    struct list_note note = list_stream_noted(call);

    if (stream_current(endpoint)) {
        note.left = true;
        list_stream_note(call, &note);
        kept_call_on_cancel(call, on_older_ended, endpoint);
    } else {
        kept_call_finish(call, RPC_ABORTED, "there is a newer ListAndWatch");
    }
    list_stream_clear(&endpoint->stream);
}

/* Of a stream that the process before has had, its note says whose; of a new one, that is noted. */
static struct opener opener_of(const struct endpoint *endpoint, struct kept_call *call, pid_t pid,
                               bool resumed)
{
    struct list_note note = {.kubelet = registration_file(endpoint->world->registration)};

    if (resumed)
        note = list_stream_noted(call);
    else
        list_stream_note(call, &note);
    return (struct opener){.pid = pid,
                           .epoch = registration_epoch(endpoint->world->registration),
                           .resumed = resumed,
                           .file = note.kubelet,
                           .since_ms = uv_now(endpoint->world->loop)};
}

static void on_list_and_watch(void *user, struct kept_call *call, bool resumed)
{
    struct endpoint *endpoint = user;
    struct ucred peer;

    if (resumed && list_stream_noted(call).left) {
        kept_call_on_cancel(call, on_older_ended, endpoint);
        return;
    }
    kept_call_peer(call, &peer);
    if (stream_current(endpoint) && peer.pid != endpoint->opener.pid) {
        kept_call_finish(call, RPC_FAILED_PRECONDITION, "another process has the list");
        return;
    }
    if (endpoint->stream.call)
        stream_leave(endpoint);
    endpoint->opener = opener_of(endpoint, call, peer.pid, resumed);
    list_stream_open(&endpoint->stream, call, resumed);
    kept_call_on_cancel(call, on_stream_ended, endpoint);
    if (stream_current(endpoint)) /* not a late one of the kubelet before */
        enrolment_stream_opened(&endpoint->enrolment);
    list_stream_update(&endpoint->stream);
}

/* ---- the kubelet ---- */

static uint64_t disconnect(void *user)
{
    struct endpoint *endpoint = user;
    uint64_t leave_ms = kept_server_disconnect(endpoint->server);

    service_clear(&endpoint->service);
    list_stream_clear(&endpoint->stream);
    return leave_ms;
}

static const struct enrolment_ops ENROLMENT_OPS = {.disconnect = disconnect,
                                                   .changed = tell_changed};

void endpoint_kubelet_came(struct endpoint *endpoint)
{
    enrolment_kubelet_came(&endpoint->enrolment, stream_current(endpoint));
}

void endpoint_kubelet_went(struct endpoint *endpoint)
{
    enrolment_kubelet_went(&endpoint->enrolment);
}

void endpoint_register_anew(struct endpoint *endpoint)
{
    if (endpoint->enrolment.state != ENROLMENT_SERVING)
        return;
    log_info("%s: registering anew", endpoint->resource);
    stream_leave(endpoint);
    enrolment_stream_left(&endpoint->enrolment);
    tell_changed(endpoint);
}

/* ---- the socket ---- */

void endpoint_listen(struct endpoint *endpoint)
{
    int result = kept_server_listen(endpoint->server);

    /* ENOENT: the kubelet has not made its directory yet. */
    if (result < 0 && result != -ENOENT && result != endpoint->listen_error)
        log_warning("%s: %s/%s: %s", endpoint->resource, endpoint->world->kubelet_dir,
                    endpoint->name, strerror(-result));
    endpoint->listen_error = result < 0 ? result : 0;
    enrolment_set_socket(&endpoint->enrolment, result >= 0);
}

/* ---- from the feed ---- */

/* The offer may be another one. */
static void offer_again(struct endpoint *endpoint)
{
    list_stream_update(&endpoint->stream);
    if (endpoint->offer.list)
        enrolment_set_list(&endpoint->enrolment);
}

int endpoint_update(struct endpoint *endpoint, const Bridge__V1__Resource *message, bool masked)
{
    bool flips = offer_set_masked(&endpoint->offer, masked);
    int result = offer_take(&endpoint->offer, message);

    if (flips || message->list || message->n_changes > 0)
        offer_again(endpoint);
    return result < 0 ? result : flips || result > 0;
}

void endpoint_set_masked(struct endpoint *endpoint, bool masked)
{
    if (offer_set_masked(&endpoint->offer, masked))
        offer_again(endpoint);
}

void endpoint_forget_version(struct endpoint *endpoint)
{
    offer_forget_version(&endpoint->offer);
    list_stream_forget_version(&endpoint->stream);
}

const struct offer *endpoint_offer(const struct endpoint *endpoint)
{
    return &endpoint->offer;
}

/* ---- to the daemon ---- */

void endpoint_report(const struct endpoint *endpoint, struct endpoint_report *out)
{
    *out = (struct endpoint_report){.refused = enrolment_refused(&endpoint->enrolment)};
    if (!stream_current(endpoint))
        return;
    out->registered = true;
    out->version = endpoint->stream.version;
    out->stored = endpoint->stream.stored;
}

size_t endpoint_unstored(const struct endpoint *endpoint)
{
    return endpoint->stream.unstored;
}

void endpoint_set_stored(struct endpoint *endpoint)
{
    list_stream_set_stored(&endpoint->stream);
}

/* ---- life ---- */

static const char *socket_name(const struct endpoint *endpoint)
{
    return endpoint->name + strlen(NAMES_SUBDIRECTORY "/");
}

/* Its directory is in the kubelet's, which plugins' containers mount. */
static void make_server(struct endpoint *endpoint)
{
    const struct socket_place place = {.dir = endpoint->world->kubelet_dir,
                                       .below = NAMES_SUBDIRECTORY,
                                       .name = socket_name(endpoint)};

    endpoint->server =
        must(kept_server_new(endpoint->world->loop, &place, endpoint->world->store, SERVICE_METHODS,
                             SERVICE_METHODS_LEN, &endpoint->service));
}

struct endpoint *endpoint_new(const struct endpoint_world *world, const char *resource)
{
    char *name = resource_name_valid(resource) ? name_endpoint(world->kubelet_dir, resource) : NULL;
    struct endpoint *endpoint;

    if (!name) {
        log_warning("%.*s: no name for a resource, or no room for its socket in %s; not shown",
                    RESOURCE_NAME_BYTES_MAX, resource, world->kubelet_dir);
        return NULL;
    }
    endpoint = must(calloc(1, sizeof *endpoint));
    endpoint->world = world;
    endpoint->resource = must(strdup(resource));
    endpoint->name = name;
    endpoint->service = (struct service){.resource = endpoint->resource,
                                         .feed = world->feed,
                                         .preferred_timeout_ms = world->preferred_timeout_ms,
                                         .watch = on_list_and_watch,
                                         .user = endpoint};
    enrolment_init(&endpoint->enrolment, world->loop, world->registration, endpoint->resource,
                   endpoint->name, &ENROLMENT_OPS, endpoint);
    list_stream_init(&endpoint->stream, world->loop, endpoint->resource, &endpoint->offer,
                     tell_changed, endpoint);
    endpoint->handles = 2;
    make_server(endpoint);
    kept_server_go_on(endpoint->server);
    endpoint_listen(endpoint);
    return endpoint;
}

static void on_closed(uv_handle_t *handle)
{
    struct endpoint *endpoint = handle->data;

    if (--endpoint->handles > 0)
        return;
    offer_fini(&endpoint->offer);
    free(endpoint->resource);
    free(endpoint->name);
    free(endpoint);
}

void endpoint_free(struct endpoint *endpoint)
{
    if (!endpoint)
        return;
    kept_server_close(endpoint->server, endpoint->world->leaves);
    service_clear(&endpoint->service);
    enrolment_fini(&endpoint->enrolment, on_closed);
    list_stream_fini(&endpoint->stream, on_closed);
}
