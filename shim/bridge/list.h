/*
 * A resource's device list, as the feed gave it and as the kubelet gets it. No I/O.
 *
 * What it takes is a peer's to decide, so nothing here ends the process for want of memory. A
 * device takes 12 bytes beside its id: 100,000 of them as messages are 20 MiB, here 3.
 */
#ifndef SHIM_BRIDGE_LIST_H
#define SHIM_BRIDGE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/bridge_v1.pb-c.h"

struct list;

/* NULL: out of memory. The caller gives it to list_free(). */
struct list *list_new(const Bridge__V1__DeviceList *message);
/* Accepts NULL. */
void list_free(struct list *list);

size_t list_len(const struct list *list);
/* Whether both have the same devices in the same places, with the same nodes, whatever their
 * health. */
bool list_same_devices(const struct list *a, const struct list *b);

/* Whether each is a change of one of its devices; if not, none may be applied. */
bool list_takes(const struct list *list, Bridge__V1__Change *const *changes, size_t len);
/* True: the kubelet is shown another health of one or more. `masked` as in list_health(). */
bool list_change(struct list *list, Bridge__V1__Change *const *changes, size_t len, bool masked);

/* The health of all devices as the kubelet is shown it, a byte for each: 1, healthy. `masked`: the
 * mask has run out, devices that are not held are unhealthy. */
void list_health(const struct list *list, bool masked, uint8_t *out);

/* A packed message; zeroed: none. */
struct packed {
    uint8_t *bytes;
    size_t len;
};

void packed_fini(struct packed *packed);

/* A ListAndWatchResponse with the health of list_health(). 0 or -ENOMEM; the caller gives *out to
 * packed_fini(). */
int list_answer(const struct list *list, const uint8_t *health, struct packed *out)
    __attribute__((warn_unused_result));
/* The DeviceList again, behind its length as the wire has it within another message. 0 or -ENOMEM,
 * likewise. */
int list_pack(const struct list *list, struct packed *out) __attribute__((warn_unused_result));

#endif
