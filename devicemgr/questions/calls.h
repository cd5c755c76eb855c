/*
 * Questions to the plugins, for creates: which call was made for whom.
 */
#ifndef DEVICEMGR_QUESTIONS_CALLS_H
#define DEVICEMGR_QUESTIONS_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/mem.h"

struct action;
struct ids;
struct resource;
struct state;

enum call_kind {
    CALL_ALLOCATE,
    CALL_PREFER,
    CALL_PRESTART,
};

/* One under way. */
struct call {
    uint64_t number;
    enum call_kind kind;
    uint64_t create; /* who asked, */
    size_t item;     /* and for which of the resources of its demand */
    uint64_t endpoint;
    char *socket_name;
    uint64_t generation; /* of the resource when it was made */
    uint64_t started_ms;
    UT_hash_handle hh;
};

struct calls {
    struct state *state;
    struct call *by_number;
};

void calls_fini(struct calls *calls);

/* Begins one on the resource's plugin, about the devices `ids`, and numbers it; `asks` says who asks
 * what: kind, create, item. The action's other fields are for the caller to fill. */
struct action *calls_start(struct calls *calls, const struct call *asks,
                           const struct resource *resource, const struct ids *ids,
                           uint64_t timeout_ms);
void calls_cancel(struct calls *calls, uint64_t number);
/* NULL: it is over. */
const struct call *calls_find(const struct calls *calls, uint64_t number);
/* It is over: for call_free(). NULL: there is none of this number and kind. */
struct call *calls_take(struct calls *calls, uint64_t number, enum call_kind kind);
/* Likewise one that was made on this connection, which is over. */
struct call *calls_take_of_endpoint(struct calls *calls, uint64_t endpoint);
void call_free(struct call *call);
/* As the plugin's API has it. */
const char *call_name(enum call_kind kind);
/* How many are under way. */
size_t calls_len(const struct calls *calls);

#endif
