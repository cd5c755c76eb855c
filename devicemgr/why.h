/*
 * Why a container, or a claim, waits, was refused, or has what it has: what the rules say now, as
 * they would say it to a create of the container, resource by resource; and what was refused last.
 *
 * To ask changes nothing, and is asked of no plugin and no runtime: what a create would ask of them
 * is DEVICEMGR_WHY_ASK here. What was refused is remembered for the last REFUSED_MAX containers, in
 * this life of the process.
 */
#ifndef DEVICEMGR_WHY_H
#define DEVICEMGR_WHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct devicemgr;

enum devicemgr_why_step {
    DEVICEMGR_WHY_GO,     /* nothing is in the way */
    DEVICEMGR_WHY_ASK,    /* a plugin, the runtime or the store is being asked, or would be */
    DEVICEMGR_WHY_WAIT,   /* something must change first: held, then refused for now */
    DEVICEMGR_WHY_REFUSE, /* refused at once */
};

/* What is found of one resource that is asked for, or of the container as a whole. */
struct devicemgr_why_finding {
    const char *resource; /* NULL: of the whole */
    size_t asked;         /* devices */
    enum devicemgr_why_step step;
    const char *const *ids; /* with GO: what it has, or would get */
    size_t ids_len;
    bool has;           /* it has them already */
    const char *word;   /* the reason's; NULL: there is none */
    const char *text;   /* the sentence of a refusal for it; NULL likewise */
    const char *clears; /* what would end it; NULL likewise */
};

struct devicemgr_why {
    const char *pod_uid, *pod_namespace, *pod_name;
    const char *container;
    bool pending;       /* a create of it is being decided, or was forwarded */
    uint64_t waited_ms; /* for so long; only while pending */
    uint64_t left_ms;   /* it is held for so long yet; 0: it is not */
    bool forwarded;     /* it is up to the runtime now */
    const struct devicemgr_why_finding *findings; /* of the whole first, if there is one */
    size_t findings_len;
    /* The last refusal; `refused_word` NULL: none is remembered. */
    const char *refused_word, *refused_text, *refused_clears;
    int refused_code;
    uint64_t refused_times; /* since the first; it was not made in between */
    uint64_t refused_first_ms_ago, refused_last_ms_ago;
    bool refused_over; /* it was made since, or its pod is gone */
};

/*
 * Calls `each` for every container of the pod that waits, was refused or has devices, before it
 * returns; what it is given is borrowed until `each` returns. `pod`: its uid, "namespace/name", or
 * its name in any namespace; NULL: all. `container` NULL: all. `now_ms` is not before the latest
 * event.
 */
void devicemgr_why(const struct devicemgr *mgr, uint64_t now_ms, const char *pod,
                   const char *container, void (*each)(void *user, const struct devicemgr_why *why),
                   void *user);

/* ---- claims ---- */

/* A request of the kubelet's for a claim that is not answered yet. */
struct devicemgr_why_request {
    bool unprepare;
    uint64_t waited_ms;
    uint64_t
        left_ms; /* it is refused then, if it is not done; UINT64_MAX: the driver has the word */
};

struct devicemgr_why_claim {
    const char *uid, *pod_namespace, *name;
    const char *driver;
    const char *state;     /* as in struct devicemgr_claim_row; "": nothing is kept of it */
    uint64_t since_ms_ago; /* that it is in it */
    const struct devicemgr_why_request *requests; /* who came first first */
    size_t requests_len;
    enum devicemgr_why_step step; /* of the first, or of what is owed; GO: nothing waits */
    const char *word;             /* with the next two: NULL with GO */
    const char *text;
    const char *clears;
    uint64_t retry_ms; /* of what is owed: its driver is told then again; 0: not by then */
    /* The last refusal; `refused_word` NULL: none is remembered. */
    bool refused_unprepare;
    const char *refused_word, *refused_text, *refused_clears;
    int refused_code;
    uint64_t refused_times; /* since the first */
    uint64_t refused_first_ms_ago, refused_last_ms_ago;
};

/* A claim by name, of a pod: as whoever can see it says. */
struct devicemgr_why_name {
    const char *pod_namespace, *name;
};

/*
 * Calls `each` for every claim that is meant, before it returns, of each of its drivers; what it is
 * given is borrowed until `each` returns. `pod` NULL: all that something waits for, that are owed,
 * or that were refused and have not been prepared, or unprepared, since. Else it is a claim's uid,
 * "namespace/name" or name, or a pod's: then those are meant that a container of the pod was made
 * with, that are among `theirs`, or that were made for the pod by its name
 * (pkg/controller/resourceclaim names them POD-CLAIM-...). With a `container` (NULL: any) not those
 * that only others of the pod were made with; what none was made with yet is in the way of all.
 */
void devicemgr_why_claims(const struct devicemgr *mgr, uint64_t now_ms, const char *pod,
                          const char *container, const struct devicemgr_why_name *theirs,
                          size_t theirs_len,
                          void (*each)(void *user, const struct devicemgr_why_claim *claim),
                          void *user);

#endif
