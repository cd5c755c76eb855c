/*
 * DATA that is withheld: it waits in its stream's queue for a decision, or for a window of the
 * runtime's, and goes on in frames of our own.
 */
#ifndef SHIM_RELAY_SESSION_WITHHELD_H
#define SHIM_RELAY_SESSION_WITHHELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;
struct stream;

/* Takes a piece of a frame that does not pass: `body` goes to the queue, of `wire_bytes` with its
 * padding. 0 or -ENOMEM. */
int withheld_put(struct session *s, struct stream *st, const uint8_t *body, size_t body_bytes,
                 size_t wire_bytes) __attribute__((warn_unused_result));

/* A message of ours, in two parts, takes the place of the first in the queue; what the client sent
 * behind that stays. 0 or -ENOMEM, then nothing has changed. */
int withheld_replace(struct session *s, struct stream *st, const void *fragment,
                     size_t fragment_bytes, const void *message, size_t message_bytes)
    __attribute__((warn_unused_result));

/* It was decided, or cannot be: what is queued may go, now or with the windows. The owner hears
 * nothing of a request that it has not been told of. Frees a stream that was only parked. */
void withheld_open(struct session *s, struct stream *st);

/* Sends what the windows let go of it. The same. */
void withheld_pump(struct session *s, struct stream *st);
/* Of all that wait for a window. */
void withheld_pump_all(struct session *s);

/* Whether the client is within a frame whose bytes go to the stream's queue. */
bool withheld_frame(const struct session *s, const struct stream *st);

#endif
