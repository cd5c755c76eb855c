/*
 * What the files of a connection share; nobody else includes this.
 */
#ifndef SHIM_RELAY_CONNECTION_INSIDE_H
#define SHIM_RELAY_CONNECTION_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "shim/relay/buffer.h"
#include "shim/relay/connection.h"

/* One socket. */
struct end {
    uv_poll_t poll;
    int fd;                /* -1: not yet, or closed */
    int polled;            /* events */
    struct buffer waiting; /* what the socket has not taken */
    bool shut;             /* takes no more bytes: our sending side is shut down, or broken */
    bool reading;
    bool ended; /* nothing more comes from it */
};

struct connection {
    struct connection_world world;
    struct session *session;
    struct tally *tally; /* NULL: its calls are not counted */
    struct end ends[2];
    uint64_t put_out[2]; /* by the session, for each end */
    uint64_t taken[2];   /* while a session is made again: what an end has had of that */
    struct kept kept;
    uv_timer_t linger;
    uv_timer_t look; /* at a client of which nothing is read */
    bool replaying;
    bool no_memory; /* for all of that */
    bool closing;
    bool finishing; /* closes when what is queued has been written */
    int handles;    /* not yet closed */
    struct connection *prev, *next;
};

/* Frees what is not a handle. */
void connection_fini(struct connection *c);

/* Begins to count, and ends what is under way with the connection. */
void connection_count(struct connection *c);
void connection_uncount(struct connection *c);

static inline void connection_count_waiting(struct connection *c, enum session_end to)
{
    uint64_t *max = &c->world.counts->waiting_max[to], bytes = buffer_len(&c->ends[to].waiting);

    if (bytes > *max)
        *max = bytes;
}

/* Closes both sockets, and all else; closed() follows. */
void connection_close_handles(struct connection *c);

/* Of each handle; with the last one closed the connection is gone. */
void connection_handle_closed(uv_handle_t *handle);

/* The session's events. */
extern const struct session_ops connection_session_ops;

/* An event of the journal's has taken effect. */
void connection_look_at_journal(struct connection *c);

/* Gives `put` the state, if there is one: within a header block there is none. False: so it is. */
bool connection_put_state(struct connection *c, __typeof__(journal_state) *put);

/* Reads once from an end; whether there may be more. */
bool connection_read(struct connection *c, struct end *end);

/* Waits for what there is to be read, and to be written. */
void connection_look(struct connection *c);

#endif
