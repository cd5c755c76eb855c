/*
 * The kubelet, as far as the core knows it: when it started, whether it has listed what runs, and
 * what its checkpoint says that its pods have.
 *
 * The sources are *ready* once the runtime has listed all it has and a kubelet was given the list
 * of sandboxes, or settings.kubelet_wait_ms are over. Nothing that was restored is dropped before.
 *
 * After a reboot it is told of its pods when the API server is there, which may be long after the
 * node; then it admits them, and not before it runs plugins that are pods. What it is shown, and
 * what is gone when its time is over, waits for that: for the first sandbox of a pod that is no
 * static one. As soon as any pod that was restored is of this boot, that has been.
 *
 * The checkpoint is an upper bound: the kubelet writes it when it gives devices away, at the
 * admission of a pod, long before its first sandbox (volumes may take minutes); what pods that are
 * gone had stays in it until the next write. So an entry whose pod the runtime does not know is of
 * a pod still to come, or of one that is gone. One that was written while the shim looked may come.
 * Of what the file had when it was read first that is not known: it may come until the sources are
 * ready, and in a new boot as long as the kubelet admits its pods; then it counts as gone.
 */
#ifndef DEVICEMGR_BOOKS_KUBELET_H
#define DEVICEMGR_BOOKS_KUBELET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/devices.h"
#include "devicemgr/things/ids.h"
#include "devicemgr/things/mem.h"

struct allocation;
struct resource;
struct state;
struct devicemgr_kubelet_held;

/* What one container has of one resource, by the kubelet's checkpoint. An entry is what it says:
 * one that says something else is another. */
struct kubelet_hold {
    char *key; /* all that it says; its texts are in there */
    const char *pod_uid;
    const char *container;
    const char *resource;
    struct ids ids;          /* sorted */
    struct devices on_nodes; /* those of which it said at first on which NUMA nodes they are */
    uint64_t since_ms;       /* when it was told first */
    uint64_t reading;        /* the last in which it was told */
    bool early;              /* it was in the file when that was read first */
    bool shown;              /* it is held, as advertise.c saw it last */
    UT_hash_handle hh;
};

/* All entries of one pod. */
struct kubelet_pod {
    char *uid;
    struct kubelet_hold **holds;
    size_t holds_len;
    bool stale; /* for advertise.c: it, or an entry of it, has changed; then it is in the list */
    struct kubelet_pod *stale_prev, *stale_next;
    UT_hash_handle hh;
};

struct kubelet_view {
    uint64_t started_ms; /* when the last one started, as far as is known: not before the shim */
    uint64_t wait_ms;    /* it is waited for until then */
    bool listed;         /* one was given the list of sandboxes since the shim started */
    bool ready;          /* the sources are */
    uint64_t ready_ms;   /* since when */
    bool new_boot;       /* what is restored is, at least in part, of an earlier boot */
    uint64_t pods_ms;    /* in a new boot: since when it has been told of its pods, or then at the
                          * latest; 0: of nothing restored that is waited for */
    bool unproven;       /* some allocation's token is to be looked for in its checkpoint */
    uint64_t readings;   /* how often its checkpoint was told */
    struct kubelet_hold *holds; /* by what they say */
    struct owners *owners;      /* by resource and id */
    struct kubelet_pod *pods;   /* by uid */
    struct kubelet_pod *stale;
};

void kubelet_fini(struct kubelet_view *kubelet);
/* The shim has started, and has all its rows. */
void kubelet_restored(struct state *state);
/* devicemgr_kubelet_started() */
void kubelet_started(struct state *state);
/* devicemgr_kubelet_listed() */
void kubelet_listed(struct state *state);
/* A sandbox is ready, of a pod that is the API server's. */
void kubelet_runs_pods(struct state *state);
/* Since when the resource, which is stopped, counts as away: for the kubelet, and for its grace
 * period. */
uint64_t kubelet_away_ms(const struct state *state, const struct resource *resource);
/* Looks whether the sources are ready; true: they are from now on. */
bool kubelet_become_ready(struct state *state);
/* When they are ready by time alone; UINT64_MAX: not so. */
uint64_t kubelet_next_ms(const struct state *state);
/* Whether a kubelet may have started so short ago that it admits pods anew (settings.mask_ms). */
bool kubelet_is_starting(const struct state *state);
/* When it counts as through with that; UINT64_MAX: it does. */
uint64_t kubelet_started_until_ms(const struct state *state);

/* ---- tokens ---- */
/* A create came at `since_ms` with the kubelet's token for the allocation. */
void kubelet_note_token(struct state *state, struct allocation *allocation, uint64_t since_ms);
/* The kubelet's checkpoint was read at `read_ms`: says which tokens that came before it does not
 * have. */
void kubelet_judge_tokens(struct state *state, uint64_t read_ms);

/* ---- kubelet_holds.c ---- */
/* devicemgr_kubelet_holds(): what both have goes on as it was. */
void kubelet_take_holds(struct state *state, const struct devicemgr_kubelet_held *held,
                        size_t held_len);
/* Whether an allocation that is shown has the very same: then the entry changes nothing. */
bool kubelet_hold_doubled(const struct state *state, const struct kubelet_hold *hold);
/* Whether the container has others in the place of what the entry says. */
bool kubelet_hold_replaced(const struct state *state, const struct kubelet_hold *hold);
/* What its checkpoint, as last told, gives the allocation's container, if those are what it asks
 * for; else NULL. */
const struct kubelet_hold *kubelet_hold_of(const struct state *state,
                                           const struct allocation *allocation);
bool kubelet_gave(const struct state *state, const struct allocation *allocation);
/* Whether the pod of the entry may be admitted again: it is known and not over, or may come. */
bool kubelet_hold_counts(const struct state *state, const struct kubelet_hold *hold);
/* Whether its devices are the pod's, as far as anybody can know: it may be admitted again, or
 * nobody else is given them (kubelet_promised()). */
bool kubelet_hold_stands(const struct state *state, const struct kubelet_hold *hold);
/* The pod's entries; valid until the checkpoint is told again. */
const struct kubelet_hold *const *kubelet_holds_of_pod(const struct state *state,
                                                       const char *pod_uid, size_t *holds_len);
/* All entries that name the device, each a struct kubelet_hold; NULL: none. Valid until the
 * checkpoint is told again. */
const struct owners *kubelet_holders(const struct state *state, const char *resource,
                                     const char *id);
/* The device as an entry has it that says on which NUMA nodes it is; NULL: none does. */
const struct device *kubelet_device_on_nodes(const struct state *state, const char *resource,
                                             const char *id);
/* The first of the pods that are stale, which are some, no more in that list. */
struct kubelet_pod *kubelet_take_stale(struct kubelet_view *kubelet);
/* What the pod is has changed, and with it whether what it was given is held. `wakes`: it may be
 * free for others. */
void kubelet_pod_changed(struct state *state, const char *pod_uid, bool wakes);
/* Whether the kubelet's checkpoint names the pod. */
bool kubelet_names_pod(const struct state *state, const char *pod_uid);
/* Whether the kubelet has given the device to a container, not this one, of a pod that is not over;
 * for one that is still to come that holds for a time. `container` NULL: not one of this pod. */
bool kubelet_promised(const struct state *state, const char *resource, const char *id,
                      const char *pod_uid, const char *container);

#endif
