/*
 * The calls of the programs under test that may fail, in a file that they and the test have mapped
 * (tests/lib/faults.py reads it): each call site has an entry from the first time that it is met.
 *
 * A site is where a function of the C library is called from, by the return addresses of the
 * FRAMES_MAX innermost frames, with the errno it is to fail with. Each fails once, in whichever
 * process meets it first while the test lets calls fail.
 */
#ifndef TESTS_FAULTS_FAULT_TABLE_H
#define TESTS_FAULTS_FAULT_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FAULT_FRAMES_MAX 8
#define FAULT_SITES_MAX 32768 /* a power of two */
#define FAULT_TEXT_BYTES 480
#define FAULT_BY_BYTES 24
#define FAULT_MAGIC UINT64_C(0x31544c5541465348)

struct fault_site {
    _Atomic uint64_t key; /* 0: none */
    atomic_uint met;      /* how often, while calls might fail */
    atomic_uint pid;      /* in which it has failed; 0: not yet */
    uint32_t number;      /* from 1 on, in the order in which they failed */
    uint32_t unused;
    uint64_t at_ms;              /* since the epoch */
    char text[FAULT_TEXT_BYTES]; /* function, errno, frames as MODULE+OFFSET */
};

struct fault_table {
    uint64_t magic;
    atomic_int budget;  /* how many calls may fail until the test says so again */
    atomic_uint calls;  /* that were met while there was a budget */
    atomic_uint failed; /* how many have */
    atomic_uint full;   /* sites that found no place */
    uint32_t stride;    /* only sites whose key is `phase` modulo this one */
    uint32_t phase;
    uint32_t gap_ms;          /* between two that fail, at least */
    uint32_t memory_only;     /* no call fails whose errno is not ENOMEM first */
    uint32_t connections;     /* only with what a connection's end gives, or want of descriptors */
    _Atomic uint64_t last_ms; /* when one has, since the epoch */
    /* Only calls by a library whose name begins so, directly or through a function of another's; in
     * the programs that are linked with none such none. Empty: all. */
    char by[FAULT_BY_BYTES];
    char program[FAULT_BY_BYTES]; /* only in programs of this name; empty: in all three */
    struct fault_site sites[FAULT_SITES_MAX];
};

/* Maps the file; NULL: it is none. */
struct fault_table *fault_table_map(const char *path);

/* Whether a call may fail again. */
bool fault_table_is_time(const struct fault_table *table, uint64_t now_ms);

/* Whether the call with that key is to fail: it is then this process's, once. */
bool fault_table_take(struct fault_table *table, uint64_t key, uint64_t now_ms,
                      struct fault_site **site);

#endif
