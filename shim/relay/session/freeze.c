/*
 * session_freeze() and session_thaw().
 *
 * The format: SESSION_FORMAT, the state's parts as they are written below, and the sum of all that.
 * What can grow is in sections (frozen.h), and grows at their ends; what is not needed any more
 * stays as a 0. In a new session, stream or entry each field has what is right where it was not
 * written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "shim/relay/frozen.h"
#include "shim/relay/limits.h"
#include "shim/relay/session/dispatch.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/stream.h"
#include "shim/rpc/rpc.h"

#define SUM_BYTES 8
/* More than a session takes with a few calls under way. */
#define STATE_BYTES_USUAL 4096
/* More than what is sent of it. */
#define REFUSAL_BYTES_KEPT (2 * RPC_STATUS_TEXT_BYTES_MAX)

/* ---- small parts, one function each for both ways ---- */

/* A number of the session's, written or read. */
struct ice {
    struct frozen_writer *w; /* NULL: it is read */
    struct frozen_reader *r;
};

static uint64_t number(const struct ice *ice, uint64_t value, uint64_t most)
{
    if (!ice->w)
        return frozen_at_end(ice->r) ? value : frozen_take_most(ice->r, most);
    frozen_put(ice->w, value);
    return value;
}

static size_t section_begin(const struct ice *ice)
{
    return ice->w ? frozen_section_begin(ice->w) : frozen_section_enter(ice->r);
}

static void section_end(const struct ice *ice, size_t begin)
{
#ifdef SESSION_STATE_NEXT /* of a release to come, for tests: each section has more */
    uint64_t more = 7;

    if (!ice->w && number(ice, more, UINT64_MAX) != 7)
        ice->r->bad = true;
    if (ice->w)
        frozen_put(ice->w, more);
#endif
    if (ice->w)
        frozen_section_end(ice->w, begin);
    else
        frozen_section_leave(ice->r, begin);
}

/* FIELD of any integer type, which is at most MOST. */
#define NUMBER(ice, field, most) ((field) = (__typeof__(field))number(ice, (uint64_t)(field), most))
#define U32(ice, field) NUMBER(ice, field, UINT32_MAX)
#define U64(ice, field) NUMBER(ice, field, UINT64_MAX)
#define BOOL(ice, field) NUMBER(ice, field, 1)

static void raw(const struct ice *ice, void *at, size_t len)
{
    size_t there;
    const uint8_t *from;

    if (ice->w) {
        frozen_put_bytes(ice->w, at, len);
        return;
    }
    if (frozen_at_end(ice->r))
        return;
    from = frozen_take_bytes(ice->r, len, &there);
    if (there == len && len > 0)
        memcpy(at, from, len);
    ice->r->bad = ice->r->bad || there != len;
}

/* 0 or -ENOMEM. */
static int bytes_state(const struct ice *ice, struct buffer *b, size_t most)
{
    if (!ice->w)
        return frozen_at_end(ice->r) ? 0 : frozen_take_buffer(ice->r, most, b);
    frozen_put_bytes(ice->w, buffer_data(b), buffer_len(b));
    return 0;
}

static void flow_state(const struct ice *ice, struct flow *f)
{
    size_t section = section_begin(ice);

    U64(ice, f->send);
    U64(ice, f->client);
    U64(ice, f->pending);
    U64(ice, f->surplus);
    section_end(ice, section);
    if (!ice->w && !flow_check(f))
        ice->r->bad = true;
}

/* ---- an end ---- */

static int lane_state(const struct ice *ice, struct lane *l)
{
    size_t section = section_begin(ice);
    int r;

    U64(ice, l->data_passed);
    NUMBER(ice, l->stream_passed, FRAME_STREAM_ID_MAX);
    BOOL(ice, l->stepwise);
    NUMBER(ice, l->head.length, FRAME_BYTES_MAX);
    NUMBER(ice, l->head.type, 0xff);
    NUMBER(ice, l->head.flags, 0xff);
    NUMBER(ice, l->head.stream_id, FRAME_STREAM_ID_MAX);
    NUMBER(ice, l->how, LANE_GATHER);
    BOOL(ice, l->begun);
    BOOL(ice, l->within);
    U32(ice, l->left);
    U32(ice, l->skip);
    U32(ice, l->body);
    BOOL(ice, l->pad_unknown);
    NUMBER(ice, l->carry_len, sizeof l->carry);
    raw(ice, l->carry, sizeof l->carry);
    r = bytes_state(ice, &l->inject, SIZE_MAX);
    section_end(ice, section);
    return r;
}

static void sent_state(const struct ice *ice, struct settings_sent *s)
{
    size_t section = section_begin(ice);

    U32(ice, s->barrier);
    BOOL(ice, s->has_table_size);
    U32(ice, s->table_size_min);
    U32(ice, s->table_size);
    BOOL(ice, s->has_window);
    U32(ice, s->window);
    section_end(ice, section);
}

static int settings_state(const struct ice *ice, struct settings_queue *q)
{
    size_t n = buffer_len(&q->unacked) / sizeof(struct settings_sent);
    uint64_t at = q->under_way - q->popped; /* beyond all if it has left */
    uint64_t under_way = at < n ? at + 1 : 0;

    NUMBER(ice, n, RELAY_SETTINGS_PENDING_MAX + RELAY_STREAMS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct settings_sent s = {0};

        if (ice->w)
            memcpy(&s, buffer_data(&q->unacked) + i * sizeof s, sizeof s);
        sent_state(ice, &s);
        if (!ice->w && !ice->r->bad && settings_queue_push(q, &s) < 0)
            return -ENOMEM;
    }
    NUMBER(ice, under_way, n);
    if (!ice->w) { /* the oldest has the number 1, so that 0 has left */
        q->pushed++;
        q->popped++;
        q->under_way = under_way;
    }
    NUMBER(ice, q->entry_len, SETTINGS_ENTRY_BYTES - 1);
    raw(ice, q->entry, sizeof q->entry);
    return 0;
}

/* Its listener may be one that gave up. */
static int listener_state(const struct ice *ice, struct session_side *side)
{
    size_t section = section_begin(ice);
    bool listens = side->listener;

    BOOL(ice, listens);
    if (ice->w) {
        if (listens)
            header_listener_freeze(side->listener, ice->w);
        section_end(ice, section);
        return 0;
    }
    header_listener_free(side->listener);
    side->listener = listens ? header_listener_thaw(ice->r) : NULL;
    section_end(ice, section);
    side->lane.memo = side->listener ? header_listener_memo(side->listener) : NULL;
    return listens && !side->listener && !ice->r->bad ? -ENOMEM : 0;
}

static int side_state(const struct ice *ice, struct session_side *side)
{
    uint64_t news = (uint64_t)(side->table_size_news + 1);
    size_t section = section_begin(ice);
    int r = lane_state(ice, &side->lane);

    NUMBER(ice, side->block.stream, FRAME_STREAM_ID_MAX);
    BOOL(ice, side->block.ends_stream);
    U64(ice, side->block.bytes);
    U32(ice, side->table_size);
    NUMBER(ice, news, (uint64_t)UINT32_MAX + 1);
    side->table_size_news = (int64_t)news - 1;
    if (r == 0)
        r = settings_state(ice, &side->settings);
    if (r == 0)
        r = listener_state(ice, side);
    section_end(ice, section);
    return r;
}

/* ---- a stream ---- */

static int refusal_state(const struct ice *ice, struct stream *st)
{
    size_t len = st->refusal ? strnlen(st->refusal, REFUSAL_BYTES_KEPT) : 0;
    bool there = st->refusal;

    BOOL(ice, there);
    NUMBER(ice, len, REFUSAL_BYTES_KEPT);
    if (!there)
        return 0;
    if (!ice->w) {
        st->refusal = calloc(1, len + 1);
        if (!st->refusal)
            return -ENOMEM;
    }
    raw(ice, st->refusal, len);
    return 0;
}

/* All but its number and method. */
static int stream_state(const struct ice *ice, struct stream *st)
{
    uint64_t code = (uint64_t)st->refusal_code + 1;
    bool dropped = st->response_dropped || buffer_len(&st->response) > 0;
    int r;

    U64(ice, st->call.timeout_ms);
    NUMBER(ice, st->kind, STREAM_INTERCEPTED);
    NUMBER(ice, st->phase, STREAM_STOPPING);
    NUMBER(ice, st->waits, STREAM_WAIT_ALL);
    NUMBER(ice, st->owner, STREAM_UNTOLD);
    NUMBER(ice, st->request_end, STREAM_END_SENT);
    BOOL(ice, st->response_begun);
    BOOL(ice, dropped);
    if (!ice->w)
        st->response_dropped = dropped;
    NUMBER(ice, st->encoding, MESSAGE_ENCODING_UNKNOWN);
    flow_state(ice, &st->flow);
    U64(ice, st->before_ack);
    NUMBER(ice, code, INT32_MAX);
    st->refusal_code = (int)code - 1;
    r = refusal_state(ice, st);
    if (r == 0)
        r = bytes_state(ice, &st->queue, SIZE_MAX);
    return r < 0 ? r : bytes_state(ice, &st->request, RELAY_OBSERVED_BYTES_MAX);
}

static int streams_write(const struct ice *ice, struct session *s)
{
    int r = 0;

    frozen_put(ice->w, HASH_COUNT(s->streams));
    for (struct stream *st = s->streams; st && r == 0; st = st->hh.next) {
        size_t section = section_begin(ice);

        frozen_put(ice->w, st->id);
        frozen_put(ice->w, st->call.method);
        r = stream_state(ice, st);
        section_end(ice, section);
    }
    return r;
}

static int streams_read(const struct ice *ice, struct session *s)
{
    uint64_t n = frozen_take_most(ice->r, RELAY_STREAMS_MAX);

    for (; n > 0 && !ice->r->bad; n--) {
        size_t section = section_begin(ice);
        uint32_t id = (uint32_t)frozen_take_most(ice->r, FRAME_STREAM_ID_MAX);
        enum cri_method method = (enum cri_method)frozen_take_most(ice->r, CRI_METHODS - 1);
        struct stream *st = stream_new(s, id, method);
        int r = st ? stream_state(ice, st) : -ENOMEM;

        section_end(ice, section);
        if (r < 0)
            return r;
        s->queued += stream_is_queued(st);
        s->request_bytes += buffer_len(&st->request);
    }
    return 0;
}

/* ---- a session ---- */

/* One of more methods than are known here is not for those that are. */
static void classes_state(const struct ice *ice, struct session *s)
{
    size_t section = section_begin(ice);

    for (int method = 0; method < CRI_METHODS; method++)
        NUMBER(ice, s->classes[method], CRI_CLASS_INTERCEPTED);
    if (ice->w)
        frozen_section_end(ice->w, section);
    else
        frozen_section_leave(ice->r, section);
}

static int session_state(const struct ice *ice, struct session *s)
{
    size_t section = section_begin(ice);
    int r = 0;

    NUMBER(ice, s->preface_seen, FRAME_PREFACE_BYTES);
    U32(ice, s->stream_id_max);
    classes_state(ice, s);
    flow_state(ice, &s->windows.flow);
    U64(ice, s->windows.initial);
    U32(ice, s->windows.acked);
    U32(ice, s->windows.frame_bytes_max);
    U32(ice, s->late_acks.count);
    BOOL(ice, s->late_acks.has_table_size);
    BOOL(ice, s->late_acks.has_window);
    U32(ice, s->late_acks.window);
    raw(ice, s->goaway, sizeof s->goaway);
    NUMBER(ice, s->goaway_len, sizeof s->goaway);
    BOOL(ice, s->runtime_goes);
    NUMBER(ice, s->goaway_last, FRAME_STREAM_ID_MAX);
    for (int end = SESSION_CLIENT; end <= SESSION_RUNTIME && r == 0; end++)
        r = side_state(ice, &s->sides[end]);
    if (r == 0)
        r = ice->w ? streams_write(ice, s) : streams_read(ice, s);
    section_end(ice, section);
    return r;
}

int session_freeze(struct session *s, struct buffer *out)
{
    struct frozen_writer w = {.out = out};
    const struct ice ice = {.w = &w};
    size_t begin = buffer_len(out);

    if (s->error)
        return s->error;
    if (session_is_within_block(s, SESSION_CLIENT) || session_is_within_block(s, SESSION_RUNTIME))
        return -EAGAIN;
    if (buffer_reserve(out, STATE_BYTES_USUAL) < 0)
        return -ENOMEM;
    frozen_put(&w, frozen_format(SESSION_FORMAT));
    if (session_state(&ice, s) < 0)
        w.no_memory = true;
    frozen_put(&w, crc32_z(0, buffer_data(out) + begin, buffer_len(out) - begin));
    return w.no_memory ? -ENOMEM : 0;
}

static bool is_intact(const uint8_t *state, size_t len)
{
    struct frozen_reader head = {.at = state, .left = len}, sum;

    if (len < 2 * SUM_BYTES)
        return false;
    sum = (struct frozen_reader){.at = state + len - SUM_BYTES, .left = SUM_BYTES};
    return frozen_take(&head) == frozen_format(SESSION_FORMAT) &&
           frozen_take(&sum) == crc32_z(0, state, len - SUM_BYTES);
}

int session_thaw(const uint8_t *state, size_t len, const struct session_ops *ops, void *user,
                 struct session_owner owner, struct session **out)
{
    struct frozen_reader r;
    const struct ice ice = {.r = &r};
    struct session *s;
    int error;

    if (!is_intact(state, len))
        return -EPROTO;
    r = (struct frozen_reader){.at = state + SUM_BYTES, .left = len - 2 * SUM_BYTES};
    s = session_new(ops, user, owner);
    if (!s)
        return -ENOMEM;
    error = session_state(&ice, s);
    if (r.bad || (error == 0 && r.left > 0))
        error = -EPROTO;
    if (error < 0) {
        session_free(s);
        return error;
    }
    dispatch_choose_methods(s);
    dispatch_settle(s);
    *out = s;
    return 0;
}
