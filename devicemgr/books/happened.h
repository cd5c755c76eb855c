/*
 * What has come to pass, for who watches the node: values that leave with the other actions, for
 * the port `event`. Nothing is decided by it, and nothing is kept of it here.
 */
#ifndef DEVICEMGR_BOOKS_HAPPENED_H
#define DEVICEMGR_BOOKS_HAPPENED_H

#include "devicemgr/ports.h"
#include "devicemgr/things/ids.h"

struct allocation;
struct claim;
struct demand;
struct ending;
struct state;

/* Of a claim of one driver. */
void happened_to_claim(struct state *state, enum devicemgr_event_kind kind, bool again,
                       const struct claim *claim, const char *words);
/* Of a resource, or of a driver; `words`: a peer's or ours, NULL: none. All of it is copied, here
 * and below. */
void happened_to_resource(struct state *state, enum devicemgr_event_kind kind, bool again,
                          const char *resource, const char *words);
/* Of the devices of an allocation. */
void happened_to_allocation(struct state *state, enum devicemgr_event_kind kind, bool again,
                            const struct allocation *allocation);
/* An operator has taken them from it; `by`: who, and why. */
void happened_taken(struct state *state, const struct allocation *allocation, const char *by);
/* It has its devices in the place of others; `words`: of which. */
void happened_replaced(struct state *state, const struct allocation *allocation, const char *words);
/* Of a pod that is ended; `word` static, `words` as above. */
void happened_to_pod(struct state *state, enum devicemgr_event_kind kind,
                     const struct ending *ending, const char *word, const char *words);
/* To the machine's shutdown; likewise. */
void happened_shutdown(struct state *state, const char *word, const char *words);
/* `demand` was refused, for the reason of this word (static), and was told so in these words;
 * `resource` NULL: not for one; `ids`: of those that it is about. */
void happened_refused(struct state *state, const struct demand *demand, const char *resource,
                      const struct ids *ids, const char *word, const char *words);

#endif
