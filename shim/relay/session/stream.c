#include "shim/relay/session/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "shim/log.h"
#include "shim/relay/limits.h"
#include "shim/relay/session/call_message.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/windows.h"
#include "shim/rpc/rpc.h"

/* A stream whose windows the relay does not alter needs no ledger: the two ends keep it. */
#define WINDOW_UNTRACKED (INT64_MAX / 4)

/* ---- its life ---- */

#define TO(phase) (1u << (phase))

/* The picture in stream.h. */
static const unsigned MOVES[] = {
    [STREAM_NEW] = TO(STREAM_COLLECT) | TO(STREAM_OPEN),
    [STREAM_COLLECT] =
        TO(STREAM_DECIDE) | TO(STREAM_OPEN) | TO(STREAM_BARRIER) | TO(STREAM_STOPPING),
    [STREAM_DECIDE] = TO(STREAM_OPEN) | TO(STREAM_BARRIER) | TO(STREAM_STOPPING),
    [STREAM_OPEN] = TO(STREAM_BARRIER) | TO(STREAM_STOPPING),
    [STREAM_BARRIER] = TO(STREAM_STOPPING),
    [STREAM_STOPPING] = 0,
};

static const unsigned WAITS[] = {
    [STREAM_NEW] = 0,
    [STREAM_COLLECT] = STREAM_WAIT_MESSAGE,
    [STREAM_DECIDE] = STREAM_WAIT_OWNER,
    [STREAM_OPEN] = STREAM_WAIT_ANSWER,
    [STREAM_BARRIER] = STREAM_WAIT_RUNTIME,
    [STREAM_STOPPING] = STREAM_WAIT_CLIENT,
};

void stream_move(struct stream *st, enum stream_phase to)
{
    unsigned stays = to == STREAM_STOPPING ? st->waits & STREAM_WAIT_RUNTIME : 0;

    if (!(MOVES[st->phase] & TO(to))) {
        log_error("relay: stream %u must not go from %s to %s", st->id,
                  stream_phase_name(st->phase), stream_phase_name(to));
        abort();
    }
    st->phase = to;
    st->waits = WAITS[to] | stays;
}

const char *stream_phase_name(enum stream_phase phase)
{
    static const char *const NAMES[] = {
        [STREAM_NEW] = "NEW",   [STREAM_COLLECT] = "COLLECT", [STREAM_DECIDE] = "DECIDE",
        [STREAM_OPEN] = "OPEN", [STREAM_BARRIER] = "BARRIER", [STREAM_STOPPING] = "STOPPING",
    };

    return NAMES[phase];
}

/* ---- the owner ---- */

void stream_tell(struct session *s, struct stream *st)
{
    st->owner = STREAM_TOLD;
    session_tells(s);
    s->owner.ops->request(s->owner.user, s, &st->call);
}

void stream_untell(struct session *s, struct stream *st)
{
    bool told = st->owner == STREAM_TOLD;

    st->owner = STREAM_UNTOLD;
    stream_drop_request_copy(s, st);
    if (!told)
        return;
    session_tells(s);
    s->owner.ops->ended(s->owner.user, &st->call);
}

void stream_forget_owner(struct stream *st)
{
    call_message_close(st);
    st->call.user = NULL;
    if (st->owner == STREAM_TOLD && st->phase == STREAM_DECIDE)
        st->owner = STREAM_UNREAD;
}

void stream_regain(struct session *s, struct stream *st)
{
    size_t bytes;

    if (st->owner != STREAM_TOLD)
        return;
    if (!s->owner.ops->regained) {
        st->owner = STREAM_UNTOLD;
        stream_drop_request_copy(s, st);
        return;
    }
    if (call_message_measure(&st->request, &bytes) == CALL_MESSAGE_WHOLE &&
        call_message_open(st, &st->request, bytes, &s->inflated_room) != RPC_OK)
        call_message_close(st);
    session_tells(s);
    s->owner.ops->regained(s->owner.user, s, &st->call);
    call_message_close(st);
}

/* ---- its bytes ---- */

void stream_drop_queue(struct session *s, struct stream *st)
{
    size_t bytes = buffer_len(&st->queue);

    if (stream_is_queued(st))
        s->queued--;
    flow_dropped(&s->windows.flow, bytes);
    flow_dropped(&st->flow, bytes);
    buffer_fini(&st->queue);
    st->before_ack = 0;
    windows_credit_connection(s);
}

int stream_copy_request(struct session *s, struct stream *st, const uint8_t *body, size_t len)
{
    if (len > RELAY_OBSERVED_BYTES_MAX - s->request_bytes ||
        buffer_put(&st->request, body, len) < 0)
        return -ENOMEM;
    s->request_bytes += len;
    return 0;
}

void stream_drop_request_copy(struct session *s, struct stream *st)
{
    s->request_bytes -= buffer_len(&st->request);
    buffer_fini(&st->request);
}

int stream_copy_response(struct session *s, struct stream *st, const uint8_t *body, size_t len)
{
    if (buffer_len(&st->response) + len > RELAY_RESPONSE_BYTES_MAX ||
        s->response_bytes + len > RELAY_RESPONSES_BYTES_MAX ||
        buffer_put(&st->response, body, len) < 0)
        return -ENOMEM;
    s->response_bytes += len;
    return 0;
}

void stream_drop_response_copy(struct session *s, struct stream *st)
{
    s->response_bytes -= buffer_len(&st->response);
    buffer_fini(&st->response);
}

/* ---- the table ---- */

struct stream *stream_look_up(struct stream *table, uint32_t id)
{
    struct stream *st;

    HASH_FIND(hh, table, &id, sizeof id, st);
    return st;
}

static enum stream_kind kind_of(const struct session *s, enum cri_method method)
{
    if (method == CRI_OTHER)
        return STREAM_PARKED;
    return s->classes[method] == CRI_CLASS_INTERCEPTED ? STREAM_INTERCEPTED : STREAM_OBSERVED;
}

_Static_assert(RELAY_STREAMS_MAX <= UINT16_MAX, "all may share a bit");

/* What comes on this stream is looked at from now on, or no longer. */
static void watch(struct session *s, uint32_t id, bool on)
{
    unsigned bit = lane_watched_bit(id);
    uint64_t known;

    s->watched[bit] = (uint16_t)(s->watched[bit] + (on ? 1 : -1));
    known = (uint64_t)(s->watched[bit] > 0) << bit;
    for (enum session_end end = SESSION_CLIENT; end <= SESSION_RUNTIME; end++) {
        struct lane *lane = &s->sides[end].lane;

        lane->watched = (lane->watched & ~(UINT64_C(1) << bit)) | known;
    }
}

struct stream *stream_new(struct session *s, uint32_t id, enum cri_method method)
{
    struct stream *st;

    if (HASH_COUNT(s->streams) >= RELAY_STREAMS_MAX)
        return NULL;
    st = calloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->id = id;
    st->call.method = method;
    st->kind = kind_of(s, method);
    st->owner = st->kind == STREAM_PARKED ? STREAM_UNTOLD : STREAM_UNREAD;
    stream_move(st, st->kind == STREAM_INTERCEPTED ? STREAM_COLLECT : STREAM_OPEN);
    flow_init(&st->flow, st->kind == STREAM_INTERCEPTED ? s->windows.initial : WINDOW_UNTRACKED);
    HASH_ADD(hh, s->streams, id, sizeof st->id, st);
    if (!st->hh.tbl) {
        free(st);
        return NULL;
    }
    watch(s, id, true);
    return st;
}

void stream_free(struct session *s, struct stream *st)
{
    stream_drop_queue(s, st);
    stream_drop_request_copy(s, st);
    stream_drop_response_copy(s, st);
    HASH_DEL(s->streams, st);
    watch(s, st->id, false);
    call_message_close(st);
    free(st->refusal);
    stream_untell(s, st);
    free(st);
}
