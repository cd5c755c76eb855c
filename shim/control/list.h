/*
 * The answers to Resources, Plugins, Devices, Allocations, Pods, Orders, Drivers, Claims,
 * DriverDevices, Taints and Endings: a page of the device manager's list, as a message.
 */
#ifndef SHIM_CONTROL_LIST_H
#define SHIM_CONTROL_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "cri-proto/control_v1.pb-c.h"
#include "devicemgr/devicemgr.h"
#include "devicemgr/lists.h"
#include "devicemgr/shutdown.h"
#include "shim/health_words.h"
#include "shim/published.h"

/* A page that is being filled. What its message points to is the page's own, or the device
 * manager's, and counts until the next event. */
struct list {
    const ProtobufCMessage *response;

    /* private */
    const Control__V1__ListRequest *request;
    struct devicemgr_which which;
    size_t rows_max;
    size_t rows, bytes;
    struct list_block *blocks;
};

/* What drivers are to the kubelet. */
enum list_at_kubelet {
    LIST_AT_NO_KUBELET,
    LIST_SHOWN, /* it is to have the driver */
    LIST_REGISTERED,
};

/* What lists and other answers are made from, borrowed. */
struct list_from {
    const struct devicemgr *core;
    const struct health_words *health; /* of drivers' devices; NULL: none is known */
    bool wipes;                        /* somebody removes the slices of drivers that are away */
    enum list_at_kubelet (*at_kubelet)(void *user, const char *driver);
    /* The claims of a pod (its uid, "namespace/name", or its name in any), as far as it is known to
     * the cluster's agent; all called before return. NULL: nobody knows. */
    void (*pod_claims)(void *user, const char *pod,
                       void (*each)(void *to, const char *pod_namespace, const char *claim),
                       void *to);
    /* What the core would be told if the machine went down now; called before return, if anybody
     * knows. NULL: nobody does. */
    void (*shutdown_said)(void *user,
                          void (*told)(void *to, const struct devicemgr_shutdown_said *said),
                          void *to);
    /* What is published as a DRA driver's, and its slices, as the cluster has them (published.h);
     * all called before return. NULL: nothing is. */
    void (*published)(void *user, void (*each)(void *to, const struct published_pool *pool),
                      void *to);
    void (*slices)(void *user, const char *pool,
                   void (*each)(void *to, const struct published_slice *slice), void *to);
    void *user;
};

/* One for each list. False: the request's `after` is no place in it, and there is no message. */
typedef bool list_make(struct list *list, const struct list_from *from,
                       const Control__V1__ListRequest *request);
list_make list_resources, list_plugins, list_devices, list_allocations, list_pods, list_orders;
list_make list_drivers, list_claims, list_driver_devices, list_taints, list_endings;
/* Accepts one that is not made. */
void list_fini(struct list *list);

/* ---- for who makes them ---- */

/* Begins the page of a list whose keys have so many parts, of so many rows at most, or fewer if the
 * request says so, with an empty response, which is given out. NULL: the request's place has
 * others. */
void *list_begin(struct list *list, const Control__V1__ListRequest *request, size_t key_parts,
                 size_t rows_max, const ProtobufCMessageDescriptor *response)
    __attribute__((warn_unused_result));
/* Zeroed memory that lives as long as the page. */
void *list_alloc(struct list *list, size_t len, size_t bytes);
/* A text of the device manager's, which is only read. */
char *list_text(struct list *list, const char *text);
/* An id of a device, as it is told (told_id.h); borrowed, if it is told whole. */
char *list_id(struct list *list, const char *id);
/* The id in a request's place: one that was told cut becomes the one it was of. False: that one is
 * not there any more. */
bool list_find_id(const struct devicemgr *core, const char *resource, const char **id)
    __attribute__((warn_unused_result));
/* What an operator has set, for this reason, at that time of the core's; NULL: there is no reason,
 * nor anything set. */
Control__V1__Cordon *list_cordon(struct list *list, const char *reason, uint64_t at_s);
/* What its driver says of a device; NULL: nothing. */
Control__V1__DeviceHealth *list_health(struct list *list, const struct list_from *from,
                                       const char *driver, const char *pool, const char *device);
/* A row more, the message of a repeated field whose rows are *rows, *len of them. */
void list_add(struct list *list, void *row, void ***rows, size_t *len);
/* Whether the page has room for more; if not, `next` is made of the key of its last row. */
bool list_goes_on(struct list *list, const char *const *key, size_t key_parts, char ***next,
                  size_t *next_len);

#endif
