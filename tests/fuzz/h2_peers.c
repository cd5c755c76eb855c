#include "tests/fuzz/h2_peers_state.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/session_probe.h"

void peer_put(struct buffer *to, const void *bytes, size_t len)
{
    if (buffer_put(to, bytes, len) < 0)
        abort();
}

struct peer_stream *peers_stream(struct peers *p, uint32_t id)
{
    for (size_t i = 0; i < p->streams_len; i++) {
        if (p->streams[i].id == id)
            return &p->streams[i];
    }
    return NULL;
}

bool peers_over(const struct peers *p, const struct peer_stream *st)
{
    return st->runtime_reset || st->response_ended || st->id > p->goaway_last;
}

/* ---- to the end ---- */

static void send_bodies(struct peers *p)
{
    for (size_t i = 0; i < p->streams_len; i++) {
        struct peer_stream *st = &p->streams[i];

        if (st->answered && peer_may_send(st))
            peers_send_reset(p, SESSION_CLIENT, st, FRAME_CANCEL);
        while (peer_may_send(st) && (peers_room(p, st) > 0 || st->sent == buffer_len(&st->body)))
            peers_send_body(p, st, PEER_BODY_BYTES_MAX,
                            buffer_len(&st->body) - st->sent <= (size_t)peers_room(p, st) ||
                                st->sent == buffer_len(&st->body),
                            0);
    }
}

static void grant_windows(struct peers *p)
{
    if (p->runtime_window < PEER_WINDOW_INITIAL)
        peers_window(p, SESSION_RUNTIME, PEERS_STREAMS_MAX, 10 * PEER_WINDOW_INITIAL);
    for (size_t i = 0; i < p->streams_len; i++) {
        if (p->streams[i].granted + p->runtime_initial < PEER_WINDOW_INITIAL)
            peers_window(p, SESSION_RUNTIME, i, 10 * PEER_WINDOW_INITIAL);
    }
}

static void answer_all(struct peers *p)
{
    for (size_t i = 0; i < p->streams_len; i++) {
        struct peer_stream *st = peers_answerable(p, i);

        if (st && st->request_ended)
            peers_send_answer_end(p, st, 0);
    }
}

static void settle_streams(struct peers *p)
{
    const struct run_decision forward = {.verdict = RUN_FORWARD};
    size_t before, after;

    p->decision = forward;
    p->ends[SESSION_CLIENT].cut = p->ends[SESSION_RUNTIME].cut = 0;
    do {
        before = buffer_len(&p->run.in[0]) + buffer_len(&p->run.in[1]);
        peers_begin(p, SESSION_CLIENT);
        peers_begin(p, SESSION_RUNTIME);
        peers_send_rest(p, SESSION_CLIENT);
        peers_send_rest(p, SESSION_RUNTIME);
        while (run_decide(&p->run, 0, &forward))
            ;
        peers_read(p, SESSION_CLIENT, SIZE_MAX);
        send_bodies(p);
        peers_read(p, SESSION_RUNTIME, SIZE_MAX);
        grant_windows(p);
        answer_all(p);
        after = buffer_len(&p->run.in[0]) + buffer_len(&p->run.in[1]);
    } while (after != before);
}

static void check_stream(const struct peers *p, const struct peer_stream *st)
{
    bool gone = st->reset || st->id > p->goaway_last;

    FUZZ_CHECK(st->seen, "stream %u never came", st->id);
    FUZZ_CHECK(gone || st->answered || st->closed, "stream %u: no answer", st->id);
    FUZZ_CHECK(gone || !st->refused || st->cancelled || peers_over(p, st),
               "stream %u: refused, but the runtime does not know", st->id);
    if (gone || st->cancelled || peers_over(p, st) || st->trailers)
        return;
    FUZZ_CHECK(st->request_ended, "stream %u: the request never ended", st->id);
}

/* What the runtime has of a request that ended, it has whole. */
static void check_received(const struct peer_stream *st)
{
    size_t whole = buffer_len(&st->rewritten) + st->sent - st->replaced;

    FUZZ_CHECK(!st->request_ended || st->trailers || st->received == whole,
               "stream %u: %zu of %zu bytes", st->id, st->received, whole);
}

/* All that was withheld, added or credited is paid back in the end. */
static void check_windows(struct peers *p)
{
    int64_t surplus = p->client_window - p->runtime_window;

    FUZZ_CHECK(surplus >= 0, "the client's window lost %lld bytes", (long long)-surplus);
    peers_window(p, SESSION_RUNTIME, PEERS_STREAMS_MAX, (uint32_t)surplus + 1);
    peers_read(p, SESSION_CLIENT, SIZE_MAX);
    FUZZ_CHECK(p->client_window == p->runtime_window, "windows of %lld and %lld bytes",
               (long long)p->client_window, (long long)p->runtime_window);
}

void peers_settle(struct peers *p)
{
    size_t not_sure = 0; /* the runtime looks no more */

    if (p->wild)
        return;
    settle_streams(p);
    for (size_t i = 0; i < p->streams_len; i++) {
        const struct peer_stream *st = &p->streams[i];

        check_stream(p, st);
        check_received(st);
        not_sure += st->id > p->goaway_last;
    }
    if (p->goaway_last == INT32_MAX) /* else bytes may wait for a runtime that looks no more */
        check_windows(p);
    for (int end = SESSION_CLIENT; end <= SESSION_RUNTIME; end++) {
        FUZZ_CHECK(buffer_len(&p->ends[end].verbatim) == 0, "frames to end %d are lost", end);
        FUZZ_CHECK(p->ends[end].unacked_len == 0, "ACKs to end %d are lost", end);
    }
    FUZZ_CHECK(p->drains == 0 || p->goaway_last < INT32_MAX, "%u GOAWAYs are lost", p->drains);
    FUZZ_CHECK(session_calls(p->run.session) <= not_sure, "%zu calls are left",
               session_calls(p->run.session));
}

/* ---- life ---- */

static struct run_decision next_decision(void *user)
{
    return ((struct peers *)user)->decision;
}

static void check_message(const struct peer_stream *st, const struct session_call *call)
{
    uint8_t *pattern = malloc(st->message_bytes + 1);

    if (!pattern)
        abort();
    peer_pattern(pattern, st->message_bytes, st->id);
    FUZZ_CHECK(
        call->message_bytes == st->message_bytes &&
            (call->message_bytes == 0 || memcmp(call->message, pattern, st->message_bytes) == 0),
        "stream %u: another message is shown", st->id);
    free(pattern);
}

static void on_decided(void *user, const struct session_call *call, uint32_t stream_id,
                       const struct run_decision *decision)
{
    struct peers *p = user;
    struct peer_stream *st = peers_stream(p, stream_id);
    const uint8_t *message = decision->instead ? run_message() : call->message;
    size_t message_bytes = decision->instead ? decision->message_bytes : call->message_bytes;
    size_t bytes = decision->fragment_bytes + message_bytes;
    uint8_t head[PEER_MESSAGE_HEAD_BYTES] = {0, (uint8_t)(bytes >> 24), (uint8_t)(bytes >> 16),
                                             (uint8_t)(bytes >> 8), (uint8_t)bytes};

    if (p->wild || !st)
        return;
    check_message(st, call);
    if (decision->verdict == RUN_REFUSE) {
        st->refused = true;
        st->code = decision->code;
    } else if (decision->fragment_bytes > 0 || decision->instead) {
        peer_put(&st->rewritten, head, sizeof head);
        peer_put(&st->rewritten, run_fragment(), decision->fragment_bytes);
        if (message_bytes > 0)
            peer_put(&st->rewritten, message, message_bytes);
        st->replaced = PEER_MESSAGE_HEAD_BYTES + frame_read_u32(buffer_data(&st->body) + 1);
    }
}

static const struct run_hooks HOOKS = {next_decision, on_decided};

struct peers *peers_new(void)
{
    struct peers *p = calloc(1, sizeof *p);

    if (!p)
        abort();
    session_probe_reset();
    run_init(&p->run, &HOOKS, p);
    for (int end = SESSION_CLIENT; end <= SESSION_RUNTIME; end++) {
        if (nghttp2_hd_deflate_new(&p->ends[end].deflater, PEER_TABLE_INITIAL) != 0 ||
            nghttp2_hd_inflate_new(&p->ends[end].inflater) != 0)
            abort();
    }
    p->client_window = p->client_initial = PEER_WINDOW_INITIAL;
    p->client_frame = PEER_FRAME_PAYLOAD_MAX;
    p->runtime_window = p->runtime_initial = PEER_WINDOW_INITIAL;
    p->goaway_last = p->goaway_read = INT32_MAX;
    p->decision.verdict = RUN_FORWARD;
    return p;
}

void peers_free(struct peers *p)
{
    for (size_t i = 0; i < p->streams_len; i++) {
        buffer_fini(&p->streams[i].body);
        buffer_fini(&p->streams[i].response);
        buffer_fini(&p->streams[i].rewritten);
    }
    for (int end = SESSION_CLIENT; end <= SESSION_RUNTIME; end++) {
        nghttp2_hd_deflate_del(p->ends[end].deflater);
        nghttp2_hd_inflate_del(p->ends[end].inflater);
        buffer_fini(&p->ends[end].rest);
        buffer_fini(&p->ends[end].block);
        buffer_fini(&p->ends[end].verbatim);
    }
    run_fini(&p->run);
    free(p);
}

struct run *peers_run(struct peers *p)
{
    return &p->run;
}

void peers_set_decision(struct peers *p, const struct run_decision *decision)
{
    p->decision = *decision;
}
