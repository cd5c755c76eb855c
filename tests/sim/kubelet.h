/*
 * The kubelet of the simulated node: pods with init containers and app containers, one step at a
 * time as its pod workers do it; creates with deadlines, retried with the same key; restarts
 * with the next attempt and the same token; sandboxes re-created; pods stopped and removed.
 */
#ifndef TESTS_SIM_KUBELET_H
#define TESTS_SIM_KUBELET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/ports.h"
#include "tests/sim/resources.h"
#include "tests/sim/rng.h"
#include "tests/sim/runtime.h"

struct world;

#define PODS_MAX 6
#define POD_CONTAINERS_MAX 3

/* Who decides which devices of a resource a container gets. */
enum source {
    SOURCE_TOKEN,
    SOURCE_ANNOTATION,
};

struct pod_container {
    bool init;
    bool done;                     /* an init container that has completed in this sandbox */
    unsigned count[RESOURCES_LEN]; /* devices it asks for */
    unsigned edited
        [RESOURCES_LEN]; /* how many it asked for before its annotation was edited; 0: it was not */
    unsigned ids[RESOURCES_LEN];    /* masks, where the kubelet chose */
    unsigned bare[RESOURCES_LEN];   /* masks of what it gave out for a plugin of its own */
    unsigned former[RESOURCES_LEN]; /* masks of those it had before; one that runs has them yet */
    bool decided_anew;              /* there are such */
    unsigned token_in; /* the sandbox in which it was made with a token last, that the shim must
                        * remember; 0: none */
    uint64_t not_before_ms;
    unsigned refusals; /* in a row */
    char why[256];     /* the last */
    unsigned
        reasons; /* of the last refusal by the shim, by what was true then; 0: it was another end */
};

struct pod_sim {
    unsigned uid; /* 0: free slot */
    unsigned sandbox_attempt;
    bool row_lost;  /* its row was, and what was rebuilt of it may not say in which boot it lived */
    bool forgotten; /* the runtime had its sandboxes, until a reboot */
    unsigned sandbox; /* the one its init containers have run in */
    bool deleting;
    bool released;       /* its tokens' devices are given to others */
    uint64_t collect_ms; /* when what is left of a deleted one is removed; 0: it is not there yet */
    uint64_t stop_ms;    /* when a deleted one's containers are stopped */
    uint64_t run_ms;     /* when its next sandbox can be run; 0: that was not looked at yet */
    uint64_t try_ms;     /* when that is tried next */
    uint64_t over_ms;    /* when it last had no ready sandbox; it may have none now */
    struct pod_container containers[POD_CONTAINERS_MAX];
    unsigned containers_len;
    struct rng rng; /* of what it does just now */
};

struct kubelet {
    enum source source[RESOURCES_LEN];
    unsigned last_uid;
    bool moves;  /* plugins are moved over to the shim, and back */
    bool mixed;  /* both decide: they know nothing of each other, and can be in each other's way */
    bool down;   /* from a reboot until it lists */
    bool strict; /* nobody may lack a device that is gone for good */
    bool draining; /* no new pods; all that are there are deleted */
    struct pod_sim pods[PODS_MAX];
};

void kubelet_init(struct world *w);
/* A new pod, if there is room. */
void kubelet_add_pod(struct world *w);
void kubelet_delete_one(struct world *w);
/* Those that have no sandbox yet. */
void kubelet_delete_unbegun(struct world *w);
/* It is deleted by force, and another comes in its place. */
void kubelet_replace(struct world *w, unsigned uid);
void kubelet_drain(struct world *w);
/* The node was rebooted: it comes later. `forgotten`: the runtime knows no sandbox of before. */
void kubelet_rebooted(struct world *w, bool forgotten);
/* The shim has lost rows; or has rebuilt and stored them, of all that the runtime knows. */
void kubelet_rows_lost(struct world *w);
void kubelet_rows_rebuilt(struct world *w);
struct pod_sim *kubelet_find_pod(struct world *w, unsigned uid);
/* Whether the pod lives, and the shim must have heard of its sandbox. */
bool kubelet_surely_there(struct world *w, unsigned uid);
/* Whether several containers of the pod ask for the resource by annotation: while one is down
 * another may take a device of it, and it gets others then. */
bool kubelet_contended(const struct pod_sim *pod, size_t resource);
/* Whether every pod has all it asked for, or what others have that run; else says in `why` what it
 * lacks. The latter only where the kubelet and annotations decide on one resource: they know
 * nothing of each other, and both can be in each other's way. */
bool kubelet_content(struct world *w, char *why, size_t why_bytes);
/* What a device is missing to that is gone for good: they are deleted, and others come. False:
 * there are none. */
bool kubelet_replace_stranded(struct world *w);
bool kubelet_none_ends(const struct world *w);
bool kubelet_empty(const struct world *w);
const char *container_sim_name(unsigned name);
/* POD_CONTAINERS_MAX: somebody else's. */
unsigned container_sim_find(const char *name);

#endif
