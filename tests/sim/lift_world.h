/*
 * A world beside a fifth of the large ones, of resources that are published as those of a DRA
 * driver: plugins whose devices come and go, and fall ill; the API server's slices, which the agent
 * writes one by one; a scheduler that allocates by what is published, and by nothing else; pods
 * with claims, some of them shared, and pods that the kubelet gave devices to; settings that move a
 * resource over, and back, while all of those run. Daemon, agent, API server, plugins, kubelet,
 * runtime and node end at any time, a store fails, and is lost.
 *
 * What the daemon has beside the core for this is the shim's own, and is played with the core:
 * `shim/cluster/pools.c` with `pool_order.c`, which order what is to be published, `lift_driver.c`,
 * which prepares claims, and of the agent `pool_slices.c`, which says what is to be written.
 * `lift_host.c` stands for what these need of the rest: the loop's timers, the orders' table, the
 * core's host. The agent's requests are played as `shim/agent/order_publish.c` has them.
 *
 * Three stretches, as with drivers of two homes (home_world.h): troubles; rest, in which all pods
 * must run and the slices be what the plugins list; and then all pods are deleted, and nothing may
 * be left.
 *
 * `lift_world.c` is what happens, `lift_shim.c` the core with its ports, `lift_plugin.c` plugins,
 * `lift_api.c` the API server's slices, `lift_agent.c` the agent, `lift_scheduler.c` claims and
 * what they are allocated, `lift_kubelet.c` its calls and what it gives away itself, `lift_pod.c`
 * pods, `lift_runtime.c` their containers, `lift_judge.c` and `lift_seen.c` the properties: of
 * containers, of what is published and shown.
 */
#ifndef TESTS_SIM_LIFT_WORLD_H
#define TESTS_SIM_LIFT_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/agent_v1.pb-c.h"
#include "devicemgr/devicemgr.h"
#include "devicemgr/dra.h"
#include "devicemgr/lift.h"
#include "shim/agent/pool_slices.h"
#include "shim/cluster/orders.h"
#include "shim/facts.h"
#include "tests/sim/property.h"
#include "tests/sim/rng.h"
#include "tests/sim/rows.h"

#define LW_NODE "node-1"
#define LW_RESOURCES 2
#define LW_DEVICES 140 /* that there may be, of each; in most worlds few */
#define LW_CLAIMS 64   /* that there ever are */
#define LW_CLAIM_DEVICES 3
#define LW_PODS 10
#define LW_POD_CLAIMS 2
#define LW_CONTAINERS 2
#define LW_HAD (LW_POD_CLAIMS * LW_CLAIM_DEVICES) /* that a container has at most */
#define LW_SLICES 16
#define LW_ORDERS 32
#define LW_CALLS 32
#define LW_LISTS 512 /* of names that were published */
#define LW_ID_BYTES 16
#define LW_NO_CLAIM LW_CLAIMS
#define LW_MASK_MS 30000

struct lw_device {
    bool listed, healthy;
    int node; /* NUMA; -1: none */
    /* as the shim was told last: */
    bool said, said_healthy;
    int said_node;
    /* as the kubelet was shown it last: */
    bool shown, shown_healthy;
    bool in_file; /* the kubelet's checkpoint named it, when it was read last */
};

struct lw_resource {
    size_t devices;    /* that may be listed */
    bool lifted;       /* by the settings of this shim */
    bool ever;         /* or of one before */
    bool up;           /* its plugin is there: */
    uint64_t dialled;  /* which the shim is about to connect to; 0: it is not */
    uint64_t endpoint; /* to which it is connected */
    bool listed;       /* it has listed in this life of the shim */
    uint64_t lost_ms;  /* when it was lost, or the shim began */
    unsigned version;  /* of its options, from 1 on */
    struct lw_device device[LW_DEVICES];
};

/* A call on a plugin. */
struct lw_call {
    uint64_t number; /* 0: free slot */
    uint64_t endpoint;
    size_t resource;
    char ids[256]; /* as they go into the options */
};

/* A list of names that was to be published as a pool. */
struct lw_list {
    size_t resource;
    uint64_t hash;
};

/* As the API server has it. */
struct lw_slice {
    uint64_t uid; /* 0: free slot */
    char pool[64];
    size_t index; /* with the pool it is the slice's name */
    int64_t generation;
    size_t count;
    Agent__V1__PoolSlice *what;
};

enum lw_order_state { LW_DUE, LW_SENT, LW_LATER };

/* An order of the daemon's to the agent. */
struct lw_order {
    uint64_t id; /* 0: free slot */
    Agent__V1__Order *what;
    bool for_ever;
    cluster_order_done *done;
    void *user;
    enum lw_order_state state;
    uint64_t due_ms; /* LW_LATER: it is due again */
    bool failed;     /* one of its tries has */
    /* Of a pool, what the agent has listed: */
    bool listed;
    struct pool_slices slices;
    int64_t generation;
    size_t deleted;
    uint64_t stale[LW_SLICES]; /* uids */
};

enum lw_life {
    LW_NONE,
    LW_WANTED,  /* by some pods */
    LW_LEAVING, /* the last of them is deleted, and its containers have ended */
    LW_GONE,
};

/* A device that is allocated to a claim. */
struct lw_result {
    size_t resource, device;
    char pool[64], name[64], request[32];
};

struct lw_claim {
    enum lw_life life;
    bool admin;
    bool extended; /* of one container of one pod */
    /* The cluster: */
    bool allocated; /* not any more, once its pod was deleted by force */
    struct lw_result results[LW_CLAIM_DEVICES];
    size_t results_len;
    bool looked_for; /* the shim waits to be told */
    bool told;       /* it knows what is allocated to it */
    /* The kubelet: */
    bool in_books, prepared;
    char names[LW_CLAIM_DEVICES][160]; /* of CDI devices, since it was told them last */
    size_t names_len;                  /* 0: it was not */
    uint64_t asked;                    /* of the shim: 0, nothing */
    bool asks_prepare;
    uint64_t asked_ms;
    bool lost; /* the shim lost its rows since it was prepared */
};

enum lw_state {
    LW_NOTHING,
    LW_ASKED, /* the shim holds it */
    LW_COMES, /* it is with the runtime */
    LW_RUNS,
    LW_EXITED,
};

struct lw_container {
    enum lw_state state;
    unsigned id;      /* of the runtime, and so of the create */
    unsigned attempt; /* of the container */
    uint64_t create;  /* that the shim knows of */
    uint64_t asked_ms, comes_ms, retry_ms;
    uint64_t ended_ms;                 /* when it exited, and the shim was not told; 0: not so */
    bool known;                        /* the shim must know what it has */
    char tokens[LW_RESOURCES][2][256]; /* annotations, key and value, as the runtime keeps them */
    size_t tokens_len;
};

struct lw_pod {
    bool there;
    unsigned uid;
    /* By claims: */
    size_t claims[LW_POD_CLAIMS];
    size_t claims_len;
    /* Or the kubelet has given it devices of this: */
    size_t resource;
    size_t devices[2];
    size_t devices_len;
    bool deleting;
    unsigned sandbox; /* 0: none */
    unsigned sandbox_attempt;
    bool ready;
    struct lw_container containers[LW_CONTAINERS];
    size_t containers_len;
};

/* What a container has, or is to have. */
struct lw_had {
    size_t resource, device;
    size_t claim; /* LW_NO_CLAIM: by the kubelet's doing */
};

/* A timer of the loop's. */
struct lw_timer {
    uv_timer_t *handle;
    uv_timer_cb call;
    uint64_t due_ms; /* UINT64_MAX: it does not run */
};

struct world;
struct lift_daemon; /* what the daemon has beside the core */

struct lift_world {
    struct world *w; /* for what is broken */
    struct rng rng;
    struct devicemgr *core;
    uint64_t now_ms, started_ms;
    bool calm; /* no troubles any more */
    bool over; /* nor any pods */
    uint64_t number;
    unsigned last_uid, last_sandbox, last_container, boot;
    char boot_id[16];

    struct lw_resource resources[LW_RESOURCES];
    struct lw_call calls[LW_CALLS];
    uint64_t checks[LW_CALLS][2]; /* number of the question, container */
    struct lw_list lists[LW_LISTS];
    size_t lists_len;

    struct lw_slice slices[LW_SLICES];
    bool api_away;
    bool agent;      /* it is connected to the daemon */
    bool agent_told; /* it has told all once */
    uint64_t agent_lost_ms;
    struct lw_order orders[LW_ORDERS];

    struct lift_daemon *daemon;
    struct facts facts;
    struct lw_timer timers[2];
    bool kicked; /* the core is to be run */
    bool served; /* the driver is there, in this life */

    struct lw_claim claims[LW_CLAIMS];
    size_t claims_len;
    const struct lw_result *freed; /* what the cluster has taken back by force last; or NULL */
    struct lw_pod pods[LW_PODS], snapshot[LW_PODS];
    bool bridged;   /* the kubelet is shown the driver */
    bool admitting; /* it admits its pods anew */
    uint64_t admits_until_ms;
    bool listing, list_wanted;
    uint64_t listed_from_ms;

    uint64_t commit; /* under way; 0: none */
    bool store_fails;
    bool rows_lost; /* once, in this world; and the runtime was not listed since: */
    bool unlisted;
    struct row *rows, *pending;
};

/* Runs the one of the world's seed, whose own run is over and has held. False: world's `broken`
 * says why. */
bool lift_world_run(struct world *w);

/* With the time of this world, where every event is to be printed. */
void lift_note(const struct lift_world *h, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- lift_host.c ---- */

/* All that the shim's own parts ask is answered for this one from now on. */
void lift_host_is(struct lift_world *h);
uint64_t lift_host_next_ms(const struct lift_world *h);
/* Timers that are due. */
void lift_host_tick(struct lift_world *h);
void lift_host_starts(struct lift_world *h);
/* What the core publishes may have changed; so may what the API server has, by what is told of it,
 * or whether all of that is told. */
void lift_host_looks(struct lift_world *h);
void lift_host_reported(struct lift_world *h, bool whole, bool slices);
void lift_host_answered(struct lift_world *h);
void lift_host_complete(struct lift_world *h, bool complete);
/* The driver is called. */
void lift_host_prepare(struct lift_world *h, uint64_t call, const struct devicemgr_claim *claim,
                       uint64_t timeout_ms);
void lift_host_cancel(struct lift_world *h, uint64_t call);
/* All that are waited for are forgotten, as with their daemon. */
void lift_host_ends(struct lift_world *h);
/* What became of it; it may be tried again. */
void lift_order_ends(struct lift_world *h, struct lw_order *order, Agent__V1__Outcome outcome,
                     const char *message, Agent__V1__Claim *claim);
/* The agent begins with it anew, if ever. */
void lift_order_reset(struct lw_order *order);

/* ---- lift_shim.c ---- */

void lift_shim_start(struct lift_world *h);
/* `lost`: its checkpoint is, too. Settings may be others then. */
void lift_shim_kill(struct lift_world *h, bool lost);
void lift_shim_end(struct lift_world *h);
/* devicemgr_run(), with what the daemon does behind it, and what then must be. */
void lift_shim_run(struct lift_world *h);
void lift_shim_commit_ends(struct lift_world *h, bool fails);
void lift_shim_pass(struct lift_world *h, uint64_t ms);
/* Whether the store has what the container has of all its resources. */
bool lift_shim_has_rows(const struct lift_world *h, const struct lw_pod *pod, size_t container);
/* Whether it has the claim. */
bool lift_shim_has_claim(const struct lift_world *h, size_t claim);

/* ---- lift_plugin.c ---- */

const char *lift_resource_name(size_t resource);
size_t lift_resource_find(const char *name);
void lift_device_id(size_t resource, size_t device, char id[LW_ID_BYTES]);
/* LW_DEVICES: it is none. */
size_t lift_device_find(size_t resource, const char *id);
/* By which settings something is said of it: of one kind or another. */
const char *lift_device_model(size_t device);
void lift_plugins_begin(struct lift_world *h);
void lift_plugin_acts(struct lift_world *h, size_t resource);
void lift_plugin_opened(struct lift_world *h, uint64_t endpoint, const char *resource);
void lift_plugin_closed(struct lift_world *h, uint64_t endpoint);
void lift_plugin_called(struct lift_world *h, uint64_t endpoint, uint64_t call,
                        const char *const *ids, size_t ids_len);
void lift_plugin_call_cancelled(struct lift_world *h, uint64_t call);
/* Connects, answers. */
void lift_plugins_proceed(struct lift_world *h);
void lift_plugins_shim_started(struct lift_world *h);
/* All are there, and list what there is, healthy. */
void lift_plugins_heal(struct lift_world *h);

/* ---- lift_api.c ---- */

/* NULL: there is none of that name. */
struct lw_slice *lift_api_find(struct lift_world *h, const char *pool, size_t index);
/* `slice`: packed. False: there is one of that name. */
bool lift_api_make(struct lift_world *h, const char *pool, size_t index, int64_t generation,
                   size_t count, const ProtobufCBinaryData *slice);
void lift_api_change(struct lw_slice *slice, const ProtobufCBinaryData *what);
void lift_api_delete(struct lift_world *h, struct lw_slice *slice);
void lift_api_wipe(struct lift_world *h);
/* The highest generation of the pool; -1: there is no such pool. `whole`: all its slices are
 * there. */
int64_t lift_api_generation(const struct lift_world *h, const char *pool, bool *whole);
/* What has the API server's agent, and the shim is told. */
void lift_api_told(struct lift_world *h);
/* A pool that is whole was to be published so. */
void lift_api_judge(struct lift_world *h);
void lift_api_fini(struct lift_world *h);

/* ---- lift_agent.c ---- */

/* It comes, goes, writes, or tells. */
void lift_agent_acts(struct lift_world *h);
void lift_agent_goes(struct lift_world *h);
void lift_agent_comes(struct lift_world *h);
/* One request of one of its orders. False: it has none. */
bool lift_agent_works(struct lift_world *h);
/* The shim is told of claims that it has asked for, and of slices. */
void lift_agent_tells(struct lift_world *h);

/* ---- lift_scheduler.c ---- */

/* A claim that has its devices; LW_CLAIMS: there are none for it. */
size_t lift_claim_new(struct lift_world *h);
/* Its pods are deleted by force. */
void lift_claim_deallocated(struct lift_world *h, size_t claim);

/* ---- lift_kubelet.c ---- */

size_t lift_claim_find(const char *uid);
void lift_ask(struct lift_world *h, size_t claim, bool prepare);
void lift_give_up(struct lift_world *h, size_t claim);
void lift_asked_expire(struct lift_world *h);
void lift_claim_done(struct lift_world *h, uint64_t number,
                     const struct devicemgr_claim_done *done);
void lift_kubelet_restarts(struct lift_world *h);
/* It takes over what the bridge shows it. */
void lift_kubelet_sees(struct lift_world *h);
/* It gives devices to a new pod. False: it has none. */
bool lift_kubelet_gives(struct lift_world *h, struct lw_pod *pod);
/* Its checkpoint is read. */
void lift_kubelet_is_read(struct lift_world *h);

/* ---- lift_pod.c ---- */

size_t lift_pod_had(const struct lift_world *h, const struct lw_pod *pod, size_t container,
                    struct lw_had had[LW_HAD]);
bool lift_pod_by_claims(const struct lw_pod *pod);
void lift_pod_comes(struct lift_world *h);
/* The kubelet does the next thing for it. */
void lift_pod_proceeds(struct lift_world *h, struct lw_pod *pod);
void lift_pod_trouble(struct lift_world *h, struct lw_pod *pod);
void lift_pod_deleted(struct lift_world *h, struct lw_pod *pod, bool forced);
/* All containers run. */
bool lift_pod_runs(const struct lw_pod *pod);

/* ---- lift_runtime.c ---- */

bool lift_container_lives(const struct lw_container *container);
/* A container is asked for. */
void lift_container_asked(struct lift_world *h, struct lw_pod *pod, size_t container);
void lift_verdict(struct lift_world *h, uint64_t create, const struct devicemgr_verdict *verdict);
void lift_check(struct lift_world *h, uint64_t check, const char *container_id);
void lift_checks_answered(struct lift_world *h);
void lift_container_exits(struct lift_world *h, struct lw_pod *pod, size_t container, bool told);
void lift_sandbox_runs(struct lift_world *h, struct lw_pod *pod);
void lift_sandbox_ends(struct lift_world *h, struct lw_pod *pod);
/* Containers that are made by now; and when the next one is. */
void lift_containers_due(struct lift_world *h);
uint64_t lift_containers_next_ms(const struct lift_world *h);
void lift_list_begins(struct lift_world *h);
void lift_list_ends(struct lift_world *h);
void lift_runtime_restarts(struct lift_world *h);
void lift_runtime_shim_ended(struct lift_world *h);
void lift_runtime_shim_started(struct lift_world *h);
/* The node is booted: nothing runs any more. */
void lift_runtime_booted(struct lift_world *h);

/* ---- lift_judge.c ---- */

/* One is asked for. */
void lift_judge_asked(const struct lift_world *h, const struct lw_pod *pod);
/* A create goes on with these options, or is refused. */
void lift_judge_forward(struct lift_world *h, const struct lw_pod *pod, size_t container,
                        const V1beta1__ContainerAllocateResponse *options);
void lift_judge_refused(struct lift_world *h, const struct lw_pod *pod, size_t container, int code,
                        const char *message);
void lift_judge_done(struct lift_world *h, size_t claim, const struct devicemgr_claim_done *done);
/* Whether a container runs, of another pod, with a device of this one's, each by a right of its
 * own. */
bool lift_is_in_the_way(const struct lift_world *h, const struct lw_pod *pod,
                        const struct lw_pod *other);
/* After each run of the core. */
void lift_judge(struct lift_world *h);
void lift_judge_rest(struct lift_world *h);
void lift_judge_end(struct lift_world *h);

/* ---- lift_seen.c ---- */

/* What is published, and what the kubelet is shown. */
void lift_judge_seen(struct lift_world *h);
/* The slices are as the plugins list. */
bool lift_is_published(const struct lift_world *h);
void lift_judge_published(struct lift_world *h);

#endif
