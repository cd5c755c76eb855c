/*
 * What has come to pass in one part that others must hear of.
 *
 * A part that ends an endpoint does not know who has calls on it: it puts the event here, and
 * turn.c tells them as soon as what was going on is through. There is at most one event of a
 * kind and object at a time.
 */
#ifndef DEVICEMGR_BOOKS_OUTBOX_H
#define DEVICEMGR_BOOKS_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>

enum outbox_kind {
    OUTBOX_ENDPOINT_ENDED,  /* `number`: its connection is over, and the calls on it with it */
    OUTBOX_RESOURCE_SERVED, /* `name`: here, from now on */
};

struct outbox_event {
    enum outbox_kind kind;
    uint64_t number;
    char *name; /* NULL: none */
    struct outbox_event *prev, *next;
};

/* A zeroed struct is empty. */
struct outbox {
    struct outbox_event *first;
};

/* `name` is copied. */
void outbox_put(struct outbox *outbox, enum outbox_kind kind, uint64_t number, const char *name);
/* The oldest, for outbox_event_free(); NULL: there is none. */
struct outbox_event *outbox_take(struct outbox *outbox);
void outbox_event_free(struct outbox_event *event);
void outbox_fini(struct outbox *outbox);

#endif
