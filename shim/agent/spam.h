/*
 * How often one object may be told of, as client-go's EventCorrelator limits its Events
 * (staging/src/k8s.io/client-go/tools/record/events_cache.go): what is the same as before becomes a
 * count, and one object has 25 Events, and then one each five minutes.
 */
#ifndef SHIM_AGENT_SPAM_H
#define SHIM_AGENT_SPAM_H

#include <stdbool.h>
#include <stdint.h>

/* Objects, and Events that may be counted on, that are remembered; the oldest goes. */
#define SPAM_OBJECTS_MAX 256
#define SPAM_EVENTS_MAX 256
#define SPAM_BURST 25
#define SPAM_REFILL_MS 300000
/* One that is told again later than that is a new one. */
#define SPAM_ALIKE_MS 600000
/* An Event's name and its NUL: a DNS subdomain. */
#define SPAM_NAME_BYTES_MAX 254

struct spam_object {
    uint64_t hash; /* of its uid; 0: a free place */
    double tokens;
    uint64_t at_ms;
};

struct spam_event {
    uint64_t hash; /* of all that makes it the same; 0: a free place */
    uint64_t at_ms;
    unsigned count;
    char name[SPAM_NAME_BYTES_MAX];
};

/* All zero: nothing was told yet. */
struct spam {
    struct spam_object objects[SPAM_OBJECTS_MAX];
    struct spam_event events[SPAM_EVENTS_MAX];
};

/* Whether the object may be told of once more; if so, that counts. */
bool spam_allows(struct spam *spam, uint64_t object, uint64_t now_ms);

/* The Event that was the same; NULL: there is none that may be counted on. Borrowed until the next
 * call. */
struct spam_event *spam_find(struct spam *spam, uint64_t event, uint64_t now_ms);

/* One was made. */
void spam_note(struct spam *spam, uint64_t event, const char *name, uint64_t now_ms);

#endif
