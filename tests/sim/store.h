/*
 * The checkpoint of the simulated node: rows that are durable, and the commit under way.
 *
 * A commit is durable as a whole or not at all. It may be slow, or fail; when the shim dies under
 * it, either may have happened. What was acknowledged stays.
 */
#ifndef TESTS_SIM_STORE_H
#define TESTS_SIM_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/ports.h"

struct world;

/* The longest a commit takes while the store is slow. */
#define STORE_SLOW_MS_MAX 8000

enum store_mode {
    STORE_GOOD,
    STORE_SLOW,
    STORE_FAILING, /* disk full, read-only, I/O error */
};

struct store_row {
    struct devicemgr_record record; /* owned */
    struct store_row *next;
};

struct store {
    enum store_mode mode;
    struct store_row *rows;
    struct store_row *pending; /* of the commit under way */
    uint64_t commit;           /* 0: none */
    uint64_t begun_ms;         /* when the last commit was */
    uint64_t failed_ms;        /* when the last commit failed; 0: it did not, or another came */
    bool fails;                /* the last that ended in this life of the shim has failed */
    bool owed;                 /* and something of it is to be written or deleted for certain */
    bool reset;                /* begun anew while the shim runs; nothing was committed since */
};

void store_fini(struct store *store);
/* The port. */
void store_commit(struct world *w, uint64_t commit, const struct devicemgr_record *records,
                  size_t records_len);
/* The shim is killed: a commit under way is durable, or lost. */
void store_crash(struct world *w);
/* Some rows are damaged, and dropped for their checksums; what is left of them is shown to a core
 * of its own, which must survive it. False: none was. */
bool store_damage(struct world *w);
/* The file is damaged, set aside, and begun anew. False: nothing was in it. */
bool store_lose(struct world *w);
/* What could not be stored is tried again. After each event. */
void store_check(struct world *w);
/* NULL: not there. */
const struct store_row *store_find(const struct store *store, enum devicemgr_record_kind kind,
                                   const char *k0, const char *k1, const char *k2);
/* How many rows of this kind there are. */
size_t store_count(const struct store *store, enum devicemgr_record_kind kind);

#endif
