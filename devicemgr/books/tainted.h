/*
 * Which taints are in force on a device, wherever they come from: an operator's orders, the
 * settings, what its plugin says of its health, what the cluster says.
 *
 * By its health a device is tainted NoSchedule as long as it is unhealthy: other rules, older than
 * taints, see to it that nobody new gets one. It is NoExecute where the settings say so, once it
 * has been unhealthy for that long by the word of a plugin that is connected. What is said once
 * holds while the plugin is away, but nothing new comes of that. Of a resource's devices at most
 * one of TAINT_HEALTH_SHARE is NoExecute by health at a time, and at least one; with more the
 * *guard* closes: nothing new becomes NoExecute before none of them is unhealthy for so long, with
 * its plugin or without. An operator may taint the others. That it is closed outlives a restart,
 * and so does since when those are unhealthy that are NoExecute, or held back by it; another boot
 * forgets both.
 */
#ifndef DEVICEMGR_BOOKS_TAINTED_H
#define DEVICEMGR_BOOKS_TAINTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/cluster_taints.h"
#include "devicemgr/things/consumers.h"
#include "devicemgr/things/ids.h"
#include "devicemgr/things/order.h"
#include "devicemgr/things/taint.h"

struct devicemgr_annotation;
struct pod;
struct state;

/* One of the settings; it counts from when it came into them, in the life of this process. */
struct settings_taint {
    char *resource;
    char *id; /* "": every device of it */
    char *key, *value;
    enum taint_effect effect;
    uint64_t added_ms;
};

/* What comes of the health of a resource's devices, besides those that are NoExecute, and that it
 * is closed, which outlive a restart (struct resource). */
struct health_guard {
    char *resource;
    size_t held_back;   /* those that would be besides */
    uint64_t usable_ms; /* since when its plugin is connected; UINT64_MAX: it is not */
    uint64_t changes;   /* of its devices, at the last look */
    uint64_t next_ms;   /* another look is due then */
    UT_hash_handle hh;
};

/* A zeroed struct has none. */
struct tainted {
    struct cluster_taints cluster;
    struct consumers *consumers; /* of claims */
    bool told;                   /* all that the cluster has of them was, since the start */
    bool doubted;                /* the agent that told them has gone: they may be others by now */
    uint64_t away_ms;            /* when the cluster was away last, or the agent; 0: never */
    struct settings_taint *settings;
    size_t settings_len;
    size_t settings_no_execute; /* how many of those are */
    bool by_health;             /* the settings have some resource's devices NoExecute by health */
    struct health_guard *guards;
    uint64_t changes; /* of what an operator, the settings or health have in force */
    uint64_t ends_ms; /* when the next order ends by itself; 0: it is to be found out */
    bool ended;       /* some have, and are to go as soon as that can be stored */
};

void tainted_fini(struct tainted *tainted);
/* The settings are others. */
void tainted_settings_changed(struct state *state);
/* All rows are in, and it is known what time it is: those that the settings have from the first on
 * count from now on, and what health had led to is forgotten where they have none for it. */
void tainted_started(struct state *state);
/* Taints of the resource (or driver) have come, have gone, or are others; NULL: of any. */
void tainted_changed(struct state *state, const char *resource);

/* What the pod (NULL: it is not known) tolerates, from its annotations as they are told now: all of
 * them. */
void tainted_note_pod(struct state *state, struct pod *pod,
                      const struct devicemgr_annotation *annotations, size_t len);

/* Calls `each` for every taint in force on the device, until it returns false. Whether it never
 * did. */
bool tainted_each(const struct state *state, const char *resource, const char *id,
                  bool (*each)(void *user, const struct taint *taint), void *user);
/* Whether the operator or the settings taint any of the resource's devices: cheap. */
bool tainted_any(const struct state *state, const char *resource);
/* Likewise whether they have set anything for it, so that any of its devices may be kept back. */
bool tainted_or_ordered(const struct state *state, const char *resource);
/* Whether nobody new gets the device who tolerates nothing: it is cordoned, or one of these taints
 * keeps it back. */
bool tainted_or_cordoned(const struct state *state, const char *resource, const char *id);
/* Whether anything may be NoExecute at all: cheap. */
static inline bool tainted_no_execute(const struct tainted *tainted, const struct orders *orders)
{
    return orders->no_execute > 0 || tainted->settings_no_execute > 0 || tainted->guards ||
           cluster_taints_no_execute(&tainted->cluster);
}
/* The taint of the operator, as it is. */
struct taint tainted_of_order(const struct order *order);
/* And that of the settings. */
struct taint tainted_of_settings(const struct settings_taint *is);

/* Orders that have ended by themselves go, and what devices' health leads to is looked at, as far
 * as that is due. To be called after events and ticks, unless there is nothing of either. */
void tainted_review(struct state *state);
static inline bool tainted_quiet(const struct tainted *tainted, const struct orders *orders)
{
    return !orders->tainted && !tainted->by_health && !tainted->guards;
}
/* When it is due by time alone; UINT64_MAX: never. */
uint64_t tainted_next_ms(const struct state *state);

#endif
