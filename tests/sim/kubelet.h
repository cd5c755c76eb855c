/*
 * The kubelet of the simulated node: pods with init containers and app containers, one step at a
 * time as kubelet-facts §10 has it; creates with deadlines, retried with the same key; restarts
 * with the next attempt and the same token; sandboxes re-created; pods stopped and removed.
 */
#ifndef TESTS_SIM_KUBELET_H
#define TESTS_SIM_KUBELET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/ports.h"
#include "tests/sim/resources.h"
#include "tests/sim/runtime.h"

struct world;

#define PODS_MAX 6
#define POD_CONTAINERS_MAX 3
#define CREATES_SIM_MAX 64

/* Who decides which devices of a resource a container gets. */
enum source {
    SOURCE_TOKEN,
    SOURCE_ANNOTATION,
};

struct pod_container {
    bool init;
    bool done;                     /* an init container that has completed in this sandbox */
    unsigned count[RESOURCES_LEN]; /* devices it asks for */
    unsigned ids[RESOURCES_LEN];   /* masks, where the kubelet chose */
    uint64_t not_before_ms;
    unsigned refusals; /* in a row */
    char why[256];     /* the last */
};

struct pod_sim {
    unsigned uid; /* 0: free slot */
    unsigned sandbox_attempt;
    unsigned sandbox; /* the one its init containers have run in */
    bool deleting;
    bool released;    /* its tokens' devices are given to others */
    uint64_t stop_ms; /* when a deleted one's containers are stopped */
    uint64_t over_ms; /* when it last had no ready sandbox; it may have none now */
    struct pod_container containers[POD_CONTAINERS_MAX];
    unsigned containers_len;
};

struct create_sim {
    uint64_t number; /* 0: free slot */
    unsigned uid;
    unsigned name;
    unsigned attempt;
    unsigned sandbox;
    bool untouched; /* it names no device: the core does not know of it */
    bool forwarded;
    uint64_t started_ms;
    uint64_t deadline_ms; /* of the world; UINT64_MAX: none */
    bool stop_told;       /* the core was told that its sandbox is to stop */
    bool disturbed;       /* its pod's allocations may have been dropped since it began */
    unsigned count[RESOURCES_LEN];
    unsigned ids[RESOURCES_LEN];
    unsigned taken[RESOURCES_LEN];  /* masks of what became its pod's by this create */
    uint64_t serial[RESOURCES_LEN]; /* of the durable options in force when it began; 0: none */
    uint64_t registered[RESOURCES_LEN];
};

struct kubelet {
    enum source source[RESOURCES_LEN];
    unsigned last_uid;
    uint64_t last_create;
    bool mixed; /* both decide: they know nothing of each other, and can be in each other's way */
    bool draining; /* no new pods; all that are there are deleted */
    struct pod_sim pods[PODS_MAX];
    struct create_sim creates[CREATES_SIM_MAX];
    unsigned owner[RESOURCES_LEN][DEVICES_MAX]; /* uid of the pod it was given to; 0: none */
    uint64_t forwarded;
    uint64_t refused;
};

void kubelet_init(struct world *w);
/* A new pod, if there is room. */
void kubelet_add_pod(struct world *w);
void kubelet_delete_one(struct world *w);
void kubelet_drain(struct world *w);
void kubelet_cancel_one(struct world *w);
/* The connection to the shim is gone, and every create on it. */
void kubelet_shim_gone(struct world *w);
/* The runtime's connection is gone: creates that were forwarded end without an answer. */
void kubelet_runtime_gone(struct world *w);

/* Allocations of this pod (0: of any) may be dropped now, whatever creates are under way. */
void kubelet_disturb(struct world *w, unsigned uid);

/* The port. */
void kubelet_verdict(struct world *w, uint64_t number, const struct devicemgr_verdict *verdict);
/* Ends a forwarded create; container 0: refused. */
void kubelet_answered(struct world *w, uint64_t number, unsigned container);

struct pod_sim *kubelet_find_pod(struct world *w, unsigned uid);
struct create_sim *kubelet_find_create(struct world *w, uint64_t number);
size_t kubelet_creates_open(const struct world *w);
/* Whether every pod has all it asked for; else says in `why` what it lacks. */
bool kubelet_content(struct world *w, char *why, size_t why_bytes);
bool kubelet_empty(const struct world *w);
const char *container_sim_name(unsigned name);

#endif
