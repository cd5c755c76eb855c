/*
 * Questions to the plugins, for creates: which call was made for whom.
 */
#ifndef DEVICEMGR_QUESTIONS_CALLS_H
#define DEVICEMGR_QUESTIONS_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/ids.h"
#include "devicemgr/things/mem.h"

struct resource;
struct state;

enum call_kind {
    CALL_ALLOCATE,
    CALL_PREFER,
    CALL_PRESTART,
};

/* What is asked. */
struct call_question {
    enum call_kind kind;
    uint64_t create;       /* who asks, */
    size_t item;           /* and for which of the resources of its demand */
    const struct ids *ids; /* about these devices, in natural order */
    uint64_t timeout_ms;
    size_t at_once;                 /* so many of the kind on the endpoint; 0: any number */
    size_t size;                    /* CALL_PREFER: how many of them, */
    const struct ids *must_include; /* with all of these; NULL: none */
};

/* One under way. */
struct call {
    uint64_t number;
    enum call_kind kind;
    uint64_t create;
    size_t item;
    struct ids ids;
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

/* Begins one on the resource's plugin; valid until it is cancelled or taken. NULL: as many as may
 * be are under way. */
struct call *calls_start(struct calls *calls, const struct call_question *asks,
                         const struct resource *resource);
void calls_cancel(struct calls *calls, struct call *call);
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
