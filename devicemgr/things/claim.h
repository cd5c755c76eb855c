/*
 * A claim, as far as one driver has something of it: by the claim's uid and the driver's name. What
 * is kept says what the driver may have, whatever happens in the next moment:
 *
 *      NEW ──▶ ASKED ──▶ SENT ──▶ PREPARED        a prepare is asked for; sent; answered
 *       │        │         │▲        │▲
 *       │        │         ▼│        ▼│           prepared anew
 *       │        │       UNPREPARING ─┘           an unprepare is sent
 *       │        ▼         ▼         ▼
 *       │       OWED ◀──── (the driver is away, and it may be put off)
 *       ▼        ▼         ▼
 *      GONE ◀──────────────┘                      an unprepare was answered
 *
 * NEW has no row: a claim from before its driver came here, of which nothing was asked but to
 * unprepare it. In ASKED the driver has nothing of it through us. All but NEW and GONE have a row.
 * One is durable once the store has the row of its state as it is; a change makes it wait anew.
 */
#ifndef DEVICEMGR_THINGS_CLAIM_H
#define DEVICEMGR_THINGS_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/granted.h"
#include "devicemgr/things/mem.h"

enum claim_state {
    CLAIM_NEW,
    CLAIM_ASKED,
    CLAIM_SENT,
    CLAIM_PREPARED,
    CLAIM_UNPREPARING,
    CLAIM_OWED,
    CLAIM_GONE,
    CLAIM_STATES, /* how many there are */
};

struct claims_of;

/* A container that was asked for with devices of the claim, and may run. */
struct claim_user {
    bool former; /* with those that the claim had before: its driver has answered others since */
    char *sandbox_id;
    char *container;
    char *pod;     /* for people: "namespace/name" */
    char *pod_uid; /* "": not known */
    uint64_t asked_ms;
};

/* Written by claim.c alone, but for `stored` and `given_up`. */
struct claim {
    char *uid;
    char *driver;
    char *pod_namespace;
    char *name;
    enum claim_state state;
    uint64_t since_ms; /* that it is in this state, as far as this process knows */
    bool durable;      /* the store has this */
    uint64_t commit;   /* or this one carries it; 0: none yet */
    uint8_t *response; /* what the driver answered last (dra v1's bytes); NULL: nothing */
    size_t response_bytes;
    uint64_t prepared_ms;   /* since when it is prepared; 0: it is not, or was in an earlier boot */
    struct granted devices; /* the same, read */
    /* What the driver had answered before that, as far as containers may run with it that were
     * asked for then: of all of them together, and CLAIM_FORMER_MAX at most. */
    struct granted former;
    /* All that it had answered before that since the claim was prepared first, whoever has it: a
     * kubelet may name it yet (lapsed.h). CLAIM_FORMER_MAX at most, the newest. */
    struct granted lapsed;
    bool sent;       /* a prepare of it went out through us, or may have */
    bool unanswered; /* likewise since the answer, after which it may have others than those */
    bool moved;      /* its driver was the kubelet's since it was asked for, or is OWED, here: that
                        may have it again, or no more */
    bool earlier; /* it is OWED by who was here before: while nobody was, the kubelet may have had
                        its driver, and may have it again */
    bool local;   /* its devices are this node's alone, as was seen once */
    bool alone;   /* it has them alone, neither shared nor to look at, as the cluster said last when
                        it was allocated, in this process or before: since it was asked for last, or
                        somebody has used it */
    /* Its allocation, as far as it is this driver's, told since it was asked for last. */
    bool allocation_known;
    bool allocated;
    struct granted allocation;
    struct claim_user *users;
    size_t users_len;
    /* It is not prepared anew for the runtime's sake before then; the last pause. */
    uint64_t anew_ms;
    uint64_t anew_pause_ms;
    /* Who may use it is not asked of the cluster again before then (evict.h). */
    uint64_t look_again_ms;
    /* Since when it refuses to tell that, as far as it has told nothing; 0: it never did. What it
     * refused before it was away counts for nothing. */
    uint64_t refused_ms;
    unsigned lost;    /* calls for it that ended with its driver, since that has answered one */
    bool held_told;   /* that another pod may have a device of it, and nobody knows more */
    bool stored;      /* the store may have a row of it; checkpoint.c's */
    bool given_up;    /* we asked to prepare it anew, which could not be stored; the tasks' */
    bool owed_stored; /* it is OWED no more, and the store may say yet that it is */
    struct claims_of *of;
    struct claim *prev, *next; /* of the driver */
    char *key;
    size_t key_bytes;
    UT_hash_handle hh;
};

/* Those of one driver, known or not. */
struct claims_of {
    char *driver;
    struct claim *first; /* who came first */
    size_t len;
    size_t owed;        /* of them: how many are OWED; */
    size_t owed_stored; /* or are so by the store alone; */
    /* The tasks': */
    bool owed_less;    /* one of those was, and is not any more */
    size_t owed_calls; /* that are under way, of what is owed */
    UT_hash_handle hh;
};

/* A zeroed struct is an empty table. */
struct claims {
    struct claim *by_key;
    struct claims_of *by_driver;
    size_t response_bytes; /* of all */
};

/* "asked" and so on, of those that have a row; static. */
const char *claim_state_name(enum claim_state state);
/* The same of all of them, for people; static. */
const char *claim_state_word(enum claim_state state);
/* False: there is none of that name. */
bool claim_state_find(const char *name, enum claim_state *out);
/* Whether a claim in it has a row. */
bool claim_state_kept(enum claim_state state);

void claims_fini(struct claims *table);
size_t claims_len(const struct claims *table);
/* NULL: there is none. */
const struct claim *claims_find(const struct claims *table, const char *uid, const char *driver);
/* The same, to be changed. */
struct claim *claims_edit(struct claims *table, const char *uid, const char *driver);
/* Whether any driver has something of it. */
bool claims_have(const struct claims *table, const char *uid);
/* NULL: there is no claim of the driver. */
const struct claims_of *claims_of(const struct claims *table, const char *driver);

/* It is not there yet: NEW. */
struct claim *claims_add(struct claims *table, const char *uid, const char *driver,
                         const char *pod_namespace, const char *name);
void claims_remove(struct claims *table, struct claim *claim);
/* One that is GONE is asked for again: NEW, and nothing is known of it but what was told of its
 * allocation since then. */
void claims_renew(struct claims *table, struct claim *claim, uint64_t now_ms);

/* As in the picture; also back to what it was, where a change could not be stored. */
void claim_set_state(struct claim *claim, enum claim_state state, uint64_t now_ms);
/* Of a row: in this state since now, and durable. */
void claim_set_restored(struct claim *claim, enum claim_state state, uint64_t now_ms, bool sent,
                        bool unanswered, bool local);
/* One that has a row. */
void claim_set_moved(struct claim *claim, bool moved);
/* It was prepared for the first time. */
void claim_set_prepared(struct claim *claim, uint64_t prepared_ms);
/* What the driver answered; copied. Who uses it by now has what it was before. False, and nothing
 * has changed: it is no such answer. */
bool claims_set_response(struct claims *table, struct claim *claim, const void *response,
                         size_t response_bytes) __attribute__((warn_unused_result));
void claim_set_local(struct claim *claim);
/* Of one that is restored. */
void claim_set_alone(struct claim *claim);
/* Whether what its driver is given now may be other devices than those that were seen to be
 * local. */
bool claim_local_doubted(const struct claim *claim);
/* It may have been sent by somebody who is forgotten. */
void claim_set_doubted(struct claim *claim);
/* What is allocated now; `granted` is taken. */
void claim_set_allocation(struct claim *claim, bool allocated, struct granted *granted);
/* Whether it only looks at a device of its allocation, whoever has that. */
bool claim_looks(const struct claim *claim);
/* Whether the driver's answer has this CDI device. */
bool claim_has_cdi(const struct claim *claim, const char *name);
/* The container among those that may run with it; NULL: it is none of them. */
struct claim_user *claim_find_user(const struct claim *claim, const char *sandbox_id,
                                   const char *container);
/* With the devices that the claim has now. Once for each; there is a most of them. Whether the row
 * is another by that. All is copied. */
bool claim_add_user(struct claim *claim, const char *sandbox_id, const char *container,
                    const char *pod, const char *pod_uid, uint64_t asked_ms);
/* If it is one of them it is as if it were asked for then. */
void claim_note_asked(struct claim *claim, const char *sandbox_id, const char *container,
                      uint64_t asked_ms);
void claim_drop_user(struct claim *claim, size_t index);
/* Of a row: that the user, whom there is, has what the claim had before, and what that was;
 * copied. */
void claim_set_former(struct claim *claim, const char *sandbox_id, const char *container);
void claim_add_former(struct claim *claim, const struct granted_device *device);
/* Likewise all that its driver had answered before; `lapsed` is taken. */
void claim_set_lapsed(struct claim *claim, struct granted *lapsed);
/* What the user may have of the claim: one of the claim's two lists. */
const struct granted *claim_devices_of(const struct claim *claim, const struct claim_user *user);
/* That another pod may have a device of it is to be told: once, until it is prepared again. */
bool claim_tell_held_once(struct claim *claim);
/* The runtime cannot resolve its devices. Whether it is to be prepared anew now; not again for
 * *pause_ms. */
bool claim_anew(struct claim *claim, uint64_t now_ms, uint64_t *pause_ms);
/* A call for it has ended with its driver; or that has answered one. */
void claim_note_lost(struct claim *claim);
void claim_note_answered(struct claim *claim);
/* Calls for it have ended so CLAIM_LOST_MAX times, one after the other. */
bool claim_is_lost(const struct claim *claim);
/* It has to be told anew; who runs with the claim has what it had. */
void claim_forget_allocation(struct claim *claim);
/* The store has lost it. */
void claim_set_unstored(struct claim *claim);
/* A commit carries its row as it is now. */
void claim_carry(struct claim *claim, uint64_t commit);
/* The commit that carries it is over. */
void claim_committed(struct claim *claim, bool durable);

#endif
