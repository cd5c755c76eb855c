/*
 * An event: that something came to pass, when, and how often. A value with all that it points to.
 *
 * Times are kept on both clocks: CLOCK_BOOTTIME, which nobody sets, says how old an event of this
 * boot is; for those of an earlier one there is only the wall clock.
 */
#ifndef SHIM_EVENTS_EVENT_H
#define SHIM_EVENTS_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "shim/boot.h"
#include "shim/events/limits.h"

struct event_moment {
    uint64_t wall_ms; /* CLOCK_REALTIME */
    uint64_t boot_ms; /* CLOCK_BOOTTIME */
    char boot_id[BOOT_ID_BYTES_MAX];
};

/* What is told of one. Texts that are NULL or empty: it is not about one. Bytes that are no UTF-8
 * and control characters become '?', what is too long is cut (limits.h). */
struct event_said {
    const char *kind; /* one word, e.g. "lost" */
    /* It may have been told before: ring_put() finds that out. */
    bool again;
    const char *resource;
    const char *const *ids; /* the first of `ids_total` */
    size_t ids_len, ids_total;
    const char *pod_uid, *pod_namespace, *pod_name, *container;
    const char *claim_uid, *claim_namespace, *claim_name;
    const char *word; /* of the reason */
    const char *text;
};

struct event {
    uint64_t id;    /* from 1 on, in the order in which they came; 0: none yet */
    uint64_t times; /* how often it came */
    struct event_moment first, last;
    char *kind; /* this and the texts below: "" for none; all in one piece with it */
    char *resource;
    char *pod_uid, *pod_namespace, *pod_name, *container;
    char *claim_uid, *claim_namespace, *claim_name;
    char *word, *text;
    char **ids;
    size_t ids_len, ids_total;

    size_t bytes;  /* that it takes */
    uint64_t same; /* equal for what is the same, whenever it came */
    TAILQ_ENTRY(event) entry;
    UT_hash_handle hh;
};

/* The same thing came once at `now`; without an id. `said` is copied. */
struct event *event_new(const struct event_said *said, const struct event_moment *now);
void event_free(struct event *event);

/* How long ago in ms, at `now`; 0 for what lies ahead by the wall clock. */
uint64_t event_ago_ms(const struct event_moment *then, const struct event_moment *now);

/* Both are about the same: resource, pod, container and claim. */
bool event_about_same(const struct event *a, const struct event *b);

/* Sets all of an `Event` message but when it was, borrowed: that of the file
 * (cri-proto/events_v1.proto) and that of the control socket (control_v1.proto) differ in that
 * alone. */
#define event_put(event, message)                                                                  \
    do {                                                                                           \
        (message)->id = (event)->id;                                                               \
        (message)->times = (event)->times;                                                         \
        (message)->kind = (event)->kind;                                                           \
        (message)->resource = (event)->resource;                                                   \
        (message)->n_ids = (event)->ids_len;                                                       \
        (message)->ids = (event)->ids;                                                             \
        (message)->ids_total = (event)->ids_total;                                                 \
        (message)->pod_uid = (event)->pod_uid;                                                     \
        (message)->pod_namespace = (event)->pod_namespace;                                         \
        (message)->pod_name = (event)->pod_name;                                                   \
        (message)->container = (event)->container;                                                 \
        (message)->claim_uid = (event)->claim_uid;                                                 \
        (message)->claim_namespace = (event)->claim_namespace;                                     \
        (message)->claim_name = (event)->claim_name;                                               \
        (message)->word = (event)->word;                                                           \
        (message)->text = (event)->text;                                                           \
    } while (0)

/* Its record in the file: appended to *bytes, which grows, and is the caller's to free. */
void event_pack(const struct event *event, uint8_t **bytes, size_t *len);
/* The record at the beginning of `bytes`: *event and how long it is. 0: it is not whole, or
 * damaged. */
size_t event_unpack(const uint8_t *bytes, size_t len, struct event **event);

#endif
