/*
 * Dynamic resource allocation in some of the worlds: drivers that die, are rolled over, fail, hang
 * and answer late; a kubelet whose pods share claims, are deleted by force, and use them in
 * containers; a cluster that allocates devices to claims, and an agent that tells of it, or is
 * away; and the judge of what comes of it.
 *
 * The judge knows which claim each driver truly has: that changes when the driver does what it was
 * asked for, not when it answers. Two drivers: the first one's devices are this node's alone, the
 * second one's are not.
 */
#ifndef TESTS_SIM_DRA_H
#define TESTS_SIM_DRA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/ports.h"

struct world;

#define DRA_DRIVERS 2
#define DRA_LOCAL_DRIVER "local.example.com"
/* Of each driver. */
#define DRA_POOLS 2
#define DRA_POOL_DEVICES 4
/* All claims, and pods with some, that there ever are. */
#define DRA_CLAIMS_MAX 128
#define DRA_PODS_MAX 128
#define DRA_POD_CLAIMS_MAX 3
/* Uids of their pods; those of others are below. */
#define DRA_UID_FIRST 2048
#define DRA_ASKED_MAX 64
#define DRA_OPS_MAX 128
#define DRA_USES_MAX 512

/* What a driver has of a claim. */
struct dra_truth {
    bool prepared;
    unsigned version; /* of what it gave last */
    unsigned device;  /* likewise */
    bool
        put_off; /* that it was told so, there was a row left of it; or one that was lost said so */
    bool owed;   /* the kubelet was told that it is unprepared, and it is not */
    bool used_since;    /* it has unprepared it as a container may have come: that has it anew */
    bool unsure;        /* it was to, or to prepare it anew, and nobody was told that it has: who
                           comes then, too */
    bool unknown;       /* its row was lost while it was prepared */
    unsigned answered;  /* the version that it has told of, to a shim that has not died of it */
    uint64_t taken_ms;  /* when it prepared what it has */
    uint64_t given_ms;  /* when it last told of one */
    uint64_t told_ms;   /* when the kubelet first was told what it told last */
    uint64_t failed_ms; /* when the driver last failed at it */
    bool in_books;      /* the kubelet had it there when that was looked up last */
    unsigned lost;      /* calls for it that ended with the driver, since that has answered one */
    bool tried;         /* since the driver is there: it was told to unprepare it, and failed */
    uint64_t
        tried_run; /* the run that makes the calls decided on before the driver came once more */
};

enum dra_life {
    DRA_NONE,
    DRA_WANTED,  /* by some pods */
    DRA_LEAVING, /* the last of them is deleted, and its containers have ended */
    DRA_GONE,
};

/* A claim, as the kubelet has it, and as the cluster does. */
struct dra_claim {
    enum dra_life life;
    bool done[DRA_DRIVERS];      /* the driver has done what the life is about */
    unsigned has[DRA_DRIVERS];   /* the version of what the kubelet was told last; 0: nothing */
    unsigned had[DRA_DRIVERS];   /* and before that: it names both */
    unsigned given[DRA_DRIVERS]; /* the device of the last */
    struct dra_truth truth[DRA_DRIVERS];
    bool allocated;
    unsigned device[DRA_DRIVERS]; /* that is allocated */
    bool admin, shared;           /* likewise: others may have it, too */
    bool looked_for;              /* the core waits to be told */
};

/* A pod with claims. */
struct dra_pod {
    unsigned uid; /* 0: it is over */
    size_t claims[DRA_POD_CLAIMS_MAX];
    size_t claims_len;
    bool deleting;
    uint64_t stop_ms; /* then its containers are stopped */
    unsigned attempt; /* of its next sandbox */
    uint64_t create;  /* under way; 0: none */
    uint64_t create_ms;
    bool kept;        /* the core knows of it until it is answered, */
    bool stores;      /* and has yet to store who has its claims then */
    unsigned sandbox; /* what it is of: */
    unsigned made;    /* its attempt */
};

/* A container that was asked for with claims. */
struct dra_use {
    uint64_t create; /* 0: free slot */
    unsigned uid;
    unsigned sandbox;
    size_t claims[DRA_POD_CLAIMS_MAX];
    size_t claims_len;
    unsigned device[DRA_POD_CLAIMS_MAX][DRA_DRIVERS];
    bool known[DRA_POD_CLAIMS_MAX][DRA_DRIVERS]; /* the shim must know */
    uint64_t asked_ms;
};

/* What the kubelet waits for. */
struct dra_asked {
    uint64_t number; /* 0: free slot */
    bool prepare;
    bool astray; /* an unprepare of what another pod has */
    size_t claim;
    size_t driver;
    uint64_t since_ms;
};

/* A call that a driver has. */
struct dra_op {
    uint64_t number; /* the world's; 0: free slot */
    uint64_t call;
    uint64_t instance;
    bool prepare;
    size_t claim;
    size_t driver;
    bool fails;
    bool done;
    bool late;  /* over for the shim, not for the driver, which may still do it */
    bool looks; /* none: the kubelet has the claim in its books, which are being read */
};

struct dra_driver {
    bool up;
    unsigned fails_percent; /* of what it is asked to unprepare */
    uint64_t step_ms_max;   /* between its troubles */
    uint64_t old,
        instance; /* registered; 0: none. Another is on its way, while it is rolled over */
    bool old_connected, connected;
    uint64_t old_run; /* the run that makes the calls decided on before the newer was connected */
};

/* What is seen of the cluster. */
struct dra_cluster {
    bool watched; /* there is an agent in this world */
    bool agent;   /* it is connected */
    bool away;    /* the API server is */
    bool
        networked; /* the first driver's second pool is not this node's, which has no slice of it */
    bool apart;    /* as its slices say: no device is made of what another is */
    bool published[DRA_POOLS]; /* slices of the first driver */
    bool told[DRA_POOLS];      /* and the shim was told so */
};

/* ResourceSlices of a driver that is away: the shim's order to wipe them. */
struct dra_wipe {
    bool known; /* the shim has a row of the driver, or has seen it in this life */
    bool ordered;
    uint64_t order;
    uint64_t away_ms; /* since when the driver is not connected; 0: it is */
    bool wiped;       /* since then, and the shim was told */
};

struct dra {
    bool there;
    bool over; /* all claims go */
    size_t claims_len;
    struct dra_claim claims[DRA_CLAIMS_MAX];
    size_t pods_len;
    struct dra_pod pods[DRA_PODS_MAX];
    size_t uses_len;
    struct dra_use uses[DRA_USES_MAX]; /* the last ones */
    struct dra_asked asked[DRA_ASKED_MAX];
    struct dra_op ops[DRA_OPS_MAX];
    struct dra_driver drivers[DRA_DRIVERS];
    struct dra_cluster cluster;
    struct dra_wipe wipes[DRA_DRIVERS];
    uint64_t drivers_version; /* of what the shim has looked at for its wipes */
    uint64_t last_number;
    uint64_t trouble_ms[DRA_DRIVERS]; /* when a driver last came or went */
};

/* In some of the worlds. */
void dra_init(struct world *w);
void dra_shim_started(struct world *w);
void dra_shim_gone(struct world *w);
/* The faults stop, and drivers come back for good; then all claims are to go. Whether they have. */
void dra_heal(struct world *w);
void dra_end(struct world *w);
bool dra_is_done(struct world *w);
/* After each event. */
void dra_check(struct world *w);
/* Nothing is left anywhere. */
void dra_check_nothing_left(struct world *w);

/* ---- the ports ---- */
void dra_registered(struct world *w, uint64_t instance, int code);
void dra_called(struct world *w, bool prepare, uint64_t instance, uint64_t call,
                const struct devicemgr_claim *claim, uint64_t timeout_ms);
void dra_settles(struct world *w, uint64_t instance, uint64_t call,
                 const struct devicemgr_claim *claim, uint64_t timeout_ms);
void dra_look(struct world *w, const struct devicemgr_claim *claim);
void dra_claim_done(struct world *w, uint64_t number, const struct devicemgr_claim_done *done);

/* ---- the runtime ---- */
/* It has answered a create of such a pod (container 0: refused). */
void dra_answered(struct world *w, uint64_t number, unsigned container);
/* The shim lets one pass that it had to store first, or refuses it; the pod asks again. False: it
 * is no such create. */
bool dra_verdict(struct world *w, uint64_t number, const struct devicemgr_verdict *verdict);

/* ---- dra_driver.c ---- */
const char *dra_driver_name(size_t driver);
/* Of a device, as they are counted over all pools; and the CDI names of a claim: of each version of
 * what the driver has of it, and (0) of all. */
const char *dra_pool_name(unsigned device);
void dra_cdi_name(size_t claim, size_t driver, unsigned version, char name[48]);
bool dra_driver_there(const struct dra_driver *d);
void dra_drivers_init(struct world *w);
void dra_drivers_shim_started(struct world *w);
void dra_drivers_shim_gone(struct world *w);
void dra_drivers_heal(struct world *w);

/* ---- dra_kubelet.c: its calls ---- */
/* "c7": 7. */
size_t dra_claim_find(const char *uid);
struct devicemgr_claim dra_claim_names(size_t claim, char uid[16]);
bool dra_uses(size_t claim, size_t driver);
/* Whether it waits for that. */
bool dra_waits(const struct dra *dra, size_t claim, size_t driver, bool prepare);
/* Asks for what the claim's life is about of each driver that has not done it. Whether all have. */
bool dra_ask(struct world *w, size_t claim);
/* An unprepare that the kubelet should not ask for. */
void dra_ask_astray(struct world *w, size_t claim);
/* Nothing that is asked for the claim is waited for any more. */
void dra_give_up(struct world *w, size_t claim);
void dra_set_life(struct world *w, size_t claim, enum dra_life life);

/* ---- dra_pod.c ---- */
void dra_pods_init(struct world *w);
void dra_pods_shim_gone(struct world *w);
void dra_pods_runtime_gone(struct world *w);
/* How many creates the core knows of. */
size_t dra_creates_open(const struct world *w);

/* ---- dra_use.c ---- */
/* A container of the pod is asked for, by this create. */
void dra_use_note(struct world *w, const struct dra_pod *pod, unsigned sandbox, uint64_t create);
/* NULL: the create is none of a pod with claims. */
struct dra_use *dra_use_find(struct world *w, uint64_t create);
/* Of the driver's answer that the claim's row has; 0: none. */
unsigned dra_stored_version(struct world *w, size_t claim, size_t driver);
/* Whether a row says of each claim that it is known to have that it has it. */
bool dra_use_is_stored(struct world *w, const struct dra_use *use);
/* What the rows do not say is not known any more. */
void dra_uses_shim_started(struct world *w);
/* A container that may run with it, of which the shim must know; NULL: there is none. */
const struct dra_use *dra_user(struct world *w, size_t claim, size_t driver);
/* Whether one may run with it, or did until not long ago. */
bool dra_may_be_used(struct world *w, size_t claim, size_t driver);
/* Likewise of another pod with a device of those that this one is asked for with, by another
 * claim. */
bool dra_may_be_held(struct world *w, const struct dra_use *use);

/* ---- dra_cluster.c ---- */
void dra_cluster_init(struct world *w);
void dra_cluster_shim_started(struct world *w);
/* False: there is no device left. */
bool dra_allocate(struct world *w, size_t claim);
void dra_deallocate(struct world *w, size_t claim);
/* Whether the device is this node's alone. */
bool dra_is_local(const struct world *w, size_t driver, unsigned device);
/* The first driver is there, and publishes what it has, soon; that is deleted. */
void dra_publish(struct world *w);
void dra_unpublish(struct world *w);
void dra_cluster_heal(struct world *w);

/* ---- dra_wipe.c ---- */
/* A driver came or went. */
void dra_wipe_note(struct world *w, size_t driver);
void dra_wipes_shim_started(struct world *w);
void dra_wipes_shim_gone(struct world *w);
void dra_wipes_check(struct world *w);

/* ---- dra_judge.c ---- */
/* What the kubelet is told of a claim that is prepared. */
struct dra_answer {
    unsigned version;
    unsigned device;
};

/* False: it is no such answer. */
bool dra_answer_read(const struct devicemgr_claim_done *done, struct dra_answer *answer);
/* The kubelet is told; of a request that is over. */
void dra_judge(struct world *w, const struct dra_asked *asked,
               const struct devicemgr_claim_done *done);
void dra_judge_drain(struct world *w);
/* The store's rows are lost while the shim knows what they say. */
void dra_judge_store_reset(struct world *w);
/* All that is known is what is stored: the shim has started, or could not store more. What it was
 * about to unprepare it may have, and not have prepared anew. */
void dra_judge_by_rows(struct world *w);
/* A driver is called. */
void dra_judge_call(struct world *w, const struct dra_op *op);

#endif
