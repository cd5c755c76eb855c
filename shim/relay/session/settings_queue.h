/*
 * The SETTINGS frames that one end is sent and has not acknowledged, oldest first. They are
 * acknowledged in order (RFC 9113 §6.5.3), which is what tells whose an ACK is: the other end's, or
 * ours, a *barrier* (ending.h).
 */
#ifndef SHIM_RELAY_SESSION_SETTINGS_QUEUE_H
#define SHIM_RELAY_SESSION_SETTINGS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/relay/buffer.h"

#define SETTINGS_ENTRY_BYTES 6

/* One SETTINGS frame that waits for its ACK. */
struct settings_sent {
    uint32_t barrier; /* ours: the stream that waits for its ACK; 0: an end's own */
    bool has_table_size;
    uint32_t table_size_min; /* the smallest and the last of those it holds */
    uint32_t table_size;
    bool has_window;
    uint32_t window; /* SETTINGS_INITIAL_WINDOW_SIZE */
};

/* For embedding; zeroed it is empty. */
struct settings_queue {
    struct buffer unacked; /* of struct settings_sent */
    size_t own;            /* those among them that an end sent */
    uint64_t pushed;       /* how many have ever been in it */
    uint64_t popped;       /* how many have left it */
    uint64_t under_way;    /* number of the frame that is read now, counted as `pushed` */
    uint8_t entry[SETTINGS_ENTRY_BYTES]; /* of that frame, not yet whole */
    size_t entry_len;
};

void settings_queue_fini(struct settings_queue *q);

/* `sent` goes out now. 0, -ENOMEM, or -EPROTO when too many wait: RELAY_STREAMS_MAX of ours,
 * RELAY_SETTINGS_PENDING_MAX of the end's. */
int settings_queue_push(struct settings_queue *q, const struct settings_sent *sent)
    __attribute__((warn_unused_result));

/* The next ACK's; false: there is none. */
bool settings_queue_pop(struct settings_queue *q, struct settings_sent *out);

/* The one pushed last is a frame of which more is to be read. */
void settings_queue_begin(struct settings_queue *q);

/* It, borrowed until the next call; NULL: it was acknowledged before it was whole. */
struct settings_sent *settings_queue_under_way(struct settings_queue *q);

/* The smallest initial window that is announced and not acknowledged, or `window` if that is
 * smaller. */
uint32_t settings_queue_window_min(const struct settings_queue *q, uint32_t window);

#endif
