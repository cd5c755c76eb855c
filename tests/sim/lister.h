/*
 * The shim's own view of the runtime, as the daemon's lister has it: whole lists (two calls), at
 * the start, when the runtime is back, at intervals, and when an event says that there may be
 * something new; events of containers that end, where the runtime has a stream of them; and
 * questions about one container.
 *
 * The stream is opened with a list. Its events come late, in order, at times twice; with the
 * connection those on their way are lost.
 */
#ifndef TESTS_SIM_LISTER_H
#define TESTS_SIM_LISTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/resources.h"

struct world;

#define CHECKS_MAX 64
#define RANS_MAX 64

enum lister_event {
    LISTER_CREATED, /* leads to a list */
    LISTER_ENDED,   /* stopped or deleted */
};

/* A container of which a check has said that it runs. */
struct ran {
    uint64_t ms; /* 0: free slot */
    unsigned uid;
    unsigned ids[RESOURCES_LEN];
};

struct lister {
    uint64_t checks[CHECKS_MAX]; /* under way; 0: free slot */
    struct ran ran[RANS_MAX];    /* the last ones; at ran_len % RANS_MAX the oldest */
    size_t ran_len;              /* in this life */
    uint64_t unanswered_ms;      /* when a check was last not answered; 0: none was in this life */
    uint64_t due_ms;             /* of the next list; UINT64_MAX: none is planned */
    uint64_t list;               /* number of the list under way, or the last */
    uint64_t begun_ms;           /* when it was asked for, as the core's clock has it */
    uint64_t heard_ms;           /* the same of the last that came; 0: none did in this life */
    bool again;                  /* a list was asked for meanwhile */
    bool stale;                  /* an event came meanwhile that it may not show */
    struct listed *listed;       /* the list under way; NULL: none */
    uint64_t stream;             /* the open one of the events; 0: none */
    uint64_t last_stream;
    uint64_t delivered_ms; /* when the last event sent so far arrives */
};

/* The shim has started. */
void lister_start(struct world *w);
/* The shim died. */
void lister_stop(struct world *w);
/* The connection to the runtime is gone. */
void lister_runtime_gone(struct world *w);
/* The runtime is back, or something makes a list worth while. */
void lister_refresh(struct world *w);
/* The stream alone ends. */
void lister_stream_ends(struct world *w);
/* The runtime sends an event: of a container, or of a sandbox, which is a container to it. */
void lister_event(struct world *w, enum lister_event event, unsigned id, bool sandbox);
/* A list of the runtime that was asked for from then on has come, in this life of the shim. */
bool lister_heard_since(const struct world *w, uint64_t ms);
/* The port. */
void lister_check(struct world *w, uint64_t check, const char *container_id);
size_t lister_checks_open(const struct world *w);

#endif
