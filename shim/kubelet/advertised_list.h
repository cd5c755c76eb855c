/*
 * One resource's device list as the bridge is told it: packed, with what has changed in it of late.
 *
 * A pod that comes or goes changes one flag of one device. A list may have 100,000, so that is
 * found without packing it anew, and goes out by itself to whoever has the rest.
 */
#ifndef SHIM_KUBELET_ADVERTISED_LIST_H
#define SHIM_KUBELET_ADVERTISED_LIST_H

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
#define ADVERTISED_LISTS_BYTES_MAX (RPC_MESSAGE_BYTES_MAX - 512u * 1024)

/* So many of a list's latest changes are kept; who has missed more gets it whole. */
#define ADVERTISED_LATEST_MAX 256

/* A device that is another than before, and how it is since. */
struct advertised_difference {
    uint64_t version; /* of the list then */
    uint32_t place;
    bool healthy;
    bool held;
};

struct advertised_list {
    char *resource;
    uint64_t version; /* another one when the devices differ; ascends over all lists */
    uint64_t layout;  /* the version when its devices, their places or nodes were others */
    uint64_t known;   /* who has it as of that version, or later, needs only the latest */
    struct advertised_difference *latest; /* a device at most once, the latest last */
    size_t latest_len;
    uint64_t mask_end_ms;
    uint64_t core_version;
    uint64_t base;    /* the core's; 0: every device must be looked at */
    uint32_t *at;     /* where each device is in `bytes`, behind its tag */
    uint32_t *marked; /* the places of those that somebody held at the last look */
    size_t marked_len;
    size_t marked_room;
    uint8_t *bytes; /* a DeviceList, packed, behind its own length as the wire has it */
    size_t head;    /* bytes before the DeviceList, of which the last `prefix` are its length */
    size_t prefix;
    size_t len;     /* of the DeviceList */
    bool too_long;  /* not shown */
    size_t healthy; /* of its devices */
    struct displaced displaced;
    uint64_t lost; /* how often it was found so */
};

/* Takes over what the core shows now, whose base is that. True: it is another one, and of this
 * version, which is above those of all lists before. */
bool advertised_list_update(struct advertised_list *list, const struct devicemgr *core,
                            uint64_t base, uint64_t version);
void advertised_list_fini(struct advertised_list *list);

/* The devices of one list. The caller frees it with bridge__v1__device_list__free_unpacked(). */
Bridge__V1__DeviceList *advertised_list_unpack(const struct advertised_list *list);

#endif
