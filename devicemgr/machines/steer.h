/*
 * What an operator asks for, one thing after the other: each is set (order.h), committed, answered.
 */
#ifndef DEVICEMGR_MACHINES_STEER_H
#define DEVICEMGR_MACHINES_STEER_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/things/ids.h"
#include "devicemgr/things/order.h"

struct state;

enum steer_what {
    STEER_SET,
    STEER_TAKE_BACK,
    STEER_GRACE, /* is lengthened, or ended: `words` */
    STEER_LOOK,  /* what would come of a taint: nothing changes */
};

/* One thing that is asked for. */
struct steer {
    uint64_t number; /* the caller's */
    enum steer_what what;
    enum order_kind kind;
    char *resource;
    struct ids ids; /* of devices, or taints (order_taint_id()); or one, "" */
    struct order_words words;
    bool begun;      /* it waits for a commit: */
    uint64_t commit; /* the one that carries it; 0: none yet */
    struct steer *prev, *next;
};

struct steers {
    struct state *state;
    struct steer *first; /* what is being committed; then those that wait for their turn */
    size_t len;
};

void steers_fini(struct steers *steers);

/* devicemgr_cordon() and its like: `said` is copied, `ids` none for "". */
void steers_begin(struct steers *steers, const struct steer *said);
/* A commit takes what has been set. */
void steers_commit_began(struct steers *steers, uint64_t commit);
/* It is over. True: so is what it took. What follows from that is for the caller to do, then
 * steers_next(). */
bool steers_committed(struct steers *steers, uint64_t commit, const char *error);
/* Whose turn it is is begun. */
void steers_next(struct steers *steers);

#endif
