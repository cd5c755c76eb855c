/*
 * The device plugin service for one resource (cri-proto/deviceplugin_v1beta1.proto): what each of
 * the kubelet's calls is answered with. Allocate from the request alone, a preference by the
 * daemon, and ListAndWatch by the owner.
 */
#ifndef SHIM_BRIDGE_SERVICE_H
#define SHIM_BRIDGE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/bridge/feed_client.h"
#include "shim/bridge/kept_call.h"
#include "shim/bridge/preference.h"

/* All but `preferences`, which starts empty, is the owner's to fill and borrowed. */
struct service {
    const char *resource;
    struct feed_client *feed;
    const uint64_t *preferred_timeout_ms; /* it may change */
    /* ListAndWatch, from inside its handler. `resumed`: lists were sent on it by a process
     * before. */
    void (*watch)(void *user, struct kept_call *call, bool resumed);
    void *user;
    struct preference_list preferences;
};

/* For kept_server_new(), whose user is the service. */
#define SERVICE_METHODS_LEN 5
extern const struct kept_method SERVICE_METHODS[SERVICE_METHODS_LEN];

/* Forgets all calls, which are gone. */
void service_clear(struct service *service);

#endif
