/*
 * What is known of the cluster: objects of a few kinds, each under its key, as bytes that only who
 * wants to know looks into. Agent and daemon have one each, and the one tells the other what
 * changes.
 */
#ifndef SHIM_FACTS_H
#define SHIM_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

/* Of one kind, so that none takes another's room; and of one fact. */
#define FACTS_MAX 1024
#define FACTS_BYTES_MAX (2u * 1024 * 1024)
#define FACT_BYTES_MAX (64u * 1024)
#define FACT_KEY_BYTES_MAX 128
#define FACT_KINDS_MAX 8

struct fact {
    int kind;
    const char *key;
    const uint8_t *value; /* NULL: it is no more, which is still to be told */
    size_t len;
    /* private */
    bool changed; /* since it was last told */
    bool seen;    /* since facts_list_begin() */
    char *name;   /* of the table: the kind's letter, then the key */
    uint8_t *bytes;
    UT_hash_handle hh;
};

struct facts {
    /* private */
    struct fact *table;
    size_t len[FACT_KINDS_MAX], bytes[FACT_KINDS_MAX];
    bool complete[FACT_KINDS_MAX];
};

/* All zero is a table with nothing in it. */
void facts_fini(struct facts *facts);

/* It is so. 1: that is new; 0: it was so; -ENOSPC: it is too large, or there are too many, and what
 * was known of it is no more. Bytes are copied. */
int facts_put(struct facts *facts, int kind, const char *key, const uint8_t *value, size_t len);
/* It is no more. True: that is new. */
bool facts_remove(struct facts *facts, int kind, const char *key);
/* NULL: it is not known. Borrowed until the table changes. */
const struct fact *facts_find(const struct facts *facts, int kind, const char *key);

/* A list of that kind begins; what is not put until it has ended is no more. True: some was not. */
void facts_list_begin(struct facts *facts, int kind);
bool facts_list_end(struct facts *facts, int kind);
/* Whether all of that kind is known: a list has ended, or the other side says so. */
bool facts_complete(const struct facts *facts, int kind);
void facts_set_complete(struct facts *facts, int kind, bool complete);

/* How many there are of all kinds, with those that are no more and not told yet. */
size_t facts_len(const struct facts *facts);
/* All of them, one after the other, in no order: NULL at first, and at the end. */
const struct fact *facts_next(const struct facts *facts, const struct fact *after);

/* What has changed is told from now on as the rest is: calls `each` for those (all: for all that
 * there are), and forgets those that are no more. `each` must not change the table. */
void facts_tell(struct facts *facts, bool all, void (*each)(void *user, const struct fact *fact),
                void *user);

#endif
