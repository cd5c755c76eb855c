/*
 * The windows' accounting (RFC 9113 §5.2, §6.9): a ledger for the connection, one for each
 * intercepted stream (flow.h), and when the client is credited by us.
 *
 * An ordinary stream has none: its two ends keep its window, as long as its bytes pass.
 */
#ifndef SHIM_RELAY_SESSION_WINDOWS_H
#define SHIM_RELAY_SESSION_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/relay/flow.h"

struct session;
struct stream;

struct windows {
    struct flow flow;         /* of the connection, client → runtime */
    int64_t initial;          /* the runtime's, for streams: the smallest not yet overruled */
    uint32_t acked;           /* the one whose ACK the runtime has */
    uint32_t frame_bytes_max; /* the largest the runtime has ever allowed */
};

void windows_init(struct windows *w);

/* Whether the client was promised more than the runtime would take now. */
static inline bool windows_outgrown(const struct flow *f, uint32_t frame_bytes)
{
    return f->surplus > 0 && f->send < (int64_t)frame_bytes;
}

/* Tells the client what it is owed of the connection's window, and what it lacks for bytes that are
 * withheld, before its other calls run dry. */
void windows_credit_connection(struct session *s);

/* The same of a stream, and what a withheld message lacks that outgrows the stream's window: it
 * would never become whole. Nothing once the client has ended its side. */
void windows_credit_stream(struct session *s, struct stream *st);

/* The initial window for streams is `value` from here on, also of those that there are. */
void windows_set_initial(struct session *s, uint32_t value);

/*
 * The client has acknowledged an initial window: what we send may use it from here on, unless a
 * smaller one has been announced since. Before the ACK the runtime may hold a larger one against us
 * (RFC 9113 §6.5.3). What is queued may go then (withheld_pump_all()).
 */
void windows_acknowledged(struct session *s, uint32_t value);

#endif
