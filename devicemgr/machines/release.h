/*
 * Pods whose devices an operator takes from them, since they should not be there. Of each:
 *
 *              the rule says so           durable
 *   LISTING ─────────────────────▶ STORING ───────▶ answered
 *      │ it does not, or the runtime does not say
 *      └─────────────────────────▶ answered
 *
 * The runtime is asked anew first: the rule (releasable.h) looks at a list that is younger than the
 * question. What is removed is gone from the table at once, and a commit that fails is tried again
 * as any other: nobody gets a device but by a commit that carries this one's rows, too.
 */
#ifndef DEVICEMGR_MACHINES_RELEASE_H
#define DEVICEMGR_MACHINES_RELEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state;

struct releases {
    struct state *state;
    struct release *first; /* in the order of questions */
    size_t len;
};

void releases_fini(struct releases *releases);

/* devicemgr_release(): of this pod, which has something. It and `by` are copied. */
void releases_begin(struct releases *releases, uint64_t number, const char *pod_uid, const char *by,
                    bool dry);
/* A list of the runtime was taken. */
void releases_listed(struct releases *releases);
/* Those for which none has come in time. */
void releases_tick(struct releases *releases);
uint64_t releases_next_ms(const struct releases *releases);
/* A commit takes what has been removed; it is over. */
void releases_commit_began(struct releases *releases, uint64_t commit);
void releases_committed(struct releases *releases, uint64_t commit, const char *error);

#endif
