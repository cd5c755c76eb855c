#include "tests/fuzz/session_run.h"

#include <stdarg.h>
#include <string.h>

#include <zlib.h>

#include "cri-proto/methods.h"
#include "shim/relay/frame.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/session_probe.h"

/* What a lane may keep back of what has come: a frame's head, or a WINDOW_UPDATE, not yet whole. */
#define KEPT_BYTES_MAX (FRAME_HEAD_BYTES + 8)
#define GOAWAY_BYTES (FRAME_HEAD_BYTES + 8)
/* What is longer is cut into as many pieces and no more, to be fast. */
#define CUT_LEN 1024
#define CUT_MAX 64

enum event_kind { EVENT_FEED, EVENT_DECIDE, EVENT_DRAIN, EVENT_CLASS };

struct event {
    enum event_kind kind;
    enum session_end from; /* of feeding: bytes at `offset` of run.in[from] */
    size_t offset;
    size_t len;
    size_t call; /* of deciding: index in run.calls */
    struct run_decision decision;
    enum cri_method method; /* of another class */
    enum cri_method_class class;
};

#define FRAGMENT_BYTE 0x5a
#define MESSAGE_BYTE 0xa5

static void put(struct buffer *to, const void *bytes, size_t len)
{
    if (buffer_put(to, bytes, len) < 0)
        abort();
}

__attribute__((format(printf, 2, 3))) static void note(struct run *run, const char *format, ...)
{
    char line[160];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    put(&run->trace, line, (size_t)len);
    if (getenv("FUZZ_TRACE"))
        fputs(line, stderr);
}

static unsigned long sum_of(const uint8_t *bytes, size_t len)
{
    return crc32(0, bytes, (uInt)len);
}

/* ---- frames ---- */

static void walk_head(struct run_walk *walk, bool checked)
{
    struct frame_head h;
    bool continues;

    frame_head_read(walk->head, &h);
    if (getenv("FUZZ_TRACE"))
        fprintf(stderr, "%s type %u flags %02x stream %u, %u bytes\n", walk->name, h.type, h.flags,
                h.stream_id, h.length);
    continues = h.type == FRAME_CONTINUATION;
    FUZZ_CHECK(!checked || continues == walk->in_block, "a frame of type %u in a header block",
               h.type);
    FUZZ_CHECK(!checked || !continues || h.stream_id == walk->block_stream, "stream %u",
               h.stream_id);
    if (h.type == FRAME_HEADERS || continues) {
        walk->in_block = !(h.flags & FRAME_FLAG_END_HEADERS);
        walk->block_stream = h.stream_id;
    }
    walk->left = h.length;
    walk->head_len = 0;
}

static void walk_bytes(struct run_walk *walk, const uint8_t *bytes, size_t len, bool checked)
{
    while (len > 0) {
        size_t n;

        if (walk->preface > 0 || walk->left > 0) {
            size_t rest = walk->preface > 0 ? walk->preface : walk->left;

            n = rest < len ? rest : len;
            if (walk->preface > 0)
                walk->preface -= n;
            else
                walk->left -= (uint32_t)n;
        } else {
            n = sizeof walk->head - walk->head_len;
            n = n < len ? n : len;
            memcpy(walk->head + walk->head_len, bytes, n);
            walk->head_len += n;
            if (walk->head_len == sizeof walk->head)
                walk_head(walk, checked);
        }
        bytes += n;
        len -= n;
    }
}

static bool walk_is_whole(const struct run_walk *walk)
{
    return walk->left == 0 && walk->head_len == 0 && !walk->in_block;
}

/* ---- the session's owner ---- */

static void on_write(void *user, enum session_end to, const struct iovec *pieces, int n)
{
    struct run *run = user;

    FUZZ_CHECK(n > 0, "%d pieces", n);
    for (int i = 0; i < n; i++) {
        put(&run->out[to], pieces[i].iov_base, pieces[i].iov_len);
        walk_bytes(&run->out_walk[to], pieces[i].iov_base, pieces[i].iov_len, true);
    }
}

static struct run_call *call_of(struct run *run, const struct session_call *call)
{
    size_t index = (size_t)(uintptr_t)call->user - 1;

    FUZZ_CHECK(index < run->calls_len && run->calls[index].call == call, "a call nobody knows");
    return &run->calls[index];
}

static void carry_out(struct run *run, struct run_call *rc, const struct run_decision *decision)
{
    struct session_call *call = rc->call;

    if (decision->verdict == RUN_LATER)
        return;
    rc->waits = false;
    if (run->hooks && !run->like)
        run->hooks->decided(run->user, call, rc->stream_id, decision);
    if (decision->verdict == RUN_REFUSE) {
        rc->call = NULL;
        session_refuse(run->session, call, decision->code, "refused by the fuzzer: \t%\xff");
        return;
    }
    if (decision->instead)
        FUZZ_CHECK(session_forward_instead(run->session, call, run_fragment(),
                                           decision->fragment_bytes, run_message(),
                                           decision->message_bytes) == 0,
                   "forward instead");
    else
        FUZZ_CHECK(session_forward(run->session, call, run_fragment(), decision->fragment_bytes) ==
                       0,
                   "forward");
}

static void on_request(void *user, struct session *session, struct session_call *call)
{
    struct run *run = user;
    size_t index = run->calls_len;
    struct run_call *rc;

    FUZZ_CHECK(session == run->session, "another session");
    FUZZ_CHECK(!call->user, "a request shown twice");
    FUZZ_CHECK(call->message_bytes == 0 || call->message, "no message");
    run->calls = realloc(run->calls, (index + 1) * sizeof *run->calls);
    if (!run->calls)
        abort();
    rc = &run->calls[run->calls_len++];
    *rc = (struct run_call){
        .call = call,
        .stream_id = session_probe_stream_id(call),
        .intercepted = session_probe_waits(call),
    };
    call->user = (void *)(uintptr_t)run->calls_len;
    note(run, "request %u %d %llu %zu %08lx\n", rc->stream_id, call->method,
         (unsigned long long)call->timeout_ms, call->message_bytes,
         sum_of(call->message, call->message_bytes));
    if (!rc->intercepted)
        return;
    rc->waits = true;
    if (run->like)
        FUZZ_CHECK(index < run->like->calls_len, "a call more in other cuts");
    rc->at_once = run->like ? run->like->calls[index].at_once : run->hooks->decide(run->user);
    carry_out(run, rc, &rc->at_once);
}

static void on_answered(void *user, struct session_call *call, int status, const uint8_t *message,
                        size_t message_bytes)
{
    struct run *run = user;
    struct run_call *rc = call_of(run, call);

    FUZZ_CHECK(!rc->answered, "answered twice");
    FUZZ_CHECK(status >= 0 && (message || message_bytes == 0), "status %d", status);
    rc->answered = true;
    note(run, "answered %u %d %zu %08lx\n", rc->stream_id, status, message_bytes,
         sum_of(message, message_bytes));
}

static void on_ended(void *user, struct session_call *call)
{
    struct run *run = user;
    struct run_call *rc = call_of(run, call);

    rc->call = NULL;
    rc->waits = false;
    note(run, "ended %u\n", rc->stream_id);
}

static void on_failed(void *user)
{
    FUZZ_CHECK(!user, "the session failed");
}

static const struct session_ops OPS = {.write = on_write, .failed = on_failed};
static const struct session_owner_ops OWNER_OPS = {
    .request = on_request, .answered = on_answered, .ended = on_ended};

/* ---- the public face ---- */

const uint8_t *run_fragment(void)
{
    static uint8_t fragment[RUN_FRAGMENT_BYTES_MAX];

    if (fragment[0] != FRAGMENT_BYTE)
        memset(fragment, FRAGMENT_BYTE, sizeof fragment);
    return fragment;
}

const uint8_t *run_message(void)
{
    static uint8_t message[RUN_MESSAGE_BYTES_MAX];

    if (message[0] != MESSAGE_BYTE)
        memset(message, MESSAGE_BYTE, sizeof message);
    return message;
}

void run_init(struct run *run, const struct run_hooks *hooks, void *user)
{
    *run = (struct run){.hooks = hooks, .user = user};
    run->in_walk[SESSION_CLIENT] = (struct run_walk){"client  >", .preface = FRAME_PREFACE_BYTES};
    run->out_walk[SESSION_RUNTIME] =
        (struct run_walk){"        > runtime", .preface = FRAME_PREFACE_BYTES};
    run->in_walk[SESSION_RUNTIME].name = "        < runtime";
    run->out_walk[SESSION_CLIENT].name = "client  <";
    run->session = session_new(&OPS, run, (struct session_owner){&OWNER_OPS, run});
    if (!run->session)
        abort();
}

void run_fini(struct run *run)
{
    session_free(run->session);
    for (int end = SESSION_CLIENT; end <= SESSION_RUNTIME; end++) {
        buffer_fini(&run->out[end]);
        buffer_fini(&run->in[end]);
    }
    buffer_fini(&run->trace);
    buffer_fini(&run->events);
    free(run->calls);
}

void run_feed(struct run *run, enum session_end from, const uint8_t *bytes, size_t len)
{
    struct event event = {.from = from, .offset = buffer_len(&run->in[from]), .len = len};

    if (run->error || len == 0)
        return;
    put(&run->events, &event, sizeof event);
    put(&run->in[from], bytes, len);
    walk_bytes(&run->in_walk[from], bytes, len, false);
    run->error = session_probe_feed(run->session, from, bytes, len);
    FUZZ_CHECK(run->error <= 0, "%d", run->error);
    FUZZ_CHECK(run->error == 0 || *session_error(run->session), "no words");
    if (!run->like)
        session_probe_check(run->session);
}

static void decide(struct run *run, size_t call, const struct run_decision *decision)
{
    struct event event = {.kind = EVENT_DECIDE, .call = call, .decision = *decision};

    put(&run->events, &event, sizeof event);
    carry_out(run, &run->calls[call], decision);
    session_probe_check(run->session);
}

bool run_decide(struct run *run, size_t index, const struct run_decision *decision)
{
    size_t waiting = 0;

    for (size_t i = 0; i < run->calls_len; i++)
        waiting += run->calls[i].waits;
    if (waiting == 0 || run->error)
        return false;
    index %= waiting;
    for (size_t i = 0; i < run->calls_len; i++) {
        if (run->calls[i].waits && index-- == 0) {
            decide(run, i, decision);
            return true;
        }
    }
    return false;
}

bool run_drain(struct run *run)
{
    struct event event = {.kind = EVENT_DRAIN};

    if (run->error)
        return false;
    put(&run->events, &event, sizeof event);
    run->drained = true;
    return session_drain(run->session);
}

void run_set_class(struct run *run, enum cri_method method, enum cri_method_class class)
{
    struct event event = {.kind = EVENT_CLASS, .method = method, .class = class};

    if (run->error)
        return;
    put(&run->events, &event, sizeof event);
    session_probe_set_class(run->session, method, class);
}

/* ---- oracles ---- */

/* Where no call is intercepted, what comes out is what went in, but for a GOAWAY at the end. */
static void check_verbatim(const struct run *run)
{
    for (int to = SESSION_CLIENT; to <= SESSION_RUNTIME; to++) {
        const struct buffer *in = &run->in[to == SESSION_CLIENT ? SESSION_RUNTIME : SESSION_CLIENT];
        size_t in_len = buffer_len(in);
        size_t len = buffer_len(&run->out[to]);

        if (run->error && to == SESSION_CLIENT && len >= GOAWAY_BYTES &&
            buffer_data(&run->out[to])[len - GOAWAY_BYTES + 3] == FRAME_GOAWAY &&
            (len > in_len || memcmp(buffer_data(in), buffer_data(&run->out[to]), len) != 0))
            len -= GOAWAY_BYTES;
        FUZZ_CHECK(len <= in_len, "to end %d: %zu of %zu bytes", to, len, in_len);
        FUZZ_CHECK(len == 0 || memcmp(buffer_data(in), buffer_data(&run->out[to]), len) == 0,
                   "to end %d: other bytes", to);
        FUZZ_CHECK(run->error || in_len - len < KEPT_BYTES_MAX, "to end %d: %zu of %zu bytes", to,
                   len, in_len);
    }
}

/* Between the frames of an end nothing of ours is ever half. */
static void check_whole(const struct run *run)
{
    for (int to = SESSION_CLIENT; to <= SESSION_RUNTIME; to++) {
        int from = to == SESSION_CLIENT ? SESSION_RUNTIME : SESSION_CLIENT;

        FUZZ_CHECK(run->error || !walk_is_whole(&run->in_walk[from]) ||
                       walk_is_whole(&run->out_walk[to]),
                   "to end %d: a frame is half written", to);
    }
}

static void check_calls(const struct run *run)
{
    for (size_t i = 0; i < run->calls_len; i++)
        FUZZ_CHECK(!run->calls[i].call, "call on stream %u never ended", run->calls[i].stream_id);
}

static void feed_again(struct run *again, const struct run *first, const struct event *e,
                       unsigned *seed)
{
    size_t most = e->len < CUT_LEN ? CUT_MAX : e->len / (CUT_LEN / CUT_MAX);

    for (size_t at = 0; at < e->len && !again->error;) {
        size_t cut = 1;

        if (*seed != 0 || e->len >= CUT_LEN)
            cut += ((*seed = *seed * 1103515245u + 12345u) >> 16) % most;
        cut = cut < e->len - at ? cut : e->len - at;
        run_feed(again, e->from, buffer_data(&first->in[e->from]) + e->offset + at, cut);
        at += cut;
    }
}

static void read_again(struct run *again, const struct run *first, unsigned seed)
{
    const struct event *events = (const struct event *)(const void *)buffer_data(&first->events);
    size_t n = buffer_len(&first->events) / sizeof *events;

    for (size_t i = 0; i < n && !again->error; i++) {
        const struct event *e = &events[i];

        switch (e->kind) {
        case EVENT_FEED:
            feed_again(again, first, e, &seed);
            break;
        case EVENT_DECIDE:
            FUZZ_CHECK(e->call < again->calls_len && again->calls[e->call].waits, "call %zu",
                       e->call);
            decide(again, e->call, &e->decision);
            break;
        case EVENT_DRAIN:
            run_drain(again);
            break;
        case EVENT_CLASS:
            run_set_class(again, e->method, e->class);
            break;
        }
        session_probe_check(again->session);
    }
}

static void check_same(const struct run *a, const struct run *b)
{
    FUZZ_CHECK(a->error == b->error, "error %d, %d in other cuts", a->error, b->error);
    FUZZ_CHECK(
        buffer_len(&a->trace) == buffer_len(&b->trace) &&
            (buffer_len(&a->trace) == 0 ||
             memcmp(buffer_data(&a->trace), buffer_data(&b->trace), buffer_len(&a->trace)) == 0),
        "other callbacks in other cuts:\n%.*s---\n%.*s", (int)buffer_len(&a->trace),
        (const char *)buffer_data(&a->trace), (int)buffer_len(&b->trace),
        (const char *)buffer_data(&b->trace));
    for (int to = SESSION_CLIENT; to <= SESSION_RUNTIME; to++) {
        size_t a_len = buffer_len(&a->out[to]), b_len = buffer_len(&b->out[to]);
        size_t len = a_len < b_len ? a_len : b_len;

        FUZZ_CHECK(a->error || a_len == b_len, "to end %d: %zu, %zu bytes in other cuts", to, a_len,
                   b_len);
        FUZZ_CHECK(len == 0 || memcmp(buffer_data(&a->out[to]), buffer_data(&b->out[to]), len) == 0,
                   "to end %d: other bytes in other cuts", to);
    }
}

void run_finish(struct run *run, unsigned seed)
{
    struct run again;

    check_whole(run);
    if (!session_probe_intercepted() && !run->drained)
        check_verbatim(run);
    session_free(run->session);
    run->session = NULL;
    check_calls(run);

    session_probe_reset();
    run_init(&again, run->hooks, run->user);
    again.like = run;
    read_again(&again, run, seed);
    session_free(again.session);
    again.session = NULL;
    check_calls(&again);
    check_same(run, &again);
    run_fini(&again);
}
