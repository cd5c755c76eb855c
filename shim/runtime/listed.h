/*
 * The runtime's lists as the core takes them.
 */
#ifndef SHIM_RUNTIME_LISTED_H
#define SHIM_RUNTIME_LISTED_H

#include <stdbool.h>
#include <stddef.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "devicemgr/devicemgr.h"

struct listed {
    struct devicemgr_sandbox *sandboxes;
    size_t sandboxes_len;
    struct devicemgr_container *containers;
    size_t containers_len;
    struct devicemgr_annotation *annotations; /* of all of them */
};

/* Borrows the texts of both messages until listed_fini(). False: no memory, and nothing to fini. */
bool listed_init(struct listed *listed, const Runtime__V1__ListPodSandboxResponse *pods,
                 const Runtime__V1__ListContainersResponse *list)
    __attribute__((warn_unused_result));
void listed_fini(struct listed *listed);

/* Of a label or an annotation beside its bytes on the wire, which may be fewer than ten: the entry,
 * a key and a value that are pieces of the heap each (48, 32, 32), its place in the item's list and
 * in ours (8, 16); and something over. */
#define LISTED_PAIR_BYTES 160

/* What a list, either of those messages, takes in memory at most, with what listed_init() makes of
 * it, counted as far as whoever makes pods can make it large: labels, annotations and their
 * texts. */
size_t listed_bytes(const ProtobufCMessage *list);

/* Puts the items of a list, in either of those messages, behind those of another such one, whose
 * they are from then on. False: no memory; both are as they were. */
bool listed_join(ProtobufCMessage *list, ProtobufCMessage *more)
    __attribute__((warn_unused_result));

/* Created counts: it was made with its devices and may start at any moment. What the runtime itself
 * does not know may run. */
bool listed_may_run(Runtime__V1__ContainerState state);

#endif
