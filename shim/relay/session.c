#include "shim/relay/session.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/relay/limits.h"
#include "shim/relay/session/call_message.h"
#include "shim/relay/session/dispatch.h"
#include "shim/relay/session/ending.h"
#include "shim/relay/session/from_client.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/stream.h"
#include "shim/relay/session/withheld.h"
#include "shim/rpc/rpc.h"

#define HEADER_TABLE_BYTES_INITIAL 4096 /* RFC 9113 §6.5.2 */

struct session *session_new(const struct session_ops *ops, void *user, struct session_owner owner)
{
    struct session *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->ops = ops;
    s->user = user;
    s->owner = owner;
    s->goaway_last = FRAME_STREAM_ID_MAX;
    s->inflated_room.left = RELAY_INFLATED_BYTES_MAX;
    s->answer_room.left = 2 * RELAY_RESPONSE_BYTES_MAX; /* packed and inflated */
    for (enum cri_method m = 0; m < CRI_METHODS; m++)
        s->classes[m] = cri_method_class(m);
    windows_init(&s->windows);
    for (enum session_end end = SESSION_CLIENT; end <= SESSION_RUNTIME; end++) {
        struct session_side *side = &s->sides[end];

        dispatch_init(s, end);
        side->table_size = HEADER_TABLE_BYTES_INITIAL;
        side->table_size_news = -1;
        side->listener = header_listener_new();
        if (!side->listener) {
            session_free(s);
            return NULL;
        }
        side->lane.memo = header_listener_memo(side->listener);
    }
    dispatch_choose_methods(s);
    return s;
}

/* Something has been fed or decided. */
static void settle(struct session *s)
{
    session_flush(s);
    dispatch_settle(s);
}

/* ---- what it depends on ---- */

static void enter(struct session *s)
{
    if (s->depth++ == 0)
        s->told = 0;
}

static void leave(struct session *s)
{
    s->depth--;
}

static void decide(struct session *s, const struct session_decision *decision)
{
    if (s->ops->decided)
        s->ops->decided(s->user, s->depth > 0 ? s->told : 0, decision);
    enter(s);
}

uint32_t session_told(const struct session *s)
{
    return s->told;
}

void session_set_owner(struct session *s, struct session_owner owner)
{
    s->owner = owner;
}

void session_set_tally(struct session *s, struct tally *tally)
{
    s->sides[SESSION_CLIENT].lane.tally = s->sides[SESSION_RUNTIME].lane.tally = tally;
    s->sides[SESSION_RUNTIME].lane.answers = true;
}

static void regain(struct session *s)
{
    struct stream *st, *next;

    HASH_ITER(hh, s->streams, st, next) {
        stream_regain(s, st);
    }
}

void session_begin(struct session *s, pid_t client)
{
    s->begun = true;
    enter(s);
    for (struct stream *st = s->streams; st; st = st->hh.next)
        stream_forget_owner(st);
    session_tells(s);
    s->owner.ops->begun(s->owner.user, s, client);
    regain(s);
    from_client_ask_again(s);
    settle(s);
    leave(s);
}

void session_free(struct session *s)
{
    struct stream *st, *next;

    if (!s)
        return;
    if (s->begun)
        s->owner.ops->gone(s->owner.user, s);
    HASH_ITER(hh, s->streams, st, next) {
        stream_free(s, st);
    }
    for (enum session_end end = SESSION_CLIENT; end <= SESSION_RUNTIME; end++) {
        lane_fini(&s->sides[end].lane);
        header_listener_free(s->sides[end].listener);
        settings_queue_fini(&s->sides[end].settings);
    }
    free(s);
}

/* The client's first bytes (RFC 9113 §3.4). Passes what fits; how much of it, or a negative
 * code. */
static ssize_t feed_preface(struct session *s, const uint8_t *bytes, size_t len)
{
    size_t n = FRAME_PREFACE_BYTES - s->preface_seen;
    struct iovec piece = {.iov_base = (void *)bytes};

    n = n < len ? n : len;
    if (memcmp(bytes, &FRAME_PREFACE[s->preface_seen], n) != 0)
        return session_fail(s, -EPROTO, "the client does not speak HTTP/2");
    s->preface_seen += n;
    piece.iov_len = n;
    s->ops->write(s->user, SESSION_RUNTIME, &piece, 1);
    return (ssize_t)n;
}

static int feed(struct session *s, enum session_end from, const uint8_t *bytes, size_t len)
{
    struct lane *lane = &s->sides[from].lane;
    uint64_t data_before = lane->data_passed;
    ssize_t n;
    int r;

    lane->looked = false;
    if (from == SESSION_CLIENT && s->preface_seen < FRAME_PREFACE_BYTES) {
        n = feed_preface(s, bytes, len);
        if (n < 0)
            return (int)n;
        bytes += n;
        len -= (size_t)n;
    }
    r = lane_feed(lane, bytes, len);
    s->data_fed = (uint32_t)(lane->data_passed - data_before);
    if (r < 0) {
        if (!s->error && from == SESSION_CLIENT)
            session_offend(s, r == -EMSGSIZE ? FRAME_SIZE_ERROR : FRAME_PROTOCOL_ERROR,
                           "a frame shorter than what it says");
        session_fail(s, -EPROTO, "a frame shorter than what it says");
    }
    settle(s);
    return s->error;
}

int session_feed(struct session *s, enum session_end from, const uint8_t *bytes, size_t len)
{
    struct tally *tally = s->sides[SESSION_CLIENT].lane.tally;
    int r;

    if (s->error)
        return s->error;
    s->feeding = true;
    if (tally)
        tally_read_begins(tally);
    enter(s);
    r = feed(s, from, bytes, len);
    leave(s);
    if (tally)
        tally_read_ends(tally);
    s->feeding = false;
    return r;
}

bool session_passed(const struct session *s, enum session_end from, struct session_passed *out)
{
    const struct lane *lane = &s->sides[from].lane;

    if (s->error || lane->looked)
        return false;
    *out = (struct session_passed){
        .data = s->data_fed, .stream = lane->stream_passed, .place = lane_place(lane)};
    return true;
}

int session_pass(struct session *s, enum session_end from, const struct session_passed *passed)
{
    struct lane *lane = &s->sides[from].lane;

    if (passed->stream > FRAME_STREAM_ID_MAX || lane_put(lane, &passed->place) < 0)
        return -EPROTO;
    enter(s);
    lane->data_passed += passed->data;
    if (passed->stream > lane->stream_passed)
        lane->stream_passed = passed->stream;
    settle(s);
    leave(s);
    return s->error;
}

/* ---- decisions ---- */

/* What has been decided may go. */
static void forward(struct session *s, struct stream *st)
{
    call_message_close(st);
    windows_credit_stream(s, st);
    withheld_open(s, st);
    windows_credit_connection(s);
    settle(s);
}

int session_forward(struct session *s, struct session_call *call, const void *fragment,
                    size_t fragment_bytes)
{
    struct stream *st = (struct stream *)call;

    if (fragment_bytes > 0)
        return session_forward_instead(s, call, fragment, fragment_bytes, call->message,
                                       call->message_bytes);
    assert(st->phase == STREAM_DECIDE);
    decide(s, &(struct session_decision){.what = SESSION_FORWARDS, .stream = st->id});
    forward(s, st);
    leave(s);
    return 0;
}

int session_forward_instead(struct session *s, struct session_call *call, const void *fragment,
                            size_t fragment_bytes, const void *message, size_t message_bytes)
{
    struct stream *st = (struct stream *)call;
    int r;

    assert(st->phase == STREAM_DECIDE);
    /* Before: the message may lie in what is replaced. */
    decide(s, &(struct session_decision){.what = SESSION_FORWARDS_INSTEAD,
                                         .stream = st->id,
                                         .fragment = fragment,
                                         .fragment_bytes = fragment_bytes,
                                         .message = message,
                                         .message_bytes = message_bytes});
    r = withheld_replace(s, st, fragment, fragment_bytes, message, message_bytes);
    if (r == 0)
        forward(s, st);
    leave(s);
    return r;
}

bool session_waits(const struct session_call *call)
{
    return ((const struct stream *)call)->phase == STREAM_DECIDE;
}

void session_set_class(struct session *s, enum cri_method method, enum cri_method_class class)
{
    assert(method > CRI_OTHER && method < CRI_METHODS);
    if (s->classes[method] == class)
        return;
    decide(s,
           &(struct session_decision){.what = SESSION_CLASSES, .method = method, .class = class});
    s->classes[method] = class;
    dispatch_choose_methods(s);
    leave(s);
}

void session_refuse(struct session *s, struct session_call *call, int code, const char *message)
{
    struct stream *st = (struct stream *)call;

    assert(stream_is_gated(st));
    decide(s, &(struct session_decision){.what = SESSION_REFUSES,
                                         .stream = st->id,
                                         .code = code,
                                         .message = message,
                                         .message_bytes = strlen(message) + 1});
    ending_cut_short(s, st, code, message);
    settle(s);
    leave(s);
}

/* Whose end would be waited for in vain. */
static bool is_endless(const struct stream *st)
{
    return st->call.method == CRI_GET_CONTAINER_EVENTS && st->phase == STREAM_OPEN &&
           st->request_end == STREAM_END_SENT;
}

static void end_endless(struct session *s)
{
    struct stream *st, *next;

    HASH_ITER(hh, s->streams, st, next) {
        if (!is_endless(st))
            continue;
        stream_untell(s, st);
        ending_cut_short(s, st, RPC_UNAVAILABLE,
                         "GetContainerEvents: cri-device-shim stops; ask again");
    }
}

bool session_drain(struct session *s)
{
    if (s->preface_seen < FRAME_PREFACE_BYTES)
        return false;
    decide(s, &(struct session_decision){.what = SESSION_DRAINS});
    if (!s->runtime_goes) /* else it has been asked, and the number must not rise */
        session_must_queue(s, frame_put_goaway(&session_lane_to(s, SESSION_CLIENT)->inject,
                                               FRAME_STREAM_ID_MAX, FRAME_NO_ERROR));
    end_endless(s);
    settle(s);
    leave(s);
    return true;
}

int session_apply(struct session *s, const struct session_decision *d)
{
    struct stream *st = stream_find(s->streams, d->stream);

    switch (d->what) {
    case SESSION_FORWARDS:
        return st && st->phase == STREAM_DECIDE ? session_forward(s, &st->call, NULL, 0) : -EPROTO;
    case SESSION_FORWARDS_INSTEAD:
        return st && st->phase == STREAM_DECIDE
                   ? session_forward_instead(s, &st->call, d->fragment, d->fragment_bytes,
                                             d->message, d->message_bytes)
                   : -EPROTO;
    case SESSION_REFUSES:
        if (!st || !stream_is_gated(st))
            return -EPROTO;
        session_refuse(s, &st->call, d->code, d->message);
        return 0;
    case SESSION_CLASSES:
        if (d->method <= CRI_OTHER || d->method >= CRI_METHODS)
            return -EPROTO;
        session_set_class(s, d->method, d->class);
        return 0;
    case SESSION_DRAINS:
        return session_drain(s) ? 0 : -EPROTO;
    }
    return -EPROTO;
}

size_t session_calls(const struct session *s)
{
    return HASH_COUNT(s->streams);
}

bool session_needs_runtime(const struct session *s)
{
    for (const struct stream *st = s->streams; st; st = st->hh.next) {
        if (st->phase != STREAM_COLLECT && st->phase != STREAM_STOPPING && !is_endless(st))
            return true;
    }
    return false;
}

size_t session_waiting(const struct session *s, enum session_end to)
{
    return buffer_len(&s->sides[session_other(to)].lane.inject);
}

size_t session_held(const struct session *s)
{
    return (size_t)s->windows.flow.pending + s->request_bytes + session_waiting(s, SESSION_CLIENT) +
           session_waiting(s, SESSION_RUNTIME);
}

bool session_is_within_block(const struct session *s, enum session_end from)
{
    return s->sides[from].lane.in_block;
}

const char *session_error(const struct session *s)
{
    return s->error_text;
}
