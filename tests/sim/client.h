/*
 * The kubelet's CRI client: CreateContainer calls under way, with deadlines, cancelled and retried
 * with the same key; what they say, and at times what they should not.
 */
#ifndef TESTS_SIM_CLIENT_H
#define TESTS_SIM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/ports.h"
#include "tests/sim/resources.h"
#include "tests/sim/runtime.h"

struct pod_sim;
struct world;

#define CREATES_SIM_MAX 64

/* What is wrong with the tokens of a create; none of these may be forwarded. */
enum token_fault {
    TOKEN_GOOD,
    TOKEN_MALFORMED,        /* no JSON, or not as a token is: INVALID_ARGUMENT */
    TOKEN_UNKNOWN_ID,       /* waited for, then refused */
    TOKEN_UNKNOWN_RESOURCE, /* FAILED_PRECONDITION, or first what another resource lacks */
    TOKEN_FAULTS_LEN,
};

struct create_sim {
    uint64_t number; /* 0: free slot */
    unsigned uid;
    unsigned name;
    unsigned attempt;
    unsigned sandbox;
    bool untouched; /* it names no device: the core does not know of it */
    bool forwarded;
    bool earlier;   /* likewise, since an earlier shim forwarded it, or let it pass */
    bool tokenless; /* its container came with tokens before, and has none now */
    enum token_fault fault;
    uint64_t started_ms;
    bool second;          /* of its container, the first is under way */
    bool overtaken;       /* another of the same container has come */
    bool held;            /* it had to wait for the world to change */
    bool called;          /* such a call was under way once */
    bool moving;          /* a call on a plugin or a commit is under way that may be its own */
    uint64_t moved_ms;    /* when one was last */
    uint64_t deadline_ms; /* of the world; UINT64_MAX: none */
    bool stop_told;       /* the core was told that its sandbox is to stop */
    bool disturbed;       /* its pod's allocations may have been dropped since it began */
    unsigned count[RESOURCES_LEN];
    unsigned ids[RESOURCES_LEN];
    unsigned bare[RESOURCES_LEN];      /* not named in it */
    uint64_t asked[RESOURCES_LEN];     /* the question for a preference; 0: none was seen */
    unsigned available[RESOURCES_LEN]; /* of it */
    unsigned preferred[RESOURCES_LEN]; /* its answer */
    unsigned chosen[RESOURCES_LEN];    /* what the shim chose; 0: not seen */
    bool crowded[RESOURCES_LEN];       /* others wanted the same resource meanwhile */
    bool fresh[RESOURCES_LEN];         /* its claim began with it */
    uint64_t serial[RESOURCES_LEN];    /* of the durable options in force when it began; 0: none */
    uint64_t registered[RESOURCES_LEN];
};

struct client {
    uint64_t last_create;
    struct create_sim creates[CREATES_SIM_MAX];
};

/* The container `name` of the pod is to be made in the sandbox. */
void client_create(struct world *w, struct pod_sim *pod, unsigned name,
                   const struct rt_sandbox *sandbox);
/* Likewise, once the kubelet has forgotten what it gave to the container. */
void client_create_tokenless(struct world *w, struct pod_sim *pod, unsigned name,
                             const struct rt_sandbox *sandbox);
/* The client gives it up: its deadline, or the connection. */
void client_cancel(struct world *w, struct create_sim *create, const char *why);
void client_cancel_one(struct world *w);
/* The connection to the shim is gone, and every create on it; or, where the next one goes on with
 * it, those that it has not passed on, which the kubelet sees held. */
void client_shim_gone(struct world *w);
/* The runtime's connection is gone: creates that were forwarded end without an answer. */
void client_runtime_gone(struct world *w);
/* Allocations of this pod (0: of any) may be dropped now, whatever creates are under way. */
void client_disturb(struct world *w, unsigned uid);
/* The core was told that the sandbox is to stop, or that it goes on. */
void client_stopping(struct world *w, unsigned sandbox, bool stopping);

/* The port. */
void client_verdict(struct world *w, uint64_t number, const struct devicemgr_verdict *verdict);
/* Ends a forwarded create; container 0: refused. */
void client_answered(struct world *w, uint64_t number, unsigned container);

struct create_sim *client_find(struct world *w, uint64_t number);
/* One of this pod, of any container if `name` is POD_CONTAINERS_MAX; NULL: none. */
const struct create_sim *client_find_of(const struct world *w, unsigned uid, unsigned name);
/* How many the core decides on, or waits for. */
size_t client_open(const struct world *w);

#endif
