#include "shim/relay/session/dispatch.h"

#include <errno.h>

#include "shim/relay/session/blocks.h"
#include "shim/relay/session/from_client.h"
#include "shim/relay/session/from_runtime.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/settings_frames.h"
#include "shim/relay/session/stream.h"

/* Frames that nobody here has a part in. */
static const uint32_t PASSING[] = {
    [SESSION_CLIENT] = 1u << FRAME_DATA | 1u << FRAME_PING | 1u << FRAME_PRIORITY |
                       1u << FRAME_WINDOW_UPDATE | 1u << FRAME_GOAWAY,
    [SESSION_RUNTIME] = 1u << FRAME_DATA | 1u << FRAME_PING | 1u << FRAME_PRIORITY,
};

_Static_assert(CRI_METHODS <= 32, "a word has a bit for each method");

void dispatch_choose_methods(struct session *s)
{
    uint32_t relayed = 0;

    for (enum cri_method m = 0; m < CRI_METHODS; m++)
        relayed |= (uint32_t)(s->classes[m] == CRI_CLASS_RELAYED) << m;
    s->sides[SESSION_CLIENT].lane.passing_methods = relayed;
    s->sides[SESSION_RUNTIME].lane.passing_methods = UINT32_MAX;
}

/* DATA of a stream that we have no part in passes without a look, unless the client was promised
 * more than the runtime takes, or may have to be credited for what is withheld. */
static void choose_passing(struct session *s)
{
    struct lane *client = &s->sides[SESSION_CLIENT].lane;

    client->passing = PASSING[SESSION_CLIENT];
    if (s->windows.flow.surplus > 0 || s->windows.flow.pending > 0)
        client->passing &= ~(1u << FRAME_DATA);
}

/* What passed so is known before the next frame that we have a part in. */
static void count_passed(struct session *s)
{
    struct lane *lane = &s->sides[SESSION_CLIENT].lane;

    flow_passed(&s->windows.flow, lane->data_passed);
    lane->data_passed = 0;
    if (lane->stream_passed > s->stream_id_max)
        s->stream_id_max = lane->stream_passed;
}

void dispatch_settle(struct session *s)
{
    count_passed(s);
    choose_passing(s);
}

/* ---- a frame begins ---- */

static int client_head(struct session *s, const struct frame_head *h, enum lane_how *how)
{
    switch (h->type) {
    case FRAME_DATA:
        return from_client_data_head(s, h, how);
    case FRAME_RST_STREAM:
        from_client_reset(s, h->stream_id, how);
        return 0;
    case FRAME_PUSH_PROMISE:
        return session_offend(s, FRAME_PROTOCOL_ERROR, "a client must not push");
    default:
        return 0;
    }
}

static int runtime_head(struct session *s, const struct frame_head *h, enum lane_how *how)
{
    switch (h->type) {
    case FRAME_DATA:
        if (stream_find(s->streams, h->stream_id))
            *how = LANE_TAP;
        return 0;
    case FRAME_RST_STREAM:
        from_runtime_reset(s, h->stream_id, how);
        return 0;
    case FRAME_WINDOW_UPDATE:
        *how = h->length == 4 ? LANE_GATHER : LANE_PASS;
        return 0;
    case FRAME_GOAWAY:
        from_runtime_goaway_head(s);
        *how = LANE_TAP;
        return 0;
    case FRAME_PUSH_PROMISE:
        /* No gRPC client allows it; its block would leave our listener behind. */
        return session_fail(s, -EPROTO, "the runtime pushes");
    default:
        return 0;
    }
}

static int frame_begins(struct session *s, enum session_end from, const struct frame_head *h,
                        enum lane_how *how)
{
    if (blocks_broken(s, from, h)) {
        if (from == SESSION_CLIENT)
            return session_offend(s, FRAME_PROTOCOL_ERROR, "a frame inside a header block");
        return session_fail(s, -EPROTO, "a frame inside a header block");
    }
    if (from == SESSION_CLIENT && h->stream_id == 0 &&
        (h->type == FRAME_DATA || h->type == FRAME_HEADERS))
        return session_offend(s, FRAME_PROTOCOL_ERROR, "DATA or HEADERS without a stream");
    switch (h->type) {
    case FRAME_HEADERS:
    case FRAME_CONTINUATION:
        *how = LANE_TAP;
        return blocks_head(s, from, h);
    case FRAME_SETTINGS:
        if (h->flags & FRAME_FLAG_ACK)
            return settings_frames_ack(s, from, how);
        *how = LANE_TAP;
        return settings_frames_head(s, from);
    default:
        return from == SESSION_CLIENT ? client_head(s, h, how) : runtime_head(s, h, how);
    }
}

static int on_head(void *user, struct lane *lane, const struct frame_head *h, enum lane_how *how)
{
    struct session *s = user;
    int r;

    count_passed(s);
    r = frame_begins(s, session_end_of(s, lane), h, how);
    choose_passing(s);
    if (s->late_acks.count > 0 && h->type == FRAME_RST_STREAM && *how == LANE_PASS)
        *how = LANE_TAP; /* its end may be what they wait for */
    return s->error ? s->error : r;
}

/* ---- it goes on ---- */

static int on_piece(void *user, struct lane *lane, const uint8_t *body, size_t body_bytes,
                    size_t wire_bytes)
{
    struct session *s = user;
    enum session_end from = session_end_of(s, lane);

    switch (lane->head.type) {
    case FRAME_DATA:
        if (from == SESSION_CLIENT)
            return from_client_data_piece(s, lane, body, body_bytes, wire_bytes);
        from_runtime_data_piece(s, lane->head.stream_id, body, body_bytes);
        return 0;
    case FRAME_HEADERS:
    case FRAME_CONTINUATION:
        return blocks_piece(s, from, body, body_bytes);
    case FRAME_SETTINGS:
        if (lane->how == LANE_TAP)
            settings_frames_piece(s, from, body, body_bytes);
        return 0;
    case FRAME_GOAWAY:
        if (from == SESSION_RUNTIME)
            from_runtime_goaway_piece(s, body, body_bytes);
        return 0;
    default:
        return 0;
    }
}

/* ---- it is whole ---- */

static void runtime_end(struct session *s, const struct frame_head *h, const uint8_t *whole)
{
    switch (h->type) {
    case FRAME_DATA:
        if (h->flags & FRAME_FLAG_END_STREAM)
            from_runtime_data_ended(s, h->stream_id);
        break;
    case FRAME_WINDOW_UPDATE:
        if (whole)
            from_runtime_window_update(s, h, whole);
        break;
    case FRAME_GOAWAY:
        from_runtime_goaway_end(s);
        break;
    default:
        break;
    }
}

static int frame_ends(struct session *s, struct lane *lane, const uint8_t *whole)
{
    enum session_end from = session_end_of(s, lane);
    const struct frame_head *h = &lane->head;

    switch (h->type) {
    case FRAME_HEADERS:
    case FRAME_CONTINUATION:
        return h->flags & FRAME_FLAG_END_HEADERS ? blocks_end(s, from) : 0;
    case FRAME_SETTINGS:
        if (lane->how == LANE_TAP)
            settings_frames_end(s, from);
        return 0;
    default:
        break;
    }
    if (from == SESSION_RUNTIME)
        runtime_end(s, h, whole);
    else if (h->type == FRAME_DATA)
        from_client_data_end(s, lane);
    return 0;
}

static int on_end(void *user, struct lane *lane, const uint8_t *whole)
{
    struct session *s = user;
    int r = frame_ends(s, lane, whole);

    if (s->late_acks.count > 0)
        late_acks_look(s);
    choose_passing(s);
    return s->error ? s->error : r;
}

static int on_block(void *user, struct lane *lane, const uint8_t *body, size_t len)
{
    struct session *s = user;
    enum session_end from = session_end_of(s, lane);
    int r;

    count_passed(s);
    r = blocks_whole(s, from, &lane->head, body, len);
    if (s->late_acks.count > 0)
        late_acks_look(s);
    choose_passing(s);
    return s->error ? s->error : r;
}

static void on_write(void *user, struct lane *lane, const struct iovec *pieces, int n)
{
    struct session *s = user;

    s->ops->write(s->user, session_other(session_end_of(s, lane)), pieces, n);
}

static const struct lane_ops LANE_OPS = {on_head, on_piece, on_block, on_end, on_write};

void dispatch_init(struct session *s, enum session_end from)
{
    struct lane *lane = &s->sides[from].lane;

    lane_init(lane, &LANE_OPS, s);
    lane->passing = PASSING[from];
}
