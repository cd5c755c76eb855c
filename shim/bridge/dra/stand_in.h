/*
 * One DRA driver at the kubelet, in the place of the real one: an endpoint with the services that
 * it has, and a socket in the kubelet's plugins_registry that leads there
 * (pkg/kubelet/pluginmanager).
 *
 * Both outlive the process, where a service manager keeps descriptors: the next one goes on with
 * the connections, and the kubelet sees a pause. Else it sees the registration's socket go and
 * another one come. The kubelet puts off what it failed to do at a socket's *path*, for minutes, so
 * a path is used only while what it was made for lives: it is named after the file of the endpoint,
 * and how often one was refused. A refused one is not gone on with: the next process makes another.
 */
#ifndef SHIM_BRIDGE_DRA_STAND_IN_H
#define SHIM_BRIDGE_DRA_STAND_IN_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "shim/bridge/feed_client.h"
#include "shim/fd_store.h"
#include "shim/health_words.h"
#include "shim/kubelet_registry.h"

/* What names of registrations begin with: those of processes before that nobody serves are
 * removed. */
#define STAND_IN_PREFIX KUBELET_REGISTRY_STAND_IN

struct stand_in;

/* What all drivers have in common; borrowed by each until its end. */
struct stand_in_world {
    uv_loop_t *loop;
    struct feed_client *feed;
    struct fd_store *store;
    const struct health_words *health;
    char *endpoint_dir;       /* ours */
    const char *registry_dir; /* the kubelet's plugins_registry */
    bool leaves;              /* stand_in_free() leaves to the next process what the store keeps */
};

/* Whether the kubelet has a connection to the endpoint of a process before, with which
 * stand_in_new() would go on. */
bool stand_in_is_left(const struct stand_in_world *world, const char *name);
/* Whether a process before has left its endpoint's socket, with which stand_in_new() would go
 * on. */
bool stand_in_is_kept(const struct stand_in_world *world, const char *name);

/* `services` as the driver registered them, in its order. NULL: there is no room for its sockets'
 * paths; said in the log. */
struct stand_in *stand_in_new(const struct stand_in_world *world, const char *name,
                              char *const *services, size_t services_len);

/* Ends its connections and calls, removes the sockets, frees; see also `leaves`. Accepts NULL. */
void stand_in_free(struct stand_in *stand_in);

/* Whether the kubelet has registered it: it has a connection to the endpoint. */
bool stand_in_is_registered(const struct stand_in *stand_in);
/* Whether no call of the kubelet's is under way. */
bool stand_in_is_idle(const struct stand_in *stand_in);
const char *stand_in_name(const struct stand_in *stand_in);
/* With the driver's own services; borrowed. */
Bridge__V1__Driver *stand_in_message(struct stand_in *stand_in);
bool stand_in_has_services(const struct stand_in *stand_in, char *const *services,
                           size_t services_len);
/* The driver has others now. Whoever has it registered calls on what it has chosen, which the
 * endpoint has, whatever the driver's are; whoever registers it later is told these. Only of health
 * that it did not have before the kubelet may have to hear: then stand_in_look() has it registered
 * anew, when no call is under way. */
void stand_in_set_services(struct stand_in *stand_in, char *const *services, size_t services_len);

/* Sees to it that its sockets are there, and to the calls that wait for a daemon. To be called
 * about every second, and when there is a daemon. */
void stand_in_look(struct stand_in *stand_in);
/* There are new words on the health of some devices. */
void stand_in_look_at_health(struct stand_in *stand_in);
/* Ends the kubelet's streams of it; one that comes later stays open. */
void stand_in_end_health(struct stand_in *stand_in);

#endif
