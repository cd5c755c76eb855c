/*
 * Which rows of the checkpoint differ from the state.
 *
 * Rows are marked by key, and packed when a commit begins (checkpoint.h), from the state of that
 * moment.
 */
#ifndef DEVICEMGR_BOOKS_DIRTY_H
#define DEVICEMGR_BOOKS_DIRTY_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/ports.h"
#include "devicemgr/things/mem.h"

struct allocation;
struct claim;
struct driver;
struct ending;
struct order;
struct pod;
struct resource;
struct state;

#define DIRTY_KEYS_LEN 3
#define DIRTY_SHUTDOWN_KEY "shutdown"

struct dirty_row {
    enum devicemgr_record_kind kind;
    char *key;
    const char *parts[DIRTY_KEYS_LEN]; /* within `key` */
    size_t key_bytes;
    bool stored; /* the store may have a row under this key */
    bool put;    /* of one that is carried: with a value, else as deleted */
    UT_hash_handle hh;
};

/* A zeroed struct has none. */
struct dirty {
    struct dirty_row *rows;
    bool due; /* some row wants a commit of its own accord */
};

/* The row differs from the state. `due`: begin a commit soon; else it rides along with one. */
void dirty_touch_resource(struct state *state, const char *resource, bool due);
void dirty_touch_allocation(struct state *state, const struct allocation *allocation);
void dirty_touch_pod(struct state *state, const char *pod_uid);
/* Likewise; its row is to be deleted soon. */
void dirty_touch_pod_gone(struct state *state, const char *pod_uid);

/* Soon, too. */
void dirty_touch_order(struct state *state, const struct order *order);
void dirty_touch_driver(struct state *state, const struct driver *driver);
void dirty_touch_claim(struct state *state, const struct claim *claim);
/* `due`: likewise, else it rides along. */
void dirty_touch_ending(struct state *state, const struct ending *ending, bool due);
void dirty_touch_shutdown(struct state *state);
/* Whether rows are lost. */
void dirty_touch_loss(struct state *state, bool due);

/* Whether the store may have another row of the claim than it is to have: the row differs, or a
 * commit carries it. Of one that has none it may have one yet, of the same names before it. */
bool dirty_claim_unstored(const struct state *state, const struct claim *claim);

/* Whether a row of this kind and first key differs; what is gone and was never stored has none. */
bool dirty_any_of(const struct dirty *dirty, enum devicemgr_record_kind kind, const char *first);

/* ---- for who writes them ---- */

/* NULL: the row does not differ. */
struct dirty_row *dirty_find(const struct dirty *dirty, const char *key, size_t key_bytes);
/* Finds or adds; `parts` has DIRTY_KEYS_LEN, and is copied. */
struct dirty_row *dirty_ensure(struct state *state, enum devicemgr_record_kind kind,
                               const char *const *parts);
/* What the row is of: one of them, or none. Valid until a table changes. */
struct dirty_thing {
    struct resource *resource;
    struct allocation *allocation;
    struct pod *pod;
    struct order *order;
    struct driver *driver;
    struct claim *claim;
    struct ending *ending;
    bool shutdown; /* the machine's: of no table */
    bool loss;     /* whether rows are lost: of no table */
    bool *stored;  /* where it remembers that the store may have its row */
};
struct dirty_thing dirty_thing(struct state *state, const struct dirty_row *row);
/* It is in no table any more. */
void dirty_row_free(struct dirty_row *row);
void dirty_rows_free(struct dirty_row **rows);

#endif
