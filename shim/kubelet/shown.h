/*
 * What the kubelet is to be shown, in the form in which the feed sends it.
 *
 * A list is packed once, when the core says that it may differ, and goes out as it is to everyone;
 * one that turns out to be the same keeps its version. No I/O. Out of memory aborts.
 */
#ifndef SHIM_KUBELET_SHOWN_H
#define SHIM_KUBELET_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "devicemgr/devicemgr.h"
#include "shim/kubelet/displaced.h"
#include "shim/rpc/rpc.h"

/* The lists in one message. What is left of RPC_MESSAGE_BYTES_MAX takes the rest of it: at most
 * 1024 resources, whose names have at most 317 bytes (253 + 1 + 63), and 40 bytes of numbers. A
 * list comes from a plugin's message of at most RPC_MESSAGE_BYTES_MAX, in which a device takes more
 * bytes than here; one that is longer all the same is not shown. */
#define SHOWN_LISTS_BYTES_MAX (RPC_MESSAGE_BYTES_MAX - 512u * 1024)

struct shown_list {
    char *resource;
    uint64_t version; /* another one when the devices differ; ascends over all lists */
    uint64_t mask_end_ms;
    uint64_t core_version;
    uint8_t *bytes; /* a DeviceList, packed, behind its own length as the wire has it */
    size_t head;    /* bytes before the DeviceList, of which the last `prefix` are its length */
    size_t prefix;
    size_t len;     /* of the DeviceList */
    bool too_long;  /* not shown */
    size_t healthy; /* of its devices */
    struct displaced displaced;
    uint64_t lost; /* how often it was found so */
};

/* Starts zeroed. */
struct shown {
    struct shown_list *lists; /* in the order of names */
    size_t len;
    uint64_t version; /* of the last change of anything; 0: never updated */
    uint64_t core_version;
    bool expected; /* of one or more, a plugin's list is (struct devicemgr_shown) */
};

enum shown_change {
    SHOWN_SAME,
    SHOWN_CHANGED,
    SHOWN_NAMES, /* so did the names: a resource is new, or gone */
};

/* Takes over what the core shows now. Cheap if nothing changed. */
enum shown_change shown_update(struct shown *shown, const struct devicemgr *core);
void shown_fini(struct shown *shown);

/* The bridge is to register it anew. */
void shown_set_lost(struct shown *shown, struct shown_list *list);

/* The devices of one list. The caller frees it with bridge__v1__device_list__free_unpacked(). */
Bridge__V1__DeviceList *shown_unpack(const struct shown_list *list);

/* A message of Watch. Borrows `shown`, which must not change before shown_message_fini(). */
struct shown_message {
    Bridge__V1__WatchResponse response;
    Bridge__V1__Resource *resources;
    ProtobufCMessageUnknownField *lists;
    /* Whoever takes this message has all lists up to this version; shown->version: all there are.
     */
    uint64_t through;
};

/* For a reader that has all lists up to version `through`: all resources, and the lists it has not,
 * the oldest first, as many as fit. */
void shown_message_init(struct shown_message *message, const struct shown *shown, uint64_t through,
                        uint64_t mask_ms);
void shown_message_fini(struct shown_message *message);

#endif
