/*
 * A resource's device list, as the feed gave it and as the kubelet gets it. No I/O.
 *
 * Kept packed: 100,000 devices as messages are 20 MiB, packed 3.
 */
#ifndef SHIM_BRIDGE_LIST_H
#define SHIM_BRIDGE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

/* Packed bytes; zeroed: none. */
struct packed {
    uint8_t *bytes;
    size_t len;
};

void packed_fini(struct packed *packed);
bool packed_equal(const struct packed *a, const struct packed *b);
/* Takes what is in *from, which is empty afterwards. */
void packed_move(struct packed *to, struct packed *from);
/* Packs any message; the caller gives *out to packed_fini(). */
void packed_make(struct packed *out, const ProtobufCMessage *message);

/* Packs a list of a peer's. Fields that we do not know are left out: protobuf-c packs some that it
 * does not read again. */
void list_pack(struct packed *out, const Bridge__V1__DeviceList *list);

/* The list of list_pack(), to be freed with bridge__v1__device_list__free_unpacked(); never NULL.
 */
Bridge__V1__DeviceList *list_unpack(const struct packed *list);

/*
 * The answer for ListAndWatch. `masked`: the mask has run out, devices that are not held are
 * unhealthy. The caller gives it to list_answer_free(); `list` is borrowed until then.
 */
V1beta1__ListAndWatchResponse *list_answer(const Bridge__V1__DeviceList *list, bool masked);
void list_answer_free(V1beta1__ListAndWatchResponse *answer);

#endif
