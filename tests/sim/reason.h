/*
 * Why a create does not go on, or may be refused: by what is true in the world, never by what the
 * core has in its tables. Where the shim cannot know yet what is true, both count.
 */
#ifndef TESTS_SIM_REASON_H
#define TESTS_SIM_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct create_sim;
struct world;

enum reason {
    /* for good, or until the kubelet does something else */
    REASON_TOKEN = 1 << 0,    /* malformed */
    REASON_ENDED = 1 << 1,    /* its sandbox is gone, not ready, or told to stop */
    REASON_NOBODYS = 1 << 2,  /* a resource that nobody serves, or has within its grace */
    REASON_NEWER = 1 << 3,    /* another create of the same container has come */
    REASON_FEW = 1 << 4,      /* too few devices are free */
    REASON_RUNS = 1 << 5,     /* a container that runs has one of its devices */
    REASON_FAILED = 1 << 6,   /* a call on a plugin failed just now */
    REASON_LATE = 1 << 7,     /* or was not answered in time */
    REASON_STORE = 1 << 8,    /* a commit failed just now */
    REASON_DEADLINE = 1 << 9, /* the client's */
    REASON_DRAIN = 1 << 10,
    /* held for a while */
    REASON_AWAY = 1 << 11,      /* a plugin is */
    REASON_UNHEALTHY = 1 << 12, /* a device is, or is not listed */
    REASON_UNKNOWN = 1 << 13,   /* whether a container runs with its devices, or is being made */
    REASON_UNLISTED = 1 << 14,  /* the runtime has not said what it has */
    /* goes on by itself */
    REASON_CALL = 1 << 15,      /* on a plugin, under way */
    REASON_COMMIT = 1 << 16,    /* under way */
    REASON_CHECK = 1 << 17,     /* the runtime is being asked about a container */
    REASON_CHANGED = 1 << 19,   /* its container has another number of devices */
    REASON_GONE = 1 << 20,      /* its container had a token, and has none */
    REASON_DEAD = 1 << 18,      /* held for a while: its sandbox was listed as not ready */
    REASON_CORDONED = 1 << 21,  /* likewise: the operator keeps a device back */
    REASON_WITHDRAWN = 1 << 22, /* or the whole resource, for good */
    REASON_TURN = 1 << 23,      /* goes on by itself: its plugin allocates for others */
};

#define REASONS_HOLD                                                                               \
    (REASON_DEAD | REASON_CORDONED | REASON_AWAY | REASON_UNHEALTHY | REASON_UNKNOWN |             \
     REASON_UNLISTED)
#define REASONS_MOVE (REASON_CALL | REASON_COMMIT | REASON_TURN)

unsigned reasons_of(struct world *w, const struct create_sim *create);
/* What others that are being decided, or made, have or may have reserved: ids, and how many more.
 * `create` NULL: all. */
unsigned reason_reserved(const struct world *w, const struct create_sim *create, size_t resource,
                         unsigned *number);
/* Whether the core may know a resource. */
bool reason_resource_known(const struct world *w, size_t resource);
/* Whether the runtime has still to say, or to say again, what it has. */
bool reason_unlisted(const struct world *w);
/* Their names, in a static buffer. */
const char *reasons_text(unsigned reasons);

#endif
