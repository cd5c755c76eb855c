/*
 * Who may have a claim on which device, from what the world has seen: rows that were written,
 * creates that were forwarded, containers that others made. Not the core's tables.
 *
 * A claim is of one container of a pod and one resource. It lasts until its row is deleted, or
 * until the shim must know that the pod is over. At most one for each; the newest mask counts.
 */
#ifndef TESTS_SIM_CLAIM_H
#define TESTS_SIM_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/resources.h"
#include "tests/sim/runtime.h"

struct devicemgr_record;
struct world;

#define CLAIMS_MAX 512

struct claim {
    unsigned uid; /* 0: free slot */
    unsigned name;
    size_t resource;
    unsigned mask;
    unsigned
        former;     /* what its durable row has, if that is another: it may be back after a crash */
    bool own;       /* the shim chose */
    unsigned back;  /* what it must have when its pod is back after a reboot; 0: anything */
    bool kept;      /* a create was forwarded with it */
    bool stays;     /* likewise; also when its sandbox dies, as long as another may come (over.h) */
    bool contested; /* since it was forwarded, a create with other ids was asked for */
    unsigned boot;  /* in which it was last told of, or the runtime knew its pod */
    uint64_t since_ms;  /* it is there */
    uint64_t told_ms;   /* when the shim last heard of a create with it: newer than older lists */
    uint64_t taken_ms;  /* when a create may have taken it last, which may be over since */
    uint64_t unsure_ms; /* since then one more of its containers may be in the making; 0: none */
};

struct claims {
    struct claim v[CLAIMS_MAX];
    size_t len; /* slots that were ever used */
};

/* A row of an allocation is being written, is durable, or its deletion is; others are ignored. */
void claims_row_written(struct world *w, const struct devicemgr_record *record);
/* A shim that starts has it. */
void claims_row_restored(struct world *w, const struct devicemgr_record *record);
void claims_row_durable(struct world *w, const struct devicemgr_record *record);
void claims_row_deleted(struct world *w, const struct devicemgr_record *record);
/* A create is forwarded with these. */
void claims_forwarded(struct world *w, unsigned uid, unsigned name, size_t resource, unsigned mask,
                      bool own);
/* The runtime answered such a create, or the shim refused it. */
void claims_answered(struct world *w, unsigned uid, unsigned name);
/* The pod's container is asked for with a token that names other ids than it has. */
void claims_contested(struct world *w, unsigned uid, unsigned name);
/* Somebody else made a container whose token names these. */
void claims_rival(struct world *w, unsigned uid, size_t resource, unsigned mask);
/* It came without a token, and the shim must know what it has: a row of it is to be written. */
void claims_adopted(struct world *w, unsigned uid, unsigned name, size_t resource, unsigned mask);
/* Nobody hears what becomes of a create of the pod's container; uid 0: of any. */
void claims_unsure(struct world *w, unsigned uid, unsigned name);
/* The runtime was listed: what the shim must know now to be over is forgotten. */
void claims_listed(struct world *w);
/* It is given back, or may be lost, and is not kept any more; all of a pod, uid 0: of all pods; or
 * all of any resource: rows are lost. */
void claims_forget(struct world *w, unsigned uid, unsigned name, size_t resource);
void claims_forget_all(struct world *w, unsigned uid, size_t resource);
void claims_lost(struct world *w);
/* A sandbox of the pod ends: `dead` to the shim before its stop was asked for. */
void claims_sandbox_ends(struct world *w, unsigned uid, bool dead);
/* What the shim chose for pods that live, but this one, and what is kept; what it chose and may
 * still be had. */
unsigned claims_kept(struct world *w, unsigned uid, size_t resource);
unsigned claims_own(struct world *w, size_t resource);
/* What tokens name that somebody else has copied: to the shim they are the kubelet's. */
unsigned claims_strangers(const struct world *w, size_t resource);
/* A create may have taken it just now. */
void claims_take(struct world *w, unsigned uid, unsigned name, size_t resource);
/* Whether another pod was given of what it has, in this life of the shim. */
bool claims_taken(const struct world *w, const struct claim *claim);
/* Whether something is kept for a pod that may come back after a reboot, and never will. */
bool claims_returning(struct world *w);
/* The node reboots: what is kept is kept for pods that come back. */
void claims_reboot(struct world *w, bool forgets);
/* What the shim chose for pods still to come back, but this one. */
unsigned claims_back(struct world *w, unsigned uid, size_t resource);
/* NULL: none. */
const struct claim *claims_seek(const struct world *w, unsigned uid, unsigned name,
                                size_t resource);

/* Masks of what other pods may have, or a container that runs, but this one. */
unsigned claims_held(struct world *w, unsigned uid, unsigned name, size_t resource);
/* What the kubelet may have given to pods that run, or can be admitted again. */
unsigned claims_kubelets(struct world *w, size_t resource);
/* What other containers of the pod have, or had. */
unsigned claims_of_pod(const struct world *w, unsigned uid, unsigned name, size_t resource);
/* Of these those that a container has which runs, other than this one. */
unsigned claims_live(const struct world *w, unsigned uid, unsigned name, size_t resource);
/* Those of which it is not known whether a container of another claim is being made with them. */
unsigned claims_unknown(const struct world *w, unsigned uid, unsigned name, size_t resource);

#endif
