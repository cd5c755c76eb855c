#include "shim/relay/session.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "shim/relay/flow.h"
#include "shim/relay/frame.h"
#include "shim/relay/header_block.h"
#include "shim/relay/lane.h"
#include "shim/relay/limits.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"

#define GRPC_HEAD_BYTES 5
#define WINDOW_INITIAL 65535            /* RFC 9113 §6.9.2 */
#define HEADER_TABLE_BYTES_INITIAL 4096 /* RFC 9113 §6.5.2 */
#define SETTING_BYTES 6
/* A stream whose windows the relay does not alter needs no ledger: the two ends keep it. */
#define WINDOW_UNTRACKED (INT64_MAX / 4)

/* Instead of a status: RST_STREAM, which says that the runtime has not seen the whole request, so
 * that gRPC's clients send it again by themselves (RFC 9113 §8.7). */
#define REFUSAL_RESET (-1)

enum phase {
    PHASE_COLLECT, /* intercepted: waits for the whole message */
    PHASE_DECIDE,  /* waits for the owner */
    PHASE_OPEN,    /* passes; what is queued goes as the windows allow */
    PHASE_BARRIER, /* reset towards the runtime; waits for the ACK of our SETTINGS */
    PHASE_REFUSED, /* answered; waits for the client to end its side, or to have read that it is to
                    */
};

struct stream {
    struct session_call call; /* first: the owner's handle is the stream */
    uint32_t id;
    enum phase phase;
    bool intercepted;    /* has a ledger of its own */
    bool told;           /* the owner knows of the call */
    bool shown;          /* observed: the request has been shown, or is not readable */
    bool client_ended;   /* END_STREAM came from the client */
    bool end_sent;       /* and went to the runtime */
    bool response_begun; /* response headers went to the client */
    bool runtime_done;   /* refused: nothing more of it comes from the runtime */
    bool client_done;    /* the same, from the client */
    enum message_encoding encoding;
    struct flow flow;
    struct buffer queue;            /* DATA bytes for the runtime not sent yet */
    struct buffer request;          /* observed: copy of the request so far */
    struct buffer response;         /* copy of the answer so far */
    bool response_dropped;          /* longer than we read */
    struct message_reader inflated; /* holds call.message if it came compressed */
    size_t before_ack;              /* bytes of `queue` that a late ACK of the client's waits for */
    int refusal_code;               /* or REFUSAL_RESET */
    char *refusal;                  /* owned */
    UT_hash_handle hh;
};

/* One SETTINGS frame that waits for its ACK. */
struct settings_sent {
    uint32_t barrier; /* ours: the stream that waits for its ACK; 0: an end's own */
    bool has_table_size;
    uint32_t table_size_min; /* the smallest and the last of those it holds */
    uint32_t table_size;
    bool has_window;
    uint32_t window; /* SETTINGS_INITIAL_WINDOW_SIZE */
};

/* ACKs of the client's that wait for bytes it sent before them. */
struct late_acks {
    unsigned count;
    bool has_table_size; /* one of them lets the client's encoder change its table */
    bool has_window;
    uint32_t window; /* the last of theirs */
};

struct side {
    struct lane lane;                 /* bytes from this end */
    struct header_listener *listener; /* NULL: gave up, only for the runtime's side */
    uint32_t block_stream;            /* of the header block under way */
    bool block_ends_stream;
    size_t block_bytes; /* so far, frame heads included */
    struct buffer
        unacked;         /* of struct settings_sent: SETTINGS towards the other end, oldest first */
    size_t unacked_own;  /* those among them that this end sent */
    uint64_t remembered; /* how many have ever been in `unacked` */
    uint64_t acked;      /* how many have left it */
    uint64_t settings_frame; /* number of the one under way, counted as `remembered` */
    uint8_t setting[SETTING_BYTES];
    size_t setting_len;
    uint32_t table_size;     /* in force for this side's encoder */
    int64_t table_size_news; /* lowered, and not yet said by this side's encoder; -1: none */
};

struct session {
    const struct session_ops *ops;
    void *user;
    struct side sides[2];
    struct flow flow;         /* of the connection, client → runtime */
    uint32_t frame_bytes_max; /* the largest the runtime has ever allowed */
    int64_t initial_window;   /* the runtime's, for streams: the smallest not yet overruled */
    uint32_t acked_window;    /* the one whose ACK the runtime has */
    struct late_acks late_acks;
    size_t preface_seen;
    uint32_t stream_id_max; /* newest stream of the client */
    enum cri_method_class classes[CRI_METHODS];
    struct stream *streams;
    size_t queued;         /* open streams with a queue */
    size_t observed_bytes; /* in the copies of observed requests */
    size_t response_bytes; /* in those of answers */
    size_t inflated_room;  /* bytes that inflated messages may still take */
    size_t answer_room;    /* the same, for the one answer that is looked at */
    uint8_t goaway[4];
    size_t goaway_len;
    bool runtime_goes;    /* a GOAWAY of the runtime's has begun to pass */
    uint32_t goaway_last; /* the last stream of what the client was told, which may only fall */
    bool feeding;
    int error;
    const char *error_text;
};

static const struct lane_ops LANE_OPS;

/* ---- small helpers ---- */

static enum session_end end_of(const struct session *s, const struct lane *lane)
{
    return lane == &s->sides[SESSION_CLIENT].lane ? SESSION_CLIENT : SESSION_RUNTIME;
}

/* Frames of ours towards an end travel in the lane that comes from the other. */
static struct lane *lane_to(struct session *s, enum session_end to)
{
    return &s->sides[to == SESSION_CLIENT ? SESSION_RUNTIME : SESSION_CLIENT].lane;
}

static int fail(struct session *s, int error, const char *text)
{
    if (s->error == 0) {
        s->error = error;
        s->error_text = text;
    }
    return s->error;
}

/* Where no return value tells of it. */
static void give_up(struct session *s, int error, const char *text)
{
    if (s->error)
        return;
    fail(s, error, text);
    if (!s->feeding)
        s->ops->failed(s->user);
}

/* For frames of ours that cannot be queued: the connection is out of step then, and ends. */
static void must_queue(struct session *s, int r)
{
    if (r < 0)
        give_up(s, r, "out of memory");
}

/* The client broke the protocol: tell it so (RFC 9113 §5.4.1, §6.8). */
static int offend(struct session *s, enum frame_error code, const char *text)
{
    struct lane *lane = lane_to(s, SESSION_CLIENT);
    uint32_t last = s->stream_id_max < s->goaway_last ? s->stream_id_max : s->goaway_last;

    must_queue(s, frame_put_goaway(&lane->inject, last, code));
    lane_flush(lane);
    give_up(s, -EPROTO, text);
    return s->error;
}

static struct stream *stream_find(struct session *s, uint32_t id)
{
    struct stream *st = NULL;

    if (s->streams)
        HASH_FIND(hh, s->streams, &id, sizeof id, st);
    return st;
}

static struct stream *stream_new(struct session *s, uint32_t id, enum cri_method method)
{
    struct stream *st;

    if (HASH_COUNT(s->streams) >= RELAY_STREAMS_MAX)
        return NULL;
    st = calloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->id = id;
    st->call.method = method;
    st->intercepted = s->classes[method] == CRI_CLASS_INTERCEPTED;
    st->phase = st->intercepted ? PHASE_COLLECT : PHASE_OPEN;
    flow_init(&st->flow, st->intercepted ? s->initial_window : WINDOW_UNTRACKED);
    HASH_ADD(hh, s->streams, id, sizeof st->id, st);
    if (!st->hh.tbl) {
        free(st);
        return NULL;
    }
    return st;
}

static bool is_gated(const struct stream *st)
{
    return st->phase == PHASE_COLLECT || st->phase == PHASE_DECIDE;
}

static bool is_queued(const struct stream *st)
{
    return st->phase == PHASE_OPEN && buffer_len(&st->queue) > 0;
}

/* ---- messages ---- */

/* How many bytes of its first message, or else of the head, are still to come. */
static size_t message_to_come(const struct buffer *b)
{
    size_t len = buffer_len(b);
    size_t whole = GRPC_HEAD_BYTES;

    if (len >= GRPC_HEAD_BYTES)
        whole += frame_read_u32(buffer_data(b) + 1);
    return whole > len ? whole - len : 0;
}

enum message_state { MESSAGE_PARTIAL, MESSAGE_WHOLE, MESSAGE_TOO_LARGE };

static enum message_state message_measure(const struct buffer *b, size_t *bytes_out)
{
    const uint8_t *p = buffer_data(b);

    if (buffer_len(b) < GRPC_HEAD_BYTES)
        return MESSAGE_PARTIAL;
    *bytes_out = frame_read_u32(p + 1);
    if (*bytes_out > RELAY_MESSAGE_BYTES_MAX)
        return MESSAGE_TOO_LARGE;
    return buffer_len(b) - GRPC_HEAD_BYTES >= *bytes_out ? MESSAGE_WHOLE : MESSAGE_PARTIAL;
}

/* Points call.message at the first message in `b`, inflated if need be, within `room`, which is
 * borrowed until message_close(). 0, or the gRPC code of what is wrong with it. */
static int message_open(struct stream *st, const struct buffer *b, size_t bytes, size_t *room)
{
    const uint8_t *p = buffer_data(b);
    size_t len = GRPC_HEAD_BYTES + bytes;

    st->call.message = p + GRPC_HEAD_BYTES;
    st->call.message_bytes = bytes;
    if (p[0] == 0)
        return RPC_OK;
    if (st->encoding == MESSAGE_ENCODING_UNKNOWN)
        return RPC_UNIMPLEMENTED;
    message_reader_init(&st->inflated, room);
    st->inflated.encoding = st->encoding;
    if (message_reader_feed(&st->inflated, &p, &len) != MESSAGE_READY)
        return st->inflated.fault_code;
    st->call.message = st->inflated.body;
    st->call.message_bytes = st->inflated.body_len;
    return RPC_OK;
}

/* More has come behind a message that is held, and the queue may have moved. */
static void message_moved(struct stream *st)
{
    if (st->phase == PHASE_DECIDE && !st->inflated.budget)
        st->call.message = buffer_data(&st->queue) + GRPC_HEAD_BYTES;
}

static void message_close(struct stream *st)
{
    if (st->inflated.budget)
        message_reader_fini(&st->inflated);
    st->inflated.budget = NULL;
    st->call.message = NULL;
    st->call.message_bytes = 0;
}

/* ---- credit ---- */

static void credit_connection(struct session *s)
{
    uint32_t n = flow_owed(&s->flow);
    uint32_t lag;

    flow_credit(&s->flow, n);
    lag = flow_lag(&s->flow);
    if (lag > 0 && s->flow.client < RELAY_CREDIT_BELOW_BYTES) {
        flow_credit(&s->flow, lag);
        n += lag;
    }
    assert(flow_check(&s->flow));
    if (n > 0)
        must_queue(s, frame_put_window_update(&lane_to(s, SESSION_CLIENT)->inject, 0, n));
}

/* A withheld message that outgrows its stream's window would never become whole. */
static uint32_t missing_window(const struct stream *st)
{
    int64_t missing = (int64_t)message_to_come(&st->queue) - st->flow.client;

    if (st->phase != PHASE_COLLECT || buffer_len(&st->queue) == 0 ||
        missing + FRAME_PADDING_BYTES_MAX <= 0)
        return 0;
    /* A client may pad every frame, or wait until a whole one has room. */
    missing += RELAY_FRAME_BYTES_MAX;
    return missing < INT32_MAX ? (uint32_t)missing : INT32_MAX;
}

static void credit_stream(struct session *s, struct stream *st)
{
    uint32_t n = flow_owed(&st->flow);
    uint32_t missing;

    if (st->client_ended)
        return;
    flow_credit(&st->flow, n);
    missing = missing_window(st);
    flow_credit(&st->flow, missing);
    assert(flow_check(&st->flow));
    n += missing;
    if (n > 0)
        must_queue(s, frame_put_window_update(&lane_to(s, SESSION_CLIENT)->inject, st->id, n));
}

static void drop_queue(struct session *s, struct stream *st)
{
    size_t bytes = buffer_len(&st->queue);

    if (is_queued(st))
        s->queued--;
    flow_dropped(&s->flow, bytes);
    flow_dropped(&st->flow, bytes);
    buffer_fini(&st->queue);
    st->before_ack = 0;
    credit_connection(s);
}

static void drop_request_copy(struct session *s, struct stream *st)
{
    s->observed_bytes -= buffer_len(&st->request);
    buffer_fini(&st->request);
}

static void drop_response_copy(struct session *s, struct stream *st)
{
    s->response_bytes -= buffer_len(&st->response);
    buffer_fini(&st->response);
}

static void stream_free(struct session *s, struct stream *st)
{
    drop_queue(s, st);
    drop_request_copy(s, st);
    drop_response_copy(s, st);
    HASH_DEL(s->streams, st);
    message_close(st);
    free(st->refusal);
    if (st->told)
        s->ops->ended(s->user, &st->call);
    free(st);
}

/* ---- sending what was withheld ---- */

/* Whether the client is within a frame whose bytes go to the stream's queue. */
static bool keeps_frame_of(const struct session *s, const struct stream *st)
{
    const struct lane *lane = &s->sides[SESSION_CLIENT].lane;

    return lane->within && lane->how == LANE_KEEP && lane->head.stream_id == st->id;
}

static void stream_pump(struct session *s, struct stream *st)
{
    struct lane *lane = lane_to(s, SESSION_RUNTIME);
    bool was_queued = is_queued(st);

    if (st->phase != PHASE_OPEN)
        return;
    while (buffer_len(&st->queue) > 0 && !s->error) {
        int64_t n = (int64_t)buffer_len(&st->queue);
        bool last;

        n = n < RELAY_FRAME_BYTES_MAX ? n : RELAY_FRAME_BYTES_MAX;
        n = n < s->flow.send ? n : s->flow.send;
        n = n < st->flow.send ? n : st->flow.send;
        if (n <= 0)
            break;
        last = st->client_ended && (size_t)n == buffer_len(&st->queue);
        must_queue(s,
                   frame_put_data(&lane->inject, st->id, buffer_data(&st->queue), (size_t)n, last));
        buffer_consume(&st->queue, (size_t)n);
        st->before_ack -= st->before_ack < (size_t)n ? st->before_ack : (size_t)n;
        flow_sent(&s->flow, (uint64_t)n);
        flow_sent(&st->flow, (uint64_t)n);
        st->end_sent = st->end_sent || last;
    }
    if (was_queued && buffer_len(&st->queue) == 0)
        s->queued--;
    if (buffer_len(&st->queue) > 0)
        return;
    buffer_fini(&st->queue);
    if (st->client_ended && !st->end_sent) {
        must_queue(s, frame_put_data(&lane->inject, st->id, NULL, 0, 1));
        st->end_sent = true;
    }
    if (st->call.method == CRI_OTHER && !keeps_frame_of(s, st))
        stream_free(s, st); /* was only parked */
}

static void pump_all(struct session *s)
{
    struct stream *st, *next;

    if (s->queued == 0)
        return;
    HASH_ITER(hh, s->streams, st, next)
    {
        if (is_queued(st))
            stream_pump(s, st);
    }
}

/* Opens the gate: what is queued may go. */
static void stream_open(struct session *s, struct stream *st)
{
    assert(is_gated(st));
    st->phase = PHASE_OPEN;
    if (is_queued(st))
        s->queued++;
    stream_pump(s, st);
}

static void flush_both(struct session *s)
{
    if (s->error)
        return; /* what must not be missing may be */
    lane_flush(&s->sides[SESSION_CLIENT].lane);
    lane_flush(&s->sides[SESSION_RUNTIME].lane);
}

/* ---- refusing ---- */

/* 0, -ENOMEM, or -EPROTO when too many wait for their ACK. */
static int remember_settings(struct side *side, const struct settings_sent *sent)
{
    size_t barriers = (size_t)(side->remembered - side->acked) - side->unacked_own;

    if (sent->barrier ? barriers == RELAY_STREAMS_MAX
                      : side->unacked_own == RELAY_SETTINGS_PENDING_MAX)
        return -EPROTO;
    if (buffer_put(&side->unacked, sent, sizeof *sent) < 0)
        return -ENOMEM;
    side->unacked_own += !sent->barrier;
    side->remembered++;
    return 0;
}

static bool settings_acked(struct side *side, struct settings_sent *out)
{
    if (buffer_len(&side->unacked) == 0)
        return false;
    memcpy(out, buffer_data(&side->unacked), sizeof *out);
    buffer_consume(&side->unacked, sizeof *out);
    side->unacked_own -= !out->barrier;
    side->acked++;
    return true;
}

/* The runtime is told to stop. With the ACK of the SETTINGS it has said its last on the stream. */
static void stop_runtime(struct session *s, const struct stream *st)
{
    struct lane *lane = lane_to(s, SESSION_RUNTIME);
    struct settings_sent barrier = {.barrier = st->id};
    int r = remember_settings(&s->sides[SESSION_CLIENT], &barrier);

    if (r == 0)
        r = frame_put_rst_stream(&lane->inject, st->id, FRAME_CANCEL);
    if (r == 0)
        r = frame_put_settings_empty(&lane->inject);
    if (r == -EPROTO)
        give_up(s, r, "the runtime does not acknowledge SETTINGS");
    else
        must_queue(s, r);
}

/* The client will have its answer from us. */
static void cut_short(struct session *s, struct stream *st, int code, const char *message)
{
    st->told = false;
    st->refusal_code = code;
    st->refusal = message ? strdup(message) : NULL;
    message_close(st);
    drop_queue(s, st);
    st->phase = PHASE_BARRIER;
    stop_runtime(s, st);
}

static void refuse(struct session *s, struct stream *st, int code, const char *message)
{
    assert(is_gated(st));
    cut_short(s, st, code, message);
}

/* Nothing more of the client's is wanted on this stream: it is asked to stop (RFC 9113 §8.1). What
 * it still sends is thrown away until it has read that, which its ACK of an empty SETTINGS behind
 * it tells. */
static void stop_client(struct session *s, struct stream *st, enum frame_error code)
{
    struct lane *lane = lane_to(s, SESSION_CLIENT);
    struct settings_sent barrier = {.barrier = st->id};
    int r = remember_settings(&s->sides[SESSION_RUNTIME], &barrier);

    drop_queue(s, st);
    drop_response_copy(s, st);
    st->phase = PHASE_REFUSED;
    if (r == -EPROTO) {
        offend(s, FRAME_ENHANCE_YOUR_CALM, "too many SETTINGS without an ACK");
        return;
    }
    if (r == 0)
        r = frame_put_rst_stream(&lane->inject, st->id, code);
    if (r == 0)
        r = frame_put_settings_empty(&lane->inject);
    must_queue(s, r);
}

/* The stream is kept while anything may come that is for nobody. */
static void stream_done(struct session *s, struct stream *st)
{
    if (st->client_done && st->runtime_done)
        stream_free(s, st);
}

/* The client has read that it is to stop. */
static void client_stopped(struct session *s, uint32_t stream_id)
{
    struct stream *st = stream_find(s, stream_id);

    if (!st || st->phase != PHASE_REFUSED)
        return;
    st->client_done = true;
    stream_done(s, st);
}

/* The runtime has said its last on this stream. */
static void barrier_reached(struct session *s, uint32_t stream_id)
{
    struct stream *st = stream_find(s, stream_id);
    struct lane *lane = lane_to(s, SESSION_CLIENT);
    struct side *runtime = &s->sides[SESSION_RUNTIME];

    if (!st)
        return; /* the client reset it */
    st->runtime_done = true;
    if (st->phase != PHASE_BARRIER) { /* the runtime's own answer was whole */
        stream_done(s, st);
        return;
    }
    if (st->refusal_code == REFUSAL_RESET) {
        stop_client(s, st, FRAME_REFUSED_STREAM);
        return;
    }
    must_queue(s, frame_put_status(&lane->inject, st->id, st->refusal_code,
                                   st->refusal ? st->refusal : "out of memory", !st->response_begun,
                                   runtime->table_size_news));
    runtime->table_size_news = -1;
    if (st->client_ended)
        stream_free(s, st);
    else
        stop_client(s, st, FRAME_NO_ERROR);
}

/* ---- requests ---- */

static void tell_request(struct session *s, struct stream *st)
{
    st->told = true;
    s->ops->request(s->user, &st->call);
}

/* The relay itself refuses; says which method. */
__attribute__((format(printf, 4, 5))) static void
refuse_method(struct session *s, struct stream *st, int code, const char *format, ...)
{
    char text[192];
    va_list args;
    int n = snprintf(text, sizeof text, "%s: ", cri_method_name(st->call.method));

    va_start(args, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    refuse(s, st, code, text);
}

static void refuse_too_many_bytes(struct session *s, struct stream *st)
{
    if (st->told) {
        st->told = false;
        s->ops->ended(s->user, &st->call);
    }
    refuse_method(s, st, RPC_RESOURCE_EXHAUSTED, "too many bytes are held on this connection");
}

static void decide(struct session *s, struct stream *st, size_t bytes)
{
    st->phase = PHASE_DECIDE;
    switch (message_open(st, &st->queue, bytes, &s->inflated_room)) {
    case RPC_OK:
        tell_request(s, st);
        return;
    case RPC_RESOURCE_EXHAUSTED:
        refuse_method(s, st, RPC_RESOURCE_EXHAUSTED, "%s", st->inflated.fault_text);
        return;
    case RPC_UNIMPLEMENTED:
        refuse_method(s, st, RPC_UNIMPLEMENTED,
                      "of the compressions in grpc-encoding the shim reads only gzip");
        return;
    default: /* not readable: the runtime says so */
        message_close(st);
        stream_open(s, st);
        return;
    }
}

/* More of an intercepted request has come. */
static void collect(struct session *s, struct stream *st)
{
    size_t bytes = 0;

    if (is_gated(st) && s->flow.pending > (int64_t)RELAY_HELD_BYTES_MAX) {
        refuse_too_many_bytes(s, st);
        return;
    }
    if (st->phase != PHASE_COLLECT)
        return;
    switch (message_measure(&st->queue, &bytes)) {
    case MESSAGE_WHOLE:
        decide(s, st, bytes);
        return;
    case MESSAGE_TOO_LARGE:
        refuse_method(s, st, RPC_RESOURCE_EXHAUSTED,
                      "message of %zu bytes is larger than the limit of %u", bytes,
                      RELAY_MESSAGE_BYTES_MAX);
        return;
    case MESSAGE_PARTIAL:
        break;
    }
    if (st->client_ended)
        stream_open(s, st);
}

/* 0, or -ENOMEM also when the connection's share is used up: then the request is not read. */
static int copy_request(struct session *s, struct stream *st, const uint8_t *body, size_t len)
{
    if (len > RELAY_OBSERVED_BYTES_MAX - s->observed_bytes ||
        buffer_put(&st->request, body, len) < 0)
        return -ENOMEM;
    s->observed_bytes += len;
    return 0;
}

/* More of an observed request has passed. */
static void observe(struct session *s, struct stream *st, const uint8_t *body, size_t len)
{
    size_t bytes = 0;
    enum message_state state;

    if (st->shown || st->intercepted || st->call.method == CRI_OTHER)
        return;
    state = copy_request(s, st, body, len) < 0 ? MESSAGE_TOO_LARGE
                                               : message_measure(&st->request, &bytes);
    if (state == MESSAGE_PARTIAL)
        return;
    st->shown = true;
    if (state == MESSAGE_WHOLE &&
        message_open(st, &st->request, bytes, &s->inflated_room) == RPC_OK)
        tell_request(s, st);
    drop_request_copy(s, st);
    message_close(st);
}

/* ---- the client's lane ---- */

/* Whether the client was promised more than the runtime would take now. */
static bool outgrows(const struct flow *f, uint32_t frame_bytes)
{
    return f->surplus > 0 && f->send < (int64_t)frame_bytes;
}

static int client_data_head(struct session *s, const struct frame_head *h, enum lane_how *how)
{
    struct stream *st = stream_find(s, h->stream_id);
    bool no_window = outgrows(&s->flow, h->length) || (st && outgrows(&st->flow, h->length));

    /* On a stream that never began DATA must not make it known: its HEADERS may still come. */
    if (!st && no_window && h->stream_id <= s->stream_id_max) {
        st = stream_new(s, h->stream_id, CRI_OTHER);
        if (!st)
            return offend(s, FRAME_ENHANCE_YOUR_CALM,
                          "too many streams wait for the runtime's window");
    }
    if (!st) {
        *how = LANE_PASS;
        flow_passed(&s->flow, h->length);
        return 0;
    }
    if (st->phase == PHASE_OPEN && buffer_len(&st->queue) == 0 && !no_window) {
        *how = LANE_TAP;
        flow_passed(&s->flow, h->length);
        flow_passed(&st->flow, h->length);
        return 0;
    }
    /* What passes the runtime judges; what we keep must have a bound (RFC 9113 §6.9.1). */
    if (h->length > s->frame_bytes_max)
        return offend(s, FRAME_SIZE_ERROR, "a frame larger than the runtime allows");
    if ((int64_t)h->length > s->flow.client)
        return offend(s, FRAME_FLOW_CONTROL_ERROR, "more DATA than the connection's window");
    *how = LANE_KEEP;
    return 0;
}

static int client_data_piece(struct session *s, const struct frame_head *h, enum lane_how how,
                             const uint8_t *body, size_t body_bytes, size_t wire_bytes)
{
    struct stream *st = stream_find(s, h->stream_id);
    bool keeps = st && (is_gated(st) || st->phase == PHASE_OPEN);

    if (how == LANE_TAP) {
        if (st)
            observe(s, st, body, body_bytes);
        return 0;
    }
    if (keeps) {
        bool was_queued = is_queued(st);

        if (buffer_put(&st->queue, body, body_bytes) < 0)
            return fail(s, -ENOMEM, "out of memory");
        message_moved(st);
        if (!was_queued && is_queued(st))
            s->queued++;
        flow_withheld(&st->flow, (uint32_t)wire_bytes, (uint32_t)body_bytes);
        if (st->phase == PHASE_OPEN)
            observe(s, st, body, body_bytes);
    }
    flow_withheld(&s->flow, (uint32_t)wire_bytes, keeps ? (uint32_t)body_bytes : 0);
    return 0;
}

/* A frame for the stream's queue, or for nobody any more, is whole. */
static void client_data_kept(struct session *s, struct stream *st)
{
    if (st->phase == PHASE_OPEN) {
        credit_stream(s, st);
        stream_pump(s, st);
        return;
    }
    collect(s, st);
    if (is_gated(st))
        credit_stream(s, st);
}

static void client_data_end(struct session *s, const struct frame_head *h, enum lane_how how)
{
    struct stream *st = stream_find(s, h->stream_id);
    bool ends = h->flags & FRAME_FLAG_END_STREAM;

    if (st && ends) {
        st->client_ended = true;
        if (how == LANE_TAP)
            st->end_sent = true;
    }
    if (how == LANE_KEEP) {
        if (st && st->phase == PHASE_REFUSED && ends)
            client_stopped(s, st->id);
        else if (st)
            client_data_kept(s, st);
        credit_connection(s);
    }
}

static int client_headers_head(struct session *s, const struct frame_head *h)
{
    struct stream *st = stream_find(s, h->stream_id);

    if (h->stream_id > s->stream_id_max)
        s->stream_id_max = h->stream_id;
    /* Trailers must not overtake their data, nor wait, for every later block needs their HPACK
     * state. No gRPC client sends any; such a call goes on without its message and the runtime
     * refuses it. */
    if (st && st->told && st->phase == PHASE_DECIDE) {
        st->told = false;
        s->ops->ended(s->user, &st->call);
    }
    if (st && (is_gated(st) || is_queued(st))) {
        drop_queue(s, st);
        st->phase = PHASE_OPEN;
    }
    return 0;
}

/* A header block of the client's is complete. */
static int client_block_end(struct session *s, uint32_t stream_id, bool ends_stream)
{
    const struct header_fields *f = header_listener_fields(s->sides[SESSION_CLIENT].listener);
    struct stream *st = stream_find(s, stream_id);

    if (st) {
        if (ends_stream) {
            st->client_ended = st->end_sent = true;
            if (st->phase == PHASE_REFUSED)
                client_stopped(s, st->id);
            else if (st->call.method == CRI_OTHER && st->phase == PHASE_OPEN)
                stream_free(s, st);
        }
        return 0;
    }
    if (s->classes[f->method] == CRI_CLASS_RELAYED || ends_stream)
        return 0;
    st = stream_new(s, stream_id, f->method);
    if (!st)
        return offend(s, FRAME_ENHANCE_YOUR_CALM, "too many calls on one connection");
    st->encoding = f->encoding;
    st->call.timeout_ms = f->timeout_ms;
    return 0;
}

/* Whether the client's RST_STREAM passes. */
static void client_reset(struct session *s, const struct frame_head *h, enum lane_how *how)
{
    struct stream *st = stream_find(s, h->stream_id);

    if (!st)
        return;
    if (st->phase == PHASE_BARRIER || st->phase == PHASE_REFUSED)
        *how = LANE_KEEP; /* the runtime's side is reset already */
    stream_free(s, st);
}

/* ---- the runtime's lane ---- */

static void tell_answer(struct session *s, struct stream *st, int status)
{
    size_t bytes = 0;
    bool whole;

    message_close(st);
    whole = !st->response_dropped && message_measure(&st->response, &bytes) == MESSAGE_WHOLE &&
            message_open(st, &st->response, bytes, &s->answer_room) == RPC_OK;
    if (status < 0) /* none was seen: a message means success for a unary call */
        status = whole ? RPC_OK : RPC_UNKNOWN;
    s->ops->answered(s->user, &st->call, status, whole ? st->call.message : NULL,
                     whole ? st->call.message_bytes : 0);
    message_close(st);
}

/* Whether the rest of a request cannot simply pass: part of it is withheld, or the client was
 * credited for it. */
static bool is_altered(const struct session *s, const struct stream *st)
{
    return is_gated(st) || buffer_len(&st->queue) > 0 || keeps_frame_of(s, st) ||
           st->flow.surplus > 0;
}

/* The runtime has answered in full, perhaps before the request was through. */
static void response_end(struct session *s, struct stream *st, int status)
{
    const struct frame_head *under_way = &s->sides[SESSION_CLIENT].lane.head;
    bool client_ended =
        st->client_ended || (keeps_frame_of(s, st) && under_way->flags & FRAME_FLAG_END_STREAM);
    bool rest = st->phase == PHASE_BARRIER || (!st->end_sent && is_altered(s, st));

    if (st->phase == PHASE_REFUSED)
        return; /* a second answer: the client's end is still to come */
    if (st->told)
        tell_answer(s, st, status);
    /* It must not wait for the rest (RFC 9113 §8.1), which is for nobody now. */
    if (client_ended && !st->end_sent && st->phase != PHASE_BARRIER)
        must_queue(
            s, frame_put_rst_stream(&lane_to(s, SESSION_RUNTIME)->inject, st->id, FRAME_CANCEL));
    if (client_ended || !rest) {
        stream_free(s, st);
        return;
    }
    if (st->phase != PHASE_BARRIER)
        stop_runtime(s, st);
    stop_client(s, st, FRAME_NO_ERROR);
    if (st->told)
        s->ops->ended(s->user, &st->call);
    st->told = false;
    message_close(st);
}

static void runtime_data_piece(struct session *s, const struct frame_head *h, const uint8_t *body,
                               size_t bytes)
{
    struct stream *st = stream_find(s, h->stream_id);

    if (!st || !st->told || st->response_dropped)
        return;
    if (buffer_len(&st->response) + bytes > RELAY_RESPONSE_BYTES_MAX ||
        s->response_bytes + bytes > RELAY_RESPONSES_BYTES_MAX ||
        buffer_put(&st->response, body, bytes) < 0) {
        st->response_dropped = true;
        drop_response_copy(s, st);
        return;
    }
    s->response_bytes += bytes;
}

static void runtime_block_end(struct session *s, uint32_t stream_id, bool ends_stream)
{
    struct side *side = &s->sides[SESSION_RUNTIME];
    struct stream *st = stream_find(s, stream_id);

    if (!st)
        return;
    if (!st->response_begun && !is_gated(st) && side->listener)
        st->encoding = header_listener_fields(side->listener)->encoding; /* the request is read */
    st->response_begun = true;
    if (ends_stream)
        response_end(s, st,
                     side->listener ? header_listener_fields(side->listener)->grpc_status : -1);
}

static void runtime_reset(struct session *s, const struct frame_head *h, enum lane_how *how)
{
    struct stream *st = stream_find(s, h->stream_id);

    if (!st)
        return;
    if (st->phase == PHASE_BARRIER || st->phase == PHASE_REFUSED)
        *how = LANE_KEEP; /* the answer is ours now */
    else
        stream_free(s, st);
}

static void runtime_window_update(struct session *s, const struct frame_head *h,
                                  const uint8_t *whole)
{
    struct lane *lane = &s->sides[SESSION_RUNTIME].lane;
    struct stream *st = h->stream_id ? stream_find(s, h->stream_id) : NULL;
    struct flow *flow = h->stream_id == 0 ? &s->flow : st && st->intercepted ? &st->flow : NULL;
    uint32_t increment = frame_read_u32(whole + FRAME_HEAD_BYTES) & 0x7fffffff;
    uint32_t told = flow ? flow_update(flow, increment) : increment;

    if (told == increment)
        lane_pass_gathered(lane, whole);
    else if (told > 0)
        must_queue(s, frame_put_window_update(&lane->inject, h->stream_id, told));
    if (h->stream_id == 0) {
        pump_all(s);
        credit_connection(s); /* what was swallowed for held bytes others may need now */
    } else if (st) {
        stream_pump(s, st);
    }
}

/* Streams above the last one that the runtime will look at are over (RFC 9113 §6.8). */
static void runtime_goaway(struct session *s)
{
    uint32_t last = frame_read_u32(s->goaway) & 0x7fffffff;
    struct stream *st, *next;

    if (last < s->goaway_last)
        s->goaway_last = last;
    HASH_ITER(hh, s->streams, st, next)
    {
        if (st->id > last)
            stream_free(s, st);
    }
}

/* ---- SETTINGS ---- */

/* The entry of the SETTINGS frame under way; NULL: it was acknowledged before it was whole. */
static struct settings_sent *settings_under_way(struct side *side)
{
    if (side->settings_frame < side->acked)
        return NULL;
    return (struct settings_sent *)(side->unacked.bytes + side->unacked.start) +
           (side->settings_frame - side->acked);
}

static void take_table_size(struct side *side, uint32_t bytes)
{
    struct settings_sent *sent = settings_under_way(side);

    if (!sent)
        return;
    if (!sent->has_table_size || bytes < sent->table_size_min)
        sent->table_size_min = bytes;
    sent->has_table_size = true;
    sent->table_size = bytes;
}

static void set_initial_window(struct session *s, uint32_t value)
{
    int64_t delta = (int64_t)value - s->initial_window;
    struct stream *st, *next;

    s->initial_window = value;
    HASH_ITER(hh, s->streams, st, next)
    {
        if (st->intercepted)
            flow_shift(&st->flow, delta);
    }
}

/* The client has acknowledged an initial window: what we send may use it from here on, unless a
 * smaller one has been announced since. Before the ACK the runtime may hold a larger one against us
 * (RFC 9113 §6.5.3). */
static void use_window(struct session *s, uint32_t value)
{
    const struct buffer *later = &s->sides[SESSION_RUNTIME].unacked;

    s->acked_window = value;
    for (size_t at = 0; at < buffer_len(later); at += sizeof(struct settings_sent)) {
        struct settings_sent sent;

        memcpy(&sent, buffer_data(later) + at, sizeof sent);
        if (sent.has_window && sent.window < value)
            value = sent.window;
    }
    set_initial_window(s, value);
    pump_all(s);
}

static void setting_take(struct session *s, enum session_end from, const uint8_t *entry)
{
    struct settings_sent *sent;
    unsigned id = (unsigned)entry[0] << 8 | entry[1];
    uint32_t value = frame_read_u32(entry + 2);

    if (id == FRAME_SETTING_HEADER_TABLE_SIZE)
        take_table_size(&s->sides[from], value);
    if (from == SESSION_RUNTIME && id == FRAME_SETTING_MAX_FRAME_SIZE && value > s->frame_bytes_max)
        s->frame_bytes_max = value;
    if (from != SESSION_RUNTIME || id != FRAME_SETTING_INITIAL_WINDOW_SIZE || value > INT32_MAX)
        return;
    sent = settings_under_way(&s->sides[SESSION_RUNTIME]);
    if (sent) {
        sent->has_window = true;
        sent->window = value;
    }
    if (!sent || value < s->initial_window)
        set_initial_window(s, value);
}

static void settings_piece(struct session *s, enum session_end from, const uint8_t *body,
                           size_t len)
{
    struct side *side = &s->sides[from];

    while (len > 0) {
        size_t n = SETTING_BYTES - side->setting_len;

        n = n < len ? n : len;
        memcpy(side->setting + side->setting_len, body, n);
        side->setting_len += n;
        body += n;
        len -= n;
        if (side->setting_len == SETTING_BYTES) {
            setting_take(s, from, side->setting);
            side->setting_len = 0;
        }
    }
}

/* Remembered at its head, since a barrier that is queued from now on goes out behind it. */
static int settings_head(struct session *s, enum session_end from)
{
    struct side *side = &s->sides[from];
    int r = remember_settings(side, &(struct settings_sent){0});

    if (r == -EPROTO && from == SESSION_CLIENT)
        return offend(s, FRAME_ENHANCE_YOUR_CALM, "too many SETTINGS without an ACK");
    if (r < 0)
        return fail(s, r, "SETTINGS cannot be kept");
    side->settings_frame = side->remembered - 1;
    side->setting_len = 0;
    return 0;
}

/* The windows of streams may have grown, or shrunk below what a message needs. */
static void settings_end(struct session *s, enum session_end from)
{
    struct stream *st, *next;

    if (from != SESSION_RUNTIME)
        return;
    pump_all(s);
    HASH_ITER(hh, s->streams, st, next)
    {
        if (st->phase == PHASE_COLLECT)
            credit_stream(s, st);
    }
}

/* ---- ACKs that come late ----
 *
 * What the client has sent under a window and we have parked may be too much for the runtime behind
 * the ACK of a lower one (RFC 9113 §6.5.3, §6.9.2). A stream with a ledger sends no more than its
 * new window. For one without the ACK itself waits, with all that follow it, until what was parked
 * before it has been sent. */

/* Notes what is parked now; whether there is anything. */
static bool mark_parked(struct session *s)
{
    bool any = false;

    for (struct stream *st = s->streams; st; st = st->hh.next) {
        if (st->intercepted || !is_queued(st))
            continue;
        st->before_ack = buffer_len(&st->queue);
        any = true;
    }
    return any;
}

/* Whether the client's ACK of `sent` must wait. Until it goes each frame is looked at. */
static bool ack_waits(struct session *s, const struct settings_sent *sent)
{
    struct late_acks *late = &s->late_acks;
    bool lowers = sent->has_window && sent->window < s->acked_window;

    if (!(lowers && mark_parked(s)) && late->count == 0)
        return false;
    lane_to(s, SESSION_RUNTIME)->stepwise = true;
    late->count++;
    late->has_table_size = late->has_table_size || sent->has_table_size;
    if (sent->has_window) {
        late->has_window = true;
        late->window = sent->window;
    }
    return true;
}

static void send_late_acks(struct session *s)
{
    struct late_acks late = s->late_acks;

    s->late_acks = (struct late_acks){0};
    lane_to(s, SESSION_RUNTIME)->stepwise = false;
    for (; late.count > 0; late.count--)
        must_queue(s, frame_put_settings_ack(&lane_to(s, SESSION_RUNTIME)->inject));
    if (late.has_window)
        use_window(s, late.window);
}

/* Sends them if what they wait for is gone. */
static void look_at_late_acks(struct session *s)
{
    if (s->late_acks.count == 0)
        return;
    for (const struct stream *st = s->streams; st; st = st->hh.next) {
        if (st->before_ack > 0)
            return;
    }
    send_late_acks(s);
}

/* A header block that may need a late ACK before it, for the runtime's decoder, does not wait: what
 * is parked is given back to the client. */
static void hurry_late_acks(struct session *s)
{
    struct stream *st, *next;

    if (!s->late_acks.has_table_size)
        return;
    HASH_ITER(hh, s->streams, st, next)
    {
        if (st->before_ack == 0)
            continue;
        if (st->told)
            s->ops->ended(s->user, &st->call);
        cut_short(s, st, REFUSAL_RESET, NULL);
    }
    send_late_acks(s);
    lane_flush(lane_to(s, SESSION_RUNTIME));
}

/* An ACK from `from`: its encoder obeys the other end's SETTINGS from here on. */
static int settings_ack(struct session *s, enum session_end from, enum lane_how *how)
{
    struct side *side = &s->sides[from];
    struct side *other = &s->sides[from == SESSION_CLIENT ? SESSION_RUNTIME : SESSION_CLIENT];
    struct settings_sent sent;

    if (!settings_acked(other, &sent))
        return 0; /* nobody asked: the receiver will say so */
    if (sent.barrier) {
        *how = LANE_KEEP;
        if (from == SESSION_CLIENT)
            client_stopped(s, sent.barrier);
        else
            barrier_reached(s, sent.barrier);
        return 0;
    }
    if (from == SESSION_CLIENT && ack_waits(s, &sent))
        *how = LANE_KEEP;
    else if (sent.has_window)
        use_window(s, sent.window);
    if (!sent.has_table_size)
        return 0;
    /* Of several changes the smallest must be said (RFC 7541 §4.2). */
    if (sent.table_size_min < side->table_size &&
        (side->table_size_news < 0 || sent.table_size_min < side->table_size_news))
        side->table_size_news = sent.table_size_min;
    side->table_size = sent.table_size;
    if (side->listener && (header_listener_table_size(side->listener, sent.table_size_min) < 0 ||
                           header_listener_table_size(side->listener, sent.table_size) < 0))
        return fail(s, -ENOMEM, "out of memory");
    return 0;
}

/* ---- header blocks ---- */

static int block_piece(struct session *s, enum session_end from, const uint8_t *body, size_t len)
{
    struct side *side = &s->sides[from];

    if (!side->listener || header_listener_feed(side->listener, body, len, 0) == 0)
        return 0;
    if (from == SESSION_CLIENT)
        return offend(s, FRAME_COMPRESSION_ERROR, "a header block that is not HPACK");
    /* The client may be able to read what our library cannot; only the status of answers is lost to
     * us. */
    header_listener_free(side->listener);
    side->listener = NULL;
    return 0;
}

/* Its fields are. */
static int block_known(struct session *s, enum session_end from)
{
    struct side *side = &s->sides[from];

    side->table_size_news = -1;
    if (from == SESSION_CLIENT)
        return client_block_end(s, side->block_stream, side->block_ends_stream);
    runtime_block_end(s, side->block_stream, side->block_ends_stream);
    return 0;
}

static int block_end(struct session *s, enum session_end from)
{
    struct side *side = &s->sides[from];

    side->lane.in_block = false;
    if (side->listener && header_listener_feed(side->listener, (const uint8_t *)"", 0, 1) < 0) {
        if (from == SESSION_CLIENT)
            return offend(s, FRAME_COMPRESSION_ERROR, "a header block that ends too early");
        header_listener_free(side->listener);
        side->listener = NULL;
    }
    return block_known(s, from);
}

static int block_head(struct session *s, enum session_end from, const struct frame_head *h)
{
    struct side *side = &s->sides[from];

    if (from == SESSION_CLIENT && h->type == FRAME_HEADERS)
        hurry_late_acks(s);
    side->lane.in_block = true;
    if (h->type != FRAME_CONTINUATION)
        side->block_bytes = 0;
    side->block_bytes += FRAME_HEAD_BYTES + h->length;
    if (side->block_bytes > RELAY_HEADER_BLOCK_BYTES_MAX)
        return from == SESSION_CLIENT
                   ? offend(s, FRAME_ENHANCE_YOUR_CALM, "a header block without end")
                   : fail(s, -EPROTO, "a header block of the runtime's without end");
    if (h->type == FRAME_CONTINUATION)
        return 0;
    side->block_stream = h->stream_id;
    side->block_ends_stream = h->flags & FRAME_FLAG_END_STREAM;
    return from == SESSION_CLIENT ? client_headers_head(s, h) : 0;
}

/* ---- frames ---- */

static bool breaks_block(const struct side *side, const struct frame_head *h)
{
    if (side->lane.in_block)
        return h->type != FRAME_CONTINUATION || h->stream_id != side->block_stream;
    return h->type == FRAME_CONTINUATION;
}

static int client_head(struct session *s, const struct frame_head *h, enum lane_how *how)
{
    switch (h->type) {
    case FRAME_DATA:
        return client_data_head(s, h, how);
    case FRAME_RST_STREAM:
        client_reset(s, h, how);
        return 0;
    case FRAME_PUSH_PROMISE:
        return offend(s, FRAME_PROTOCOL_ERROR, "a client must not push");
    default:
        return 0;
    }
}

static int runtime_head(struct session *s, const struct frame_head *h, enum lane_how *how)
{
    switch (h->type) {
    case FRAME_DATA:
        if (stream_find(s, h->stream_id))
            *how = LANE_TAP;
        return 0;
    case FRAME_RST_STREAM:
        runtime_reset(s, h, how);
        return 0;
    case FRAME_WINDOW_UPDATE:
        *how = h->length == 4 ? LANE_GATHER : LANE_PASS;
        return 0;
    case FRAME_GOAWAY:
        s->goaway_len = 0;
        s->runtime_goes = true;
        *how = LANE_TAP;
        return 0;
    case FRAME_PUSH_PROMISE: /* no gRPC client allows it; its block would leave our listener behind
                              */
        return fail(s, -EPROTO, "the runtime pushes");
    default:
        return 0;
    }
}

static int frame_begins(struct session *s, struct lane *lane, const struct frame_head *h,
                        enum lane_how *how)
{
    enum session_end from = end_of(s, lane);

    if (breaks_block(&s->sides[from], h)) {
        if (from == SESSION_CLIENT)
            return offend(s, FRAME_PROTOCOL_ERROR, "a frame inside a header block");
        return fail(s, -EPROTO, "a frame inside a header block");
    }
    if (from == SESSION_CLIENT && h->stream_id == 0 &&
        (h->type == FRAME_DATA || h->type == FRAME_HEADERS))
        return offend(s, FRAME_PROTOCOL_ERROR, "DATA or HEADERS without a stream");
    switch (h->type) {
    case FRAME_HEADERS:
    case FRAME_CONTINUATION:
        *how = LANE_TAP;
        return block_head(s, from, h);
    case FRAME_SETTINGS:
        if (h->flags & FRAME_FLAG_ACK)
            return settings_ack(s, from, how);
        *how = LANE_TAP;
        return settings_head(s, from);
    default:
        return from == SESSION_CLIENT ? client_head(s, h, how) : runtime_head(s, h, how);
    }
}

static int on_head(void *user, struct lane *lane, const struct frame_head *h, enum lane_how *how)
{
    struct session *s = user;
    int r = frame_begins(s, lane, h, how);

    if (s->late_acks.count > 0 && h->type == FRAME_RST_STREAM && *how == LANE_PASS)
        *how = LANE_TAP; /* its end may be what they wait for */
    return s->error ? s->error : r;
}

static void goaway_piece(struct session *s, const uint8_t *body, size_t len)
{
    size_t n = sizeof s->goaway - s->goaway_len;

    n = n < len ? n : len;
    memcpy(s->goaway + s->goaway_len, body, n);
    s->goaway_len += n;
}

static int on_piece(void *user, struct lane *lane, const uint8_t *body, size_t body_bytes,
                    size_t wire_bytes)
{
    struct session *s = user;
    enum session_end from = end_of(s, lane);

    switch (lane->head.type) {
    case FRAME_DATA:
        if (from == SESSION_CLIENT)
            return client_data_piece(s, &lane->head, lane->how, body, body_bytes, wire_bytes);
        runtime_data_piece(s, &lane->head, body, body_bytes);
        return 0;
    case FRAME_HEADERS:
    case FRAME_CONTINUATION:
        return block_piece(s, from, body, body_bytes);
    case FRAME_SETTINGS:
        if (lane->how == LANE_TAP)
            settings_piece(s, from, body, body_bytes);
        return 0;
    case FRAME_GOAWAY:
        if (from == SESSION_RUNTIME)
            goaway_piece(s, body, body_bytes);
        return 0;
    default:
        return 0;
    }
}

static int runtime_end(struct session *s, const struct frame_head *h, const uint8_t *whole)
{
    struct stream *st;

    switch (h->type) {
    case FRAME_DATA:
        st = h->flags & FRAME_FLAG_END_STREAM ? stream_find(s, h->stream_id) : NULL;
        if (st)
            response_end(s, st, -1);
        return 0;
    case FRAME_WINDOW_UPDATE:
        if (whole)
            runtime_window_update(s, h, whole);
        return 0;
    case FRAME_GOAWAY:
        if (s->goaway_len == sizeof s->goaway)
            runtime_goaway(s);
        return 0;
    default:
        return 0;
    }
}

/* As block_head(), block_piece() and block_end(); no read is as long as a block without end. */
static int on_block(void *user, struct lane *lane, const uint8_t *body, size_t len)
{
    struct session *s = user;
    enum session_end from = end_of(s, lane);
    struct side *side = &s->sides[from];
    int r = 0;

    side->block_stream = lane->head.stream_id;
    side->block_ends_stream = lane->head.flags & FRAME_FLAG_END_STREAM;
    if (from == SESSION_CLIENT)
        r = client_headers_head(s, &lane->head);
    if (r < 0)
        return r;
    if (side->listener && header_listener_recall(side->listener, body, len)) {
        r = block_known(s, from);
    } else {
        r = block_piece(s, from, body, len);
        r = r < 0 ? r : block_end(s, from);
    }
    if (s->late_acks.count > 0)
        look_at_late_acks(s);
    return s->error ? s->error : r;
}

static int frame_end(struct session *s, struct lane *lane, const uint8_t *whole)
{
    enum session_end from = end_of(s, lane);
    const struct frame_head h = lane->head;

    if (h.type == FRAME_HEADERS || h.type == FRAME_CONTINUATION)
        return h.flags & FRAME_FLAG_END_HEADERS ? block_end(s, from) : 0;
    if (h.type == FRAME_SETTINGS) {
        if (lane->how == LANE_TAP)
            settings_end(s, from);
        return 0;
    }
    if (from == SESSION_RUNTIME)
        return runtime_end(s, &h, whole);
    if (h.type == FRAME_DATA && lane->how != LANE_PASS)
        client_data_end(s, &h, lane->how);
    return 0;
}

static int on_end(void *user, struct lane *lane, const uint8_t *whole)
{
    struct session *s = user;
    int r = frame_end(s, lane, whole);

    look_at_late_acks(s);
    return s->error ? s->error : r;
}

static void on_write(void *user, struct lane *lane, const struct iovec *pieces, int n)
{
    struct session *s = user;

    s->ops->write(s->user, end_of(s, lane) == SESSION_CLIENT ? SESSION_RUNTIME : SESSION_CLIENT,
                  pieces, n);
}

static const struct lane_ops LANE_OPS = {on_head, on_piece, on_block, on_end, on_write};

/* Frames that nobody here has a part in. */
static const uint32_t PASSING[] = {
    [SESSION_CLIENT] =
        1u << FRAME_PING | 1u << FRAME_PRIORITY | 1u << FRAME_WINDOW_UPDATE | 1u << FRAME_GOAWAY,
    [SESSION_RUNTIME] = 1u << FRAME_PING | 1u << FRAME_PRIORITY,
};

/* ---- the public face ---- */

struct session *session_new(const struct session_ops *ops, void *user)
{
    struct session *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->ops = ops;
    s->user = user;
    s->initial_window = s->acked_window = WINDOW_INITIAL;
    s->frame_bytes_max = RELAY_FRAME_BYTES_MAX;
    s->goaway_last = FRAME_STREAM_ID_MAX;
    s->inflated_room = RELAY_INFLATED_BYTES_MAX;
    s->answer_room = 2 * RELAY_RESPONSE_BYTES_MAX; /* packed and inflated */
    for (enum cri_method m = 0; m < CRI_METHODS; m++)
        s->classes[m] = cri_method_class(m);
    flow_init(&s->flow, WINDOW_INITIAL);
    for (int end = SESSION_CLIENT; end <= SESSION_RUNTIME; end++) {
        struct side *side = &s->sides[end];

        lane_init(&side->lane, &LANE_OPS, s);
        side->lane.passing = PASSING[end];
        side->table_size = HEADER_TABLE_BYTES_INITIAL;
        side->table_size_news = -1;
        side->listener = header_listener_new();
        if (!side->listener) {
            session_free(s);
            return NULL;
        }
    }
    return s;
}

void session_free(struct session *s)
{
    struct stream *st, *next;

    if (!s)
        return;
    HASH_ITER(hh, s->streams, st, next)
    stream_free(s, st);
    for (int end = SESSION_CLIENT; end <= SESSION_RUNTIME; end++) {
        lane_fini(&s->sides[end].lane);
        header_listener_free(s->sides[end].listener);
        buffer_fini(&s->sides[end].unacked);
    }
    free(s);
}

/* The client's first bytes (RFC 9113 §3.4). Passes what fits; how much of it, or a negative code.
 */
static ssize_t feed_preface(struct session *s, const uint8_t *bytes, size_t len)
{
    size_t n = FRAME_PREFACE_BYTES - s->preface_seen;
    struct iovec piece = {.iov_base = (void *)bytes};

    n = n < len ? n : len;
    if (memcmp(bytes, &FRAME_PREFACE[s->preface_seen], n) != 0)
        return fail(s, -EPROTO, "the client does not speak HTTP/2");
    s->preface_seen += n;
    piece.iov_len = n;
    s->ops->write(s->user, SESSION_RUNTIME, &piece, 1);
    return (ssize_t)n;
}

static int feed(struct session *s, enum session_end from, const uint8_t *bytes, size_t len)
{
    ssize_t n;
    int r;

    if (from == SESSION_CLIENT && s->preface_seen < FRAME_PREFACE_BYTES) {
        n = feed_preface(s, bytes, len);
        if (n < 0)
            return (int)n;
        bytes += n;
        len -= (size_t)n;
    }
    r = lane_feed(&s->sides[from].lane, bytes, len);
    if (r < 0) {
        if (!s->error && from == SESSION_CLIENT)
            offend(s, r == -EMSGSIZE ? FRAME_SIZE_ERROR : FRAME_PROTOCOL_ERROR,
                   "a frame shorter than what it says");
        fail(s, -EPROTO, "a frame shorter than what it says");
    }
    flush_both(s);
    return s->error;
}

int session_feed(struct session *s, enum session_end from, const uint8_t *bytes, size_t len)
{
    int r;

    if (s->error)
        return s->error;
    s->feeding = true;
    r = feed(s, from, bytes, len);
    s->feeding = false;
    return r;
}

/* Puts a message of ours, in two parts, in the place of the withheld one; what the client sent
 * behind that stays. 0 or -ENOMEM, then nothing has changed. */
static int replace_message(struct session *s, struct stream *st, const void *fragment,
                           size_t fragment_bytes, const void *message, size_t message_bytes)
{
    size_t old_bytes = buffer_len(&st->queue);
    size_t wire = frame_read_u32(buffer_data(&st->queue) + 1) + (size_t)GRPC_HEAD_BYTES;
    size_t total = fragment_bytes + message_bytes, tail = old_bytes - wire;
    uint8_t head[GRPC_HEAD_BYTES] = {0, (uint8_t)(total >> 24), (uint8_t)(total >> 16),
                                     (uint8_t)(total >> 8), (uint8_t)total};
    struct buffer changed = {0};

    if (buffer_reserve(&changed, sizeof head + total + tail) < 0)
        return -ENOMEM;
    if (buffer_put(&changed, head, sizeof head) < 0 ||
        buffer_put(&changed, fragment, fragment_bytes) < 0 ||
        buffer_put(&changed, message, message_bytes) < 0 ||
        buffer_put(&changed, buffer_data(&st->queue) + wire, tail) < 0)
        abort(); /* room was made above */
    flow_added(&s->flow, buffer_len(&changed));
    flow_added(&st->flow, buffer_len(&changed));
    flow_dropped(&s->flow, old_bytes);
    flow_dropped(&st->flow, old_bytes);
    buffer_fini(&st->queue);
    st->queue = changed;
    return 0;
}

/* What has been decided may go. */
static void forward(struct session *s, struct stream *st)
{
    message_close(st);
    credit_stream(s, st);
    stream_open(s, st);
    credit_connection(s);
    flush_both(s);
}

int session_forward(struct session *s, struct session_call *call, const void *fragment,
                    size_t fragment_bytes)
{
    struct stream *st = (struct stream *)call;

    if (fragment_bytes > 0)
        return session_forward_instead(s, call, fragment, fragment_bytes, call->message,
                                       call->message_bytes);
    assert(st->phase == PHASE_DECIDE);
    forward(s, st);
    return 0;
}

int session_forward_instead(struct session *s, struct session_call *call, const void *fragment,
                            size_t fragment_bytes, const void *message, size_t message_bytes)
{
    struct stream *st = (struct stream *)call;

    assert(st->phase == PHASE_DECIDE);
    if (replace_message(s, st, fragment, fragment_bytes, message, message_bytes) < 0)
        return -ENOMEM;
    forward(s, st);
    return 0;
}

void session_set_class(struct session *s, enum cri_method method, enum cri_method_class class)
{
    assert(method > CRI_OTHER && method < CRI_METHODS);
    s->classes[method] = class;
}

void session_refuse(struct session *s, struct session_call *call, int code, const char *message)
{
    struct stream *st = (struct stream *)call;

    refuse(s, st, code, message);
    flush_both(s);
}

/* What has no end of its own would be waited for in vain. */
static void end_endless(struct session *s)
{
    struct stream *st, *next;

    HASH_ITER(hh, s->streams, st, next)
    {
        if (st->call.method != CRI_GET_CONTAINER_EVENTS || st->phase != PHASE_OPEN || !st->end_sent)
            continue;
        if (st->told)
            s->ops->ended(s->user, &st->call);
        cut_short(s, st, RPC_UNAVAILABLE, "GetContainerEvents: cri-device-shim stops; ask again");
    }
}

bool session_drain(struct session *s)
{
    if (s->preface_seen < FRAME_PREFACE_BYTES)
        return false;
    if (!s->runtime_goes) /* else it has been asked, and the number must not rise */
        must_queue(s, frame_put_goaway(&lane_to(s, SESSION_CLIENT)->inject, FRAME_STREAM_ID_MAX,
                                       FRAME_NO_ERROR));
    end_endless(s);
    flush_both(s);
    return true;
}

size_t session_calls(const struct session *s)
{
    return HASH_COUNT(s->streams);
}

bool session_needs_runtime(const struct session *s)
{
    for (const struct stream *st = s->streams; st; st = st->hh.next) {
        if (st->phase != PHASE_COLLECT && st->phase != PHASE_REFUSED)
            return true;
    }
    return false;
}

size_t session_waiting(const struct session *s, enum session_end to)
{
    return buffer_len(
        &s->sides[to == SESSION_CLIENT ? SESSION_RUNTIME : SESSION_CLIENT].lane.inject);
}

const char *session_error(const struct session *s)
{
    return s->error_text;
}
