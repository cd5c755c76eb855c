/*
 * Pods that are being ended from here, or were: one ending for each uid, whoever asks for it, and
 * however often.
 *
 *            stored          the API server has taken it
 *   ASKED ───┬──▶ EVICTING ──────────────────────────────▶ EVICTED
 *            │     │    ▲                                      │ its grace is to be
 *            │  1  │    │  2                                   │ shorter, or 1
 *            │     ▼    │                                      │
 *            └──▶ STOPPING ◀───────────────────────────────────┘
 *                  │    ▲
 *     none of its  │    │ one runs again: it was in the making
 *     containers   ▼    │
 *     runs        STOPPED
 *
 *   1: it is a static pod's, or somebody wants it ended here
 *   2: nobody does any more, or did in an earlier boot; from STOPPED, too
 *
 * Any of them goes to GONE when the runtime does not know the pod any more, and the ending with it.
 * From EVICTED, STOPPING and STOPPED on nothing of the pod is made any more (rules/ended.h).
 *
 * Who asks is told once. The grace only gets shorter, but of an eviction that the API server has
 * not taken yet when who wanted it so takes that back.
 */
#ifndef DEVICEMGR_THINGS_ENDING_H
#define DEVICEMGR_THINGS_ENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/ids.h"
#include "devicemgr/things/mem.h"

/* Of a grace: the pod's own. */
#define ENDING_POD_GRACE UINT64_MAX
/* The token of an asker that asks for each pod once, whatever for: an operator, eviction, the
 * machine's shutdown. */
#define END_ONCE 0

enum end_asker {
    END_OPERATOR,
    END_EVICTION,
    END_SHUTDOWN, /* of the node */
    END_ASKERS,   /* how many there are */
};

enum ending_state {
    ENDING_ASKED,    /* waits to be stored */
    ENDING_EVICTING, /* the API server is asked, as long as it takes */
    ENDING_EVICTED,  /* its pod is deleted there, and ended by the kubelet */
    ENDING_STOPPING, /* its containers are being stopped */
    ENDING_STOPPED,  /* none of them runs */
    ENDING_GONE,     /* so is the pod; waits to be forgotten by the store */
    ENDING_STATES,   /* how many there are */
};

/* What one asker wants. */
struct ending_ask {
    enum end_asker asker;
    uint64_t token;    /* the asker's, for this pod */
    uint64_t asked_ms; /* when it asked first */
    uint64_t grace_ms;
    bool or_less;     /* the pod's own, if that is shorter */
    bool force_local; /* not by the API server */
    char *why;
    uint64_t at_s; /* when, by a clock that is not looked at here; 0: not said */
    bool told;     /* that it has ended */
    struct ending_ask *prev, *next;
};

/* Written by ending.c, from `changed` on by machines/end*.c. */
struct ending {
    char *pod_uid;
    char *pod_namespace, *pod_name; /* "": not known */
    enum ending_state state;
    struct ending_ask *asks; /* oldest first; never none but in GONE */
    size_t asks_len;
    uint64_t due_ms;       /* when what was sent last kills; 0: nothing was sent */
    uint64_t pod_grace_ms; /* the pod's own, which its containers say; 0: none was seen */
    bool static_pod;       /* of a manifest: the API server knows it by another uid */
    bool earlier_boot;     /* it was asked for in one, and its pod was not seen since */
    bool unconfirmed; /* by eviction alone: nothing is sent before it is known to be so still */
    bool stored;      /* the store may have a row of it; checkpoint.c's */
    bool changed;     /* since the last commit began, in what somebody is to be told of */
    uint64_t commit;  /* which carries that; 0: none yet */
    uint64_t epoch;   /* STOPPING: a list of the runtime after this one shows it */
    uint64_t order;   /* EVICTING: its number */
    uint64_t order_grace_ms; /* EVICTING, EVICTED: which it has; ENDING_POD_GRACE: the pod's own */
    bool order_forced;       /* EVICTING: without regard to disruption budgets */
    /* EVICTING: how long nobody could be asked to, before this moment; nor can since then, 0:
     * somebody can. */
    uint64_t unasked_ms, unasked_since_ms;
    struct ids sidecars; /* STOPPING: as they were known last; none: they were not */
    UT_hash_handle hh;
};

/* A zeroed struct is an empty table. */
struct endings {
    struct ending *by_uid;
};

/* "operator", "asked" and the like; static. */
const char *end_asker_name(enum end_asker asker);
const char *ending_state_name(enum ending_state state);
/* False: there is none of that name. */
bool end_asker_find(const char *name, enum end_asker *out);
bool ending_state_find(const char *name, enum ending_state *out);

void endings_fini(struct endings *table);
size_t endings_len(const struct endings *table);
/* NULL: the pod is not being ended. */
const struct ending *endings_find(const struct endings *table, const char *pod_uid);
/* The same, to be changed. */
struct ending *endings_edit(struct endings *table, const char *pod_uid);

/* ASKED; it is not there yet, and nobody asks. All is copied, here and below. */
struct ending *endings_add(struct endings *table, const char *pod_uid, const char *pod_namespace,
                           const char *pod_name);
void endings_remove(struct endings *table, struct ending *ending);

/* Moves along the picture; the same is no move. */
void ending_set_state(struct ending *ending, enum ending_state state);
/* Of a row; `due_ms` 0 with one of an earlier boot. Nobody is told anew of what was over: all were
 * told when that was stored. That nothing runs is to be seen anew. */
void ending_set_restored(struct ending *ending, enum ending_state state, uint64_t due_ms,
                         bool static_pod, bool earlier_boot);
/* EVICTING again, of what was to be stopped here: nothing that was sent for that counts. */
void ending_set_left(struct ending *ending);
void ending_set_static(struct ending *ending);
void ending_set_pod_grace(struct ending *ending, uint64_t pod_grace_ms);
/* Its pod is there in this boot. */
void ending_set_seen(struct ending *ending);
/* It kills then at the latest. Never later than before. */
void ending_set_due(struct ending *ending, uint64_t due_ms);
void ending_set_sidecars(struct ending *ending, char *const *names, size_t names_len);

/* NULL: it asks for nothing. */
const struct ending_ask *ending_find_ask(const struct ending *ending, enum end_asker asker,
                                         uint64_t token);
/* One who asks again has a grace that is not longer, and has asked since it did first; its words
 * are the last, and it may be told anew. NULL: there are too many. */
struct ending_ask *ending_ask(struct ending *ending, const struct ending_ask *said);
void ending_drop_ask(struct ending *ending, const struct ending_ask *ask);
void ending_ask_set_told(struct ending_ask *ask);
/* Whether all that ask have been told. */
bool ending_told(const struct ending *ending);

/* When the first of those that ask still did; UINT64_MAX: nobody asks. */
uint64_t ending_asked_ms(const struct ending *ending);
/* The shortest of what is asked for; ENDING_POD_GRACE: the pod's own, which is not known. */
uint64_t ending_grace_ms(const struct ending *ending);
/* Whether somebody asks for the pod's own grace, which is not known, and somebody for another. */
bool ending_grace_is_open(const struct ending *ending);
/* EVICTING, EVICTED: which the order has; ENDING_POD_GRACE: the pod's own, which is not known; 0:
 * that is not known, of a row of an earlier release. */
uint64_t ending_order_grace_ms(const struct ending *ending);
/* Likewise whether it is to be shorter. */
bool ending_grace_is_shorter(const struct ending *ending);
/* Whether nobody else asks for it. */
bool ending_asked_only_by(const struct ending *ending, enum end_asker asker);
/* Whether somebody wants it ended here. */
bool ending_forced_local(const struct ending *ending);
/* Whether nothing of the pod is to be made any more. */
static inline bool ending_refuses(const struct ending *ending)
{
    return ending->state == ENDING_EVICTED || ending->state == ENDING_STOPPING ||
           ending->state == ENDING_STOPPED;
}
/* Whether it has come to its end, as far as it does here. */
static inline bool ending_is_over(const struct ending *ending)
{
    return ending->state == ENDING_EVICTED || ending->state == ENDING_STOPPED ||
           ending->state == ENDING_GONE;
}

#endif
