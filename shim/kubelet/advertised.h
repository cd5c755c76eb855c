/*
 * What the kubelet is to be shown, in the form in which the feed sends it.
 *
 * A list is packed once, when the core says that it may differ, and goes out as it is to everyone;
 * one that turns out to be the same keeps its version. No I/O. Out of memory aborts.
 */
#ifndef SHIM_KUBELET_ADVERTISED_H
#define SHIM_KUBELET_ADVERTISED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "devicemgr/devicemgr.h"
#include "shim/kubelet/advertised_list.h"

/* Starts zeroed. */
struct advertised {
    struct advertised_list *lists; /* in the order of names */
    size_t len;
    uint64_t version; /* of the last change of anything; 0: never updated */
    uint64_t core_version;
    const Bridge__V1__Settings *settings; /* for the bridge; NULL: none */
    bool expected; /* of one or more, a plugin's list is (struct devicemgr_shown) */
};

enum advertised_change {
    ADVERTISED_SAME,
    ADVERTISED_CHANGED,
    ADVERTISED_NAMES, /* so did the names: a resource is new, or gone */
};

/* Takes over what the core shows now. Cheap if nothing changed. */
enum advertised_change advertised_update(struct advertised *advertised,
                                         const struct devicemgr *core);
void advertised_fini(struct advertised *advertised);

/* Borrowed until others are set, or the end. Who has all lists is told of them, too. */
void advertised_set_settings(struct advertised *advertised, const Bridge__V1__Settings *settings);

/* The bridge is to register it anew. */
void advertised_set_lost(struct advertised *advertised, struct advertised_list *list);

/* A message of Watch. Borrows `advertised`, which must not change before
 * advertised_message_fini(). */
struct advertised_message {
    Bridge__V1__WatchResponse response;
    Bridge__V1__Resource *resources;
    ProtobufCMessageUnknownField *lists;
    Bridge__V1__Change *changes; /* of all resources, and pointers to each */
    Bridge__V1__Change **change_pointers;
    /* Whoever takes this message has all lists up to this version; advertised->version: all there
     * are.
     */
    uint64_t through;
};

/* What a reader has, and takes. */
struct advertised_reader {
    uint64_t through;   /* it has all lists up to that version */
    bool takes_changes; /* in place of a list of which it has most */
};

/* For such a reader: all resources, and the lists or changes that it has not, the oldest first, as
 * many as fit. */
void advertised_message_init(struct advertised_message *message,
                             const struct advertised *advertised,
                             const struct advertised_reader *reader, uint64_t mask_ms);
void advertised_message_fini(struct advertised_message *message);

#endif
