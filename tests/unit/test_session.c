/*
 * shim/relay/session.c: scripted exchanges, each played whole and cut in several ways; what comes
 * out of a cut one must equal what comes out of the whole one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "alloc_fail.h"
#include "h2_script.h"
#include "shim/relay/limits.h"
#include "shim/relay/session.h"

#define CALLS_MAX 128
#define PLAYS 8
#define CLIENT SESSION_CLIENT
#define RUNTIME SESSION_RUNTIME

enum plan { PLAN_HOLD, PLAN_FORWARD, PLAN_FRAGMENT, PLAN_REFUSE };

struct world {
    struct session *session;
    struct h2_writer writers[2];
    struct h2_reader readers[2]; /* of what is written to an end: that end's decoder */
    struct buffer fed[2];
    struct buffer to[2];
    size_t read_to[2];
    struct buffer log;
    size_t log_read;
    struct buffer out; /* what the script feeds next */
    enum plan plan;
    struct session_call *calls[CALLS_MAX]; /* told and undecided or passing, in order */
    size_t calls_len;
    size_t live; /* told and not ended or refused */
    unsigned writes;
    int error;
    size_t cut; /* bytes of each feed; 0: all at once */
    struct h2_random random;
    bool random_cuts;
    bool feeding;
    char decided; /* its address marks a call */
    bool quiet;   /* memory is failing: no transcript */
    bool failed;  /* has been told so outside a feed */
};

static const char FRAGMENT[] = "<fragment>";

/* ---- the owner ---- */

static void note(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct world *w, const char *format, ...)
{
    char line[256];
    va_list args;

    if (w->quiet)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    h2_put(&w->log, line, strlen(line));
}

static void on_write(void *user, enum session_end to, const struct iovec *pieces, int n)
{
    struct world *w = user;

    assert_true(n > 0 && n <= 32);
    w->writes++;
    for (int i = 0; i < n && !w->quiet; i++)
        h2_put(&w->to[to], pieces[i].iov_base, pieces[i].iov_len);
}

static void forget(struct world *w, struct session_call *call)
{
    for (size_t i = 0; i < w->calls_len; i++) {
        if (w->calls[i] != call)
            continue;
        w->calls_len--;
        memmove(w->calls + i, w->calls + i + 1, (w->calls_len - i) * sizeof *w->calls);
        w->calls[w->calls_len] = NULL;
        w->live--;
        return;
    }
    fail_msg("a call ended that was not told, or ended twice");
}

/* A script without memory may lack the call it means. */
static bool is_undecided(const struct world *w, const struct session_call *call)
{
    return call && call->user == w && cri_method_class(call->method) == CRI_CLASS_INTERCEPTED;
}

static void forward(struct world *w, struct session_call *call, const char *fragment)
{
    int r;

    if (w->quiet && !is_undecided(w, call))
        return;
    call->user = &w->decided;
    alloc_fail_enable(true);
    r = session_forward(w->session, call, fragment, fragment ? strlen(fragment) : 0);
    alloc_fail_enable(w->feeding);
    if (r == 0)
        return;
    assert_int_equal(r, -ENOMEM);
    assert_true(w->quiet);
    forget(w, call);
    session_refuse(w->session, call, 8, "no memory");
}

static void forward_instead(struct world *w, struct session_call *call, const char *fragment,
                            const char *bytes, size_t len)
{
    int r;

    if (w->quiet && !is_undecided(w, call))
        return;
    call->user = &w->decided;
    alloc_fail_enable(true);
    r = session_forward_instead(w->session, call, fragment, fragment ? strlen(fragment) : 0, bytes,
                                len);
    alloc_fail_enable(w->feeding);
    if (r == 0)
        return;
    assert_int_equal(r, -ENOMEM);
    assert_true(w->quiet);
    forget(w, call);
    session_refuse(w->session, call, 8, "no memory");
}

static void refuse(struct world *w, struct session_call *call, const char *message)
{
    if (w->quiet && !is_undecided(w, call))
        return;
    forget(w, call);
    alloc_fail_enable(true);
    session_refuse(w->session, call, 14, message);
    alloc_fail_enable(w->feeding);
}

static void on_request(void *user, struct session_call *call)
{
    struct world *w = user;
    unsigned shown = call->message_bytes < 40 ? (unsigned)call->message_bytes : 40;

    assert_true(w->calls_len < CALLS_MAX);
    assert_null(call->user);
    call->user = w;
    w->calls[w->calls_len++] = call;
    w->live++;
    note(w, "request %s %zu %.*s\n", cri_method_name(call->method), call->message_bytes, shown,
         (const char *)call->message);
    if (cri_method_class(call->method) != CRI_CLASS_INTERCEPTED)
        return;
    switch (w->plan) {
    case PLAN_HOLD:
        break;
    case PLAN_FORWARD:
        forward(w, call, NULL);
        break;
    case PLAN_FRAGMENT:
        forward(w, call, FRAGMENT);
        break;
    case PLAN_REFUSE:
        refuse(w, call, "no");
        break;
    }
}

static void on_answered(void *user, struct session_call *call, int status, const uint8_t *message,
                        size_t bytes)
{
    struct world *w = user;

    assert_true(call->user == w || call->user == &w->decided);
    if (message)
        note(w, "answered %s %d %.*s\n", cri_method_name(call->method), status,
             (int)(bytes < 40 ? bytes : 40), (const char *)message);
    else
        note(w, "answered %s %d -\n", cri_method_name(call->method), status);
}

static void on_ended(void *user, struct session_call *call)
{
    struct world *w = user;

    note(w, "ended %s\n", cri_method_name(call->method));
    forget(w, call);
}

static void on_failed(void *user)
{
    struct world *w = user;

    assert_false(w->failed || w->feeding);
    assert_non_null(session_error(w->session));
    w->failed = true;
}

static const struct session_ops OPS = {on_write, on_request, on_answered, on_ended, on_failed};

/* ---- the world ---- */

static size_t piece_of(struct world *w, size_t len)
{
    size_t n = w->random_cuts ? 1 + h2_random(&w->random, 40) : w->cut;

    return n == 0 || n > len ? len : n;
}

static int feed_bytes(struct world *w, enum session_end from, const uint8_t *bytes, size_t len)
{
    if (!w->quiet)
        h2_put(&w->fed[from], bytes, len);
    while (len > 0 && w->error == 0) {
        size_t n = piece_of(w, len);
        uint8_t *copy = malloc(n); /* exact, so that a sanitizer sees a read behind it */

        if (!copy)
            return w->error;
        memcpy(copy, bytes, n);
        w->feeding = true;
        alloc_fail_enable(true);
        w->error = session_feed(w->session, from, copy, n);
        alloc_fail_enable(false);
        w->feeding = false;
        free(copy);
        bytes += n;
        len -= n;
    }
    return w->error;
}

/* Feeds what the script has put into `out`. */
static void feed(struct world *w, enum session_end from)
{
    feed_bytes(w, from, buffer_data(&w->out), buffer_len(&w->out));
    buffer_fini(&w->out);
    if (!w->quiet)
        assert_int_equal(w->error, 0);
}

static void feed_bad(struct world *w, enum session_end from, const char *text)
{
    assert_int_equal(feed_bytes(w, from, buffer_data(&w->out), buffer_len(&w->out)), -EPROTO);
    buffer_fini(&w->out);
    assert_string_equal(session_error(w->session), text);
    assert_int_equal(session_feed(w->session, from, (const uint8_t *)"x", 1), -EPROTO);
}

/* What an end has been sent since the last look. */
static void saw(struct world *w, enum session_end end, const char *expected)
{
    struct buffer text = {0};

    if (w->quiet)
        return;
    h2_transcript(&w->readers[end], buffer_data(&w->to[end]) + w->read_to[end],
                  buffer_len(&w->to[end]) - w->read_to[end], &text);
    w->read_to[end] = buffer_len(&w->to[end]);
    assert_string_equal((const char *)buffer_data(&text), expected);
    buffer_fini(&text);
}

static void told(struct world *w, const char *expected)
{
    struct buffer text = {0};

    if (w->quiet)
        return;
    h2_put(&text, buffer_data(&w->log) + w->log_read, buffer_len(&w->log) - w->log_read);
    h2_put(&text, "", 1);
    w->log_read = buffer_len(&w->log);
    assert_string_equal((const char *)buffer_data(&text), expected);
    buffer_fini(&text);
}

static void move_on(struct world *w)
{
    struct buffer text = {0};

    for (int end = CLIENT; end <= RUNTIME && !w->quiet; end++) {
        h2_transcript(&w->readers[end], buffer_data(&w->to[end]) + w->read_to[end],
                      buffer_len(&w->to[end]) - w->read_to[end], &text);
        w->read_to[end] = buffer_len(&w->to[end]);
    }
    w->log_read = buffer_len(&w->log);
    buffer_fini(&text);
}

static void world_init(struct world *w)
{
    alloc_fail_enable(true);
    w->session = session_new(&OPS, w);
    alloc_fail_enable(false);
    for (int end = CLIENT; end <= RUNTIME; end++) {
        h2_writer_init(&w->writers[end]);
        h2_reader_init(&w->readers[end]);
    }
}

static void world_fini(struct world *w)
{
    session_free(w->session);
    assert_int_equal(w->live, 0);
    for (int end = CLIENT; end <= RUNTIME; end++) {
        h2_writer_fini(&w->writers[end]);
        h2_reader_fini(&w->readers[end]);
        buffer_fini(&w->fed[end]);
        buffer_fini(&w->to[end]);
    }
    buffer_fini(&w->log);
    buffer_fini(&w->out);
}

/* Preface and SETTINGS both ways, acknowledged. */
static void greet(struct world *w)
{
    h2_put(&w->out, H2_PREFACE, strlen(H2_PREFACE));
    h2_settings(&w->out, -1, 0);
    feed(w, CLIENT);
    h2_settings(&w->out, -1, 0);
    h2_settings_ack(&w->out);
    feed(w, RUNTIME);
    h2_settings_ack(&w->out);
    feed(w, CLIENT);
    w->read_to[RUNTIME] = strlen(H2_PREFACE);
    saw(w, RUNTIME, "SETTINGS\nSETTINGS ACK\n");
    saw(w, CLIENT, "SETTINGS\nSETTINGS ACK\n");
}

typedef void scenario(struct world *w);

static void same(const struct buffer *a, const struct buffer *b)
{
    assert_int_equal(buffer_len(a), buffer_len(b));
    if (buffer_len(a) > 0)
        assert_memory_equal(buffer_data(a), buffer_data(b), buffer_len(a));
}

static void play(scenario *script, size_t n)
{
    static const size_t cuts[PLAYS] = {0, 1, 2, 3, 7, 0, 0, 0};
    struct world first = {0};

    world_init(&first);
    greet(&first);
    script(&first);
    for (size_t i = 1; i < n; i++) {
        struct world w = {.cut = cuts[i]};

        w.random_cuts = cuts[i] == 0;
        w.random.state = 1000 + i;
        world_init(&w);
        greet(&w);
        script(&w);
        same(&w.to[CLIENT], &first.to[CLIENT]);
        if (!w.error) /* else how much passed before depends on the cuts */
            same(&w.to[RUNTIME], &first.to[RUNTIME]);
        same(&w.log, &first.log);
        world_fini(&w);
    }
    world_fini(&first);
}

#define PLAY(name, n)                                                                              \
    static scenario name##_script;                                                                 \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        play(name##_script, n);                                                                    \
    }                                                                                              \
    static void name##_script(struct world *w)

#define SCENARIO(name) PLAY(name, PLAYS)
/* Too large to be cut. */
#define ONCE(name) PLAY(name, 1)

/* ---- script words ---- */

static void calls_are(const struct world *w, size_t n)
{
    if (!w->quiet)
        assert_int_equal(session_calls(w->session), n);
}

static void request(struct world *w, uint32_t stream, const char *method)
{
    h2_request(&w->writers[CLIENT], &w->out, stream, method);
}

static void message(struct world *w, uint32_t stream, const char *text, int flags)
{
    struct buffer framed = {0};

    h2_message(&framed, 0, text, strlen(text));
    h2_data(&w->out, stream, buffer_data(&framed), buffer_len(&framed), flags, -1);
    buffer_fini(&framed);
}

static void data(struct world *w, uint32_t stream, const void *bytes, size_t len, int flags)
{
    h2_data(&w->out, stream, bytes, len, flags, -1);
}

/* A whole request in one feed. */
static void call(struct world *w, uint32_t stream, const char *method, const char *text)
{
    request(w, stream, method);
    message(w, stream, text, H2_END_STREAM);
    feed(w, CLIENT);
}

static void answer(struct world *w, uint32_t stream, const char *text)
{
    h2_answer(&w->writers[RUNTIME], &w->out, stream, text);
    feed(w, RUNTIME);
}

static void ack(struct world *w, enum session_end from)
{
    h2_settings_ack(&w->out);
    feed(w, from);
}

#define HEAD(id)                                                                                   \
    "HEADERS " #id " :method=POST :scheme=http "                                                   \
    ":path=/runtime.v1.RuntimeService/CreateContainer :authority=localhost "                       \
    "content-type=application/grpc te=trailers grpc-timeout=1500m\n"
#define ANSWER_HEAD(id) "HEADERS " #id " :status=200 content-type=application/grpc\n"
#define ANSWER_END(id) "HEADERS " #id " END grpc-status=0 grpc-message= x-note=kept\n"
#define REFUSAL(id, text)                                                                          \
    "HEADERS " #id " END :status=200 content-type=application/grpc grpc-status=14 "                \
    "grpc-message=" text "\n"
#define CREATE "CreateContainer"

/* ---- what is not looked at ---- */

static const char *const NAMES[] = {"Version", "ListContainers", "Status", "ExecSync"};

static void random_frame(struct world *w, enum session_end from, struct h2_random *r)
{
    static const uint8_t bytes[600];
    uint32_t stream = 1 + 2 * h2_random(r, 40);
    const char *const fields[] = {":path", NAMES[h2_random(r, 4)], "x-a", "one",
                                  "x-b",   NAMES[h2_random(r, 4)], NULL};
    int flags = (int)h2_random(r, 2) | (h2_random(r, 2) ? H2_PRIORITY : 0);
    int pad = h2_random(r, 2) ? (int)h2_random(r, 200) : -1;
    int type = (int)h2_random(r, 14);

    switch (type) {
    case NGHTTP2_DATA:
        h2_data(&w->out, stream, bytes, h2_random(r, 400), (int)h2_random(r, 2), pad);
        break;
    case NGHTTP2_HEADERS:
        h2_headers(&w->writers[from], &w->out, stream, flags, pad, h2_random(r, 12), fields);
        break;
    case NGHTTP2_SETTINGS: {
        uint8_t entry[12] = {0, 3, 0, 0, 0, 7, 0x99, 0x99, 1, 2, 3, 4};

        h2_frame(&w->out, type, 0, 0, entry, 6 * h2_random(r, 3));
        if (h2_random(r, 2))
            h2_settings_ack(&w->out);
        break;
    }
    case NGHTTP2_GOAWAY:
        h2_goaway(&w->out, 0x7fffffff, 0);
        break;
    case NGHTTP2_WINDOW_UPDATE:
        h2_window(&w->out, h2_random(r, 2) ? stream : 0, h2_random(r, 5000));
        break;
    case NGHTTP2_PUSH_PROMISE:
    case NGHTTP2_CONTINUATION:
        h2_frame(&w->out, 0x42, 0xff, 0x80000003, bytes, h2_random(r, 300));
        break;
    default: /* PRIORITY, RST_STREAM, PING and types nobody knows, of any length */
        h2_frame(&w->out, type, (int)h2_random(r, 256), stream | h2_random(r, 2) << 31, bytes,
                 h2_random(r, 30));
        break;
    }
}

static void other_traffic_passes_byte_for_byte(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 60; seed++) {
        struct h2_random r = {seed};
        struct world w = {.cut = seed % 12, .random_cuts = seed % 3 == 0, .random = {seed}};

        world_init(&w);
        greet(&w);
        for (int i = 0; i < 60; i++) {
            enum session_end from = h2_random(&r, 2) ? CLIENT : RUNTIME;

            for (uint32_t n = h2_random(&r, 6); n > 0; n--)
                random_frame(&w, from, &r);
            feed(&w, from);
            /* ACKs so that the SETTINGS in flight stay few */
            h2_settings_ack(&w.out);
            h2_settings_ack(&w.out);
            feed(&w, from == CLIENT ? RUNTIME : CLIENT);
        }
        same(&w.to[RUNTIME], &w.fed[CLIENT]);
        same(&w.to[CLIENT], &w.fed[RUNTIME]);
        assert_int_equal(session_calls(w.session), 0);
        world_fini(&w);
    }
}

static void one_read_is_one_write(void **state)
{
    struct world w = {0};
    unsigned writes;

    (void)state;
    world_init(&w);
    greet(&w);
    for (uint32_t id = 1; id < 100; id += 2) {
        request(&w, id, "Version");
        message(&w, id, "some bytes", H2_END_STREAM);
        h2_window(&w.out, 0, 1);
    }
    writes = w.writes;
    feed_bytes(&w, CLIENT, buffer_data(&w.out), buffer_len(&w.out) - 100);
    assert_int_equal(w.writes, writes + 1);
    /* a frame's head cut in two costs no write of its own */
    feed_bytes(&w, CLIENT, buffer_data(&w.out) + buffer_len(&w.out) - 100, 100);
    assert_int_equal(w.writes, writes + 2);
    same(&w.to[RUNTIME], &w.fed[CLIENT]);
    buffer_fini(&w.out);
    h2_window(&w.out, 0, 1);
    h2_frame(&w.out, NGHTTP2_PING, 0, 0, "12345678", 8);
    for (size_t at = 1; at < buffer_len(&w.out); at++) {
        writes = w.writes;
        feed_bytes(&w, RUNTIME, buffer_data(&w.out), at);
        feed_bytes(&w, RUNTIME, buffer_data(&w.out) + at, buffer_len(&w.out) - at);
        assert_true(w.writes <= writes + 2);
    }
    same(&w.to[CLIENT], &w.fed[RUNTIME]);
    world_fini(&w);
}

/* ---- intercepted ---- */

SCENARIO(a_message_is_withheld_until_it_is_whole)
{
    request(w, 1, CREATE);
    feed(w, CLIENT);
    saw(w, RUNTIME, HEAD(1));
    data(w, 1, "\0\0\0", 3, 0);
    feed(w, CLIENT);
    data(w, 1, "\0\5hel", 5, 0);
    feed(w, CLIENT);
    told(w, "");
    data(w, 1, "lo", 2, H2_END_STREAM);
    feed(w, CLIENT);
    told(w, "request CreateContainer 5 hello\n");
    saw(w, RUNTIME, "");
    assert_true(w->quiet || w->calls[0]->timeout_ms == 1500);
    forward(w, w->calls[0], NULL);
    saw(w, RUNTIME, "DATA 1 10 .....hello END\n");
    answer(w, 1, "id");
    saw(w, CLIENT, ANSWER_HEAD(1) "DATA 1 7 .....id\n" ANSWER_END(1));
    told(w, "answered CreateContainer 0 id\nended CreateContainer\n");
    calls_are(w, 0);
}

SCENARIO(a_fragment_comes_first)
{
    w->plan = PLAN_FRAGMENT;
    call(w, 1, CREATE, "hello");
    saw(w, RUNTIME, HEAD(1) "DATA 1 20 .....<fragment>hello END\n");
    told(w, "request CreateContainer 5 hello\n");
    answer(w, 1, "id");
    move_on(w);
}

SCENARIO(another_message_takes_its_place)
{
    call(w, 1, CREATE, "hello");
    forward_instead(w, w->calls[0], NULL, "something longer", 16);
    saw(w, RUNTIME, HEAD(1) "DATA 1 21 .....something longer END\n");
    call(w, 3, CREATE, "hello");
    forward_instead(w, w->calls[1], FRAGMENT, "hullo", 5);
    saw(w, RUNTIME, HEAD(3) "DATA 3 20 .....<fragment>hullo END\n");
    call(w, 5, CREATE, "hello");
    forward_instead(w, w->calls[2], NULL, "", 0);
    saw(w, RUNTIME, HEAD(5) "DATA 5 5 ..... END\n");
    /* what lies behind the message stays */
    request(w, 7, CREATE);
    data(w, 7, "\0\0\0\0\3abc\0\0\0\0\1z", 14, 0);
    data(w, 7, "tail", 4, H2_END_STREAM);
    feed(w, CLIENT);
    forward_instead(w, w->calls[3], NULL, "x", 1);
    saw(w, RUNTIME, HEAD(7) "DATA 7 16 .....x.....ztail END\n");
    answer(w, 1, "id");
    told(w, "request CreateContainer 5 hello\nrequest CreateContainer 5 hello\n"
            "request CreateContainer 5 hello\nrequest CreateContainer 3 abc\n"
            "answered CreateContainer 0 id\nended CreateContainer\n");
}

SCENARIO(the_end_may_come_in_a_frame_of_its_own)
{
    request(w, 1, CREATE);
    message(w, 1, "one", 0);
    data(w, 1, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    forward(w, w->calls[0], NULL);
    saw(w, RUNTIME, HEAD(1) "DATA 1 8 .....one END\n");

    request(w, 3, CREATE);
    message(w, 3, "two", 0);
    feed(w, CLIENT);
    forward(w, w->calls[1], FRAGMENT);
    move_on(w);
    data(w, 3, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME, "DATA 3 0 END\n");
    answer(w, 3, "x");
    answer(w, 1, "y");
    calls_are(w, 0);
}

SCENARIO(padding_is_dropped_and_credited)
{
    request(w, 1, CREATE);
    h2_data(&w->out, 1, "\0\0\0\0", 4, 0, 200);
    h2_data(&w->out, 1, "\3abc", 4, 0, 0);
    h2_data(&w->out, 1, "", 0, H2_END_STREAM, 20);
    feed(w, CLIENT);
    saw(w, CLIENT, "WINDOW 1 +201\nWINDOW 0 +201\nWINDOW 1 +1\nWINDOW 0 +1\nWINDOW 0 +21\n");
    forward(w, w->calls[0], NULL);
    saw(w, RUNTIME, HEAD(1) "DATA 1 8 .....abc END\n");
}

SCENARIO(bytes_behind_the_first_message_follow_it)
{
    request(w, 1, CREATE);
    data(w, 1, "\0\0\0\0\3abc\0\0\0\0\1z", 14, 0);
    data(w, 1, "tail", 4, H2_END_STREAM);
    feed(w, CLIENT);
    told(w, "request CreateContainer 3 abc\n");
    forward(w, w->calls[0], FRAGMENT);
    saw(w, RUNTIME, HEAD(1) "DATA 1 28 .....<fragment>abc.....ztail END\n");
}

/* The held bytes move when their buffer grows, and the message with them. */
SCENARIO(bytes_behind_a_held_message_do_not_lose_it)
{
    uint8_t held[247], tail[300], sent[1 + sizeof held + sizeof tail] = "f";
    struct buffer framed = {0};

    memset(held, 'm', sizeof held);
    memset(tail, 't', sizeof tail);
    memcpy(sent + 1, held, sizeof held);
    memcpy(sent + 1 + sizeof held, tail, sizeof tail);
    h2_message(&framed, 0, held, sizeof held); /* 252 bytes; a buffer begins with 256 */
    request(w, 1, CREATE);
    data(w, 1, buffer_data(&framed), buffer_len(&framed), 0);
    feed(w, CLIENT);
    data(w, 1, tail, sizeof tail, H2_END_STREAM);
    feed(w, CLIENT);
    buffer_fini(&framed);
    if (w->calls_len > 0 && !w->quiet) {
        assert_int_equal(w->calls[0]->message_bytes, sizeof held);
        assert_memory_equal(w->calls[0]->message, held, sizeof held);
    }
    forward(w, w->calls[0], "f");
    if (!w->quiet)
        assert_non_null(
            memmem(buffer_data(&w->to[RUNTIME]), buffer_len(&w->to[RUNTIME]), sent, sizeof sent));
    move_on(w);
}

SCENARIO(what_is_no_whole_message_passes)
{
    request(w, 1, CREATE);
    data(w, 1, "\0\0\0\0\11abc", 8, H2_END_STREAM);
    request(w, 3, CREATE);
    data(w, 3, "\0\0", 2, H2_END_STREAM);
    request(w, 5, CREATE);
    data(w, 5, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME,
        HEAD(1) "DATA 1 8 .....abc END\n" HEAD(3) "DATA 3 2 .. END\n" HEAD(5) "DATA 5 0 END\n");
    h2_headers(&w->writers[CLIENT], &w->out, 7, H2_END_STREAM, -1, 0,
               (const char *[]){":path", "/runtime.v1.RuntimeService/CreateContainer", NULL});
    feed(w, CLIENT);
    saw(w, RUNTIME, "HEADERS 7 END :path=/runtime.v1.RuntimeService/CreateContainer\n");
    told(w, "");
    calls_are(w, 3);
}

SCENARIO(an_empty_message_is_a_message)
{
    w->plan = PLAN_FRAGMENT;
    call(w, 1, CREATE, "");
    told(w, "request CreateContainer 0 \n");
    saw(w, RUNTIME, HEAD(1) "DATA 1 15 .....<fragment> END\n");
}

SCENARIO(trailers_send_the_call_on_without_its_message)
{
    static const char *const trailers[] = {"x-end", "1", NULL};

    request(w, 1, CREATE);
    message(w, 1, "held", 0);
    request(w, 3, CREATE);
    data(w, 3, "\0\0\0\0\7half", 9, 0);
    feed(w, CLIENT);
    move_on(w);
    h2_headers(&w->writers[CLIENT], &w->out, 1, H2_END_STREAM, -1, 0, trailers);
    h2_headers(&w->writers[CLIENT], &w->out, 3, H2_END_STREAM, -1, 0, trailers);
    feed(w, CLIENT);
    saw(w, RUNTIME, "HEADERS 1 END x-end=1\nHEADERS 3 END x-end=1\n");
    saw(w, CLIENT, "WINDOW 0 +9\nWINDOW 0 +9\n");
    told(w, "ended CreateContainer\n");
    answer(w, 1, "x");
    answer(w, 3, "x");
    told(w, "");
    calls_are(w, 0);
}

/* The frame under way when the decision falls goes on behind it. */
SCENARIO(a_decision_in_the_middle_of_a_frame)
{
    struct buffer frame = {0};

    request(w, 1, CREATE);
    message(w, 1, "one", 0);
    request(w, 3, CREATE);
    message(w, 3, "two", 0);
    feed(w, CLIENT);
    move_on(w);
    h2_data(&frame, 1, "0123456789", 10, H2_END_STREAM, 5);
    h2_put(&w->out, buffer_data(&frame), 9 + 1 + 4);
    feed(w, CLIENT);
    forward(w, w->calls[0], NULL);
    saw(w, RUNTIME, "DATA 1 12 .....one0123\n");
    h2_put(&w->out, buffer_data(&frame) + 14, buffer_len(&frame) - 14);
    feed(w, CLIENT);
    saw(w, RUNTIME, "DATA 1 6 456789 END\n");
    saw(w, CLIENT, "WINDOW 1 +1\nWINDOW 0 +1\nWINDOW 0 +5\n");
    buffer_fini(&frame);
    h2_data(&frame, 3, "0123456789", 10, H2_END_STREAM, -1);
    h2_put(&w->out, buffer_data(&frame), 9 + 4);
    feed(w, CLIENT);
    refuse(w, w->calls[1], "no");
    saw(w, RUNTIME, "RST 3 8\nSETTINGS\n");
    h2_put(&w->out, buffer_data(&frame) + 13, buffer_len(&frame) - 13);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    saw(w, CLIENT, "WINDOW 0 +12\nWINDOW 0 +6\n");
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(3, "no"));
    buffer_fini(&frame);
}

/* ---- refused ---- */

SCENARIO(a_refusal_waits_for_the_barrier)
{
    call(w, 1, CREATE, "abc");
    refuse(w, w->calls[0], "50% \xc3\xbc\n");
    saw(w, RUNTIME, HEAD(1) "RST 1 8\nSETTINGS\n");
    saw(w, CLIENT, "WINDOW 0 +8\n");
    told(w, "request CreateContainer 3 abc\n");
    h2_frame(&w->out, NGHTTP2_PING, 0, 0, "12345678", 8);
    feed(w, RUNTIME);
    saw(w, CLIENT, "FRAME 6 0 8\n");
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(1, "50%25 %C3%BC%0A"));
    told(w, "");
    calls_are(w, 0);
    /* the runtime's encoder and the client's decoder are still in step */
    call(w, 3, "Version", "v");
    answer(w, 3, "1");
    answer(w, 3, "2");
    saw(w, CLIENT,
        ANSWER_HEAD(3) "DATA 3 6 .....1\n" ANSWER_END(3)
            ANSWER_HEAD(3) "DATA 3 6 .....2\n" ANSWER_END(3));
}

SCENARIO(a_refusal_in_the_callback)
{
    w->plan = PLAN_REFUSE;
    call(w, 1, CREATE, "abc");
    saw(w, RUNTIME, HEAD(1) "RST 1 8\nSETTINGS\n");
    ack(w, RUNTIME);
    saw(w, CLIENT, "WINDOW 0 +8\n" REFUSAL(1, "no"));
}

SCENARIO(the_decoder_keeps_its_table)
{
    size_t entries;

    answer(w, 1, "x");
    call(w, 1, CREATE, "abc");
    move_on(w);
    entries = nghttp2_hd_inflate_get_num_table_entries(w->readers[CLIENT].inflater);
    refuse(w, w->calls[0], "no");
    ack(w, RUNTIME);
    saw(w, CLIENT, "WINDOW 0 +8\n" REFUSAL(1, "no"));
    assert_int_equal(nghttp2_hd_inflate_get_num_table_entries(w->readers[CLIENT].inflater),
                     entries);
}

SCENARIO(acks_go_to_whom_they_belong)
{
    call(w, 1, CREATE, "a");
    call(w, 3, CREATE, "b");
    call(w, 5, CREATE, "c");
    move_on(w);
    h2_settings(&w->out, 3, 50);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "one");
    h2_settings(&w->out, 3, 60);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "two");
    refuse(w, w->calls[0], "three");
    h2_settings(&w->out, 3, 70);
    feed(w, CLIENT);
    saw(w, RUNTIME,
        "SETTINGS 3=50\nRST 1 8\nSETTINGS\nSETTINGS 3=60\nRST 3 8\nSETTINGS\nRST 5 8\nSETTINGS\n"
        "SETTINGS 3=70\n");
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS ACK\n");
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(1, "one"));
    ack(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS ACK\n");
    ack(w, RUNTIME);
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(3, "two") REFUSAL(5, "three"));
    ack(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS ACK\n");
}

/* A refusal that falls while the client's SETTINGS are half through goes out behind them. */
SCENARIO(a_barrier_behind_half_a_settings_frame)
{
    struct buffer frame = {0};

    call(w, 1, CREATE, "a");
    move_on(w);
    h2_settings(&frame, 3, 50);
    h2_put(&w->out, buffer_data(&frame), 12);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    h2_put(&w->out, buffer_data(&frame) + 12, 3);
    feed(w, CLIENT);
    saw(w, RUNTIME, "SETTINGS 3=50\nRST 1 8\nSETTINGS\n");
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS ACK\n");
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(1, "no"));
    buffer_fini(&frame);
}

SCENARIO(a_refusal_in_the_middle_of_a_header_block)
{
    struct buffer block = {0};

    call(w, 1, CREATE, "a");
    move_on(w);
    h2_headers(&w->writers[CLIENT], &block, 3, 0, -1, 4,
               (const char *[]){":path", "/x/y/zzzzzzzzzz", "x-long", "some more text", NULL});
    h2_put(&w->out, buffer_data(&block), 20);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    h2_put(&w->out, buffer_data(&block) + 20, buffer_len(&block) - 20);
    feed(w, CLIENT);
    saw(w, RUNTIME, "HEADERS 3 :path=/x/y/zzzzzzzzzz x-long=some more text\nRST 1 8\nSETTINGS\n");
    buffer_fini(&block);
}

SCENARIO(a_lowered_table_size_is_said_by_the_refusal)
{
    static const uint8_t twice[] = {0, 1, 0, 0, 0, 64, 0, 1, 0, 0, 8, 0};
    struct h2_reader *decoder = &w->readers[CLIENT];

    answer(w, 9, "fill");
    move_on(w);
    h2_settings(&w->out, 1, 100);
    h2_reader_announced(decoder, 100);
    feed(w, CLIENT);
    ack(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS ACK\n");
    call(w, 1, CREATE, "a");
    call(w, 3, CREATE, "b");
    refuse(w, w->calls[0], "one");
    refuse(w, w->calls[0], "two");
    move_on(w);
    ack(w, RUNTIME);
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(1, "one") REFUSAL(3, "two"));
    /* the runtime's own encoder says it as well, a little later */
    nghttp2_hd_deflate_change_table_size(w->writers[RUNTIME].deflater, 100);
    answer(w, 5, "x");
    move_on(w);

    /* raised, lowered to two sizes, raised again: the smallest counts (RFC 7541 §4.2) */
    h2_settings(&w->out, 1, 4096);
    h2_reader_announced(decoder, 4096);
    h2_settings(&w->out, 1, 50);
    h2_reader_announced(decoder, 50);
    h2_settings(&w->out, 1, 4096);
    h2_reader_announced(decoder, 4096);
    h2_settings(&w->out, 1, 2000);
    h2_reader_announced(decoder, 2000);
    feed(w, CLIENT);
    for (int i = 0; i < 4; i++)
        ack(w, RUNTIME);
    call(w, 7, CREATE, "c");
    refuse(w, w->calls[0], "three");
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(7, "three"));
    nghttp2_hd_deflate_change_table_size(w->writers[RUNTIME].deflater, 50);
    nghttp2_hd_deflate_change_table_size(w->writers[RUNTIME].deflater, 2000);
    answer(w, 9, "y");
    move_on(w);

    /* two sizes in one frame: a decoder may insist on the smaller */
    h2_frame(&w->out, NGHTTP2_SETTINGS, 0, 0, twice, sizeof twice);
    h2_reader_announced(decoder, 64);
    feed(w, CLIENT);
    ack(w, RUNTIME);
    call(w, 11, CREATE, "d");
    refuse(w, w->calls[0], "four");
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(11, "four"));
    nghttp2_hd_deflate_change_table_size(w->writers[RUNTIME].deflater, 64);
    answer(w, 13, "z");
    saw(w, CLIENT, ANSWER_HEAD(13) "DATA 13 6 .....z\n" ANSWER_END(13));
}

SCENARIO(the_runtimes_headers_before_the_barrier)
{
    call(w, 1, CREATE, "a");
    refuse(w, w->calls[0], "no");
    move_on(w);
    h2_answer_head(&w->writers[RUNTIME], &w->out, 1);
    feed(w, RUNTIME);
    saw(w, CLIENT, ANSWER_HEAD(1));
    ack(w, RUNTIME);
    saw(w, CLIENT, "HEADERS 1 END grpc-status=14 grpc-message=no\n");
}

SCENARIO(the_runtimes_whole_answer_before_the_barrier)
{
    call(w, 1, CREATE, "a");
    refuse(w, w->calls[0], "no");
    move_on(w);
    answer(w, 1, "id");
    saw(w, CLIENT, ANSWER_HEAD(1) "DATA 1 7 .....id\n" ANSWER_END(1));
    ack(w, RUNTIME);
    saw(w, CLIENT, "");
    told(w, "");
    saw(w, RUNTIME, "");
    calls_are(w, 0);
}

SCENARIO(resets_before_the_barrier)
{
    call(w, 1, CREATE, "a");
    call(w, 3, CREATE, "b");
    refuse(w, w->calls[0], "one");
    refuse(w, w->calls[0], "two");
    move_on(w);
    h2_rst(&w->out, 1, 5);
    feed(w, RUNTIME);
    h2_rst(&w->out, 3, 8);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    ack(w, RUNTIME);
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(1, "one"));
    told(w, "");
    calls_are(w, 0);
}

SCENARIO(a_refused_client_that_goes_on_sending)
{
    request(w, 1, CREATE);
    message(w, 1, "abc", 0);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    move_on(w);
    h2_data(&w->out, 1, "more", 4, 0, 3);
    feed(w, CLIENT);
    saw(w, CLIENT, "WINDOW 0 +8\n");
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(1, "no") "RST 1 0\nSETTINGS\n");
    data(w, 1, "and more", 8, 0);
    data(w, 1, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, CLIENT, "WINDOW 0 +8\n");
    saw(w, RUNTIME, "");
    calls_are(w, 0);

    request(w, 3, CREATE);
    message(w, 3, "abc", 0);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    ack(w, RUNTIME);
    move_on(w);
    h2_rst(&w->out, 3, 8);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    calls_are(w, 0);
    ack(w, CLIENT); /* the stream's that ended */
    ack(w, CLIENT); /* the one's that reset */
    saw(w, RUNTIME, "");
}

/* RFC 9113 §8.1: a client that stops when it is asked to owes no END_STREAM. What it sent before it
 * was asked is thrown away. */
SCENARIO(a_refused_client_that_stops)
{
    request(w, 1, CREATE);
    message(w, 1, "abc", 0);
    request(w, 3, CREATE);
    message(w, 3, "abc", 0);
    h2_settings(&w->out, 5, 20000); /* between ours, and one's ACK is not the other's */
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    move_on(w);
    h2_settings(&w->out, 5, 20000);
    h2_settings_ack(&w->out); /* the greeting's is through: of the client's own */
    h2_settings_ack(&w->out);
    feed(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS 5=20000\nSETTINGS ACK\n" REFUSAL(1, "no") "RST 1 0\nSETTINGS\n");
    h2_settings_ack(&w->out); /* the runtime's */
    data(w, 1, "more", 4, 0);
    feed(w, CLIENT);
    saw(w, RUNTIME, "SETTINGS ACK\n");
    calls_are(w, 2);
    ack(w, CLIENT);
    saw(w, RUNTIME, "");
    calls_are(w, 1);
    refuse(w, w->calls[0], "no");
    saw(w, RUNTIME, "RST 3 8\nSETTINGS\n");
    saw(w, CLIENT, "WINDOW 0 +4\nWINDOW 0 +8\n");
}

/* One that never acknowledges is no reason to remember ever more. */
ONCE(a_refused_client_that_acknowledges_nothing)
{
    const char *const fields[] = {":path", "/runtime.v1.RuntimeService/CreateContainer", NULL};
    uint32_t id = 1;

    w->plan = PLAN_REFUSE;
    for (int i = 0; i <= RELAY_STREAMS_MAX; i++, id += 2) {
        h2_headers(&w->writers[CLIENT], &w->out, id, 0, -1, 0, fields);
        message(w, id, "", 0);
        feed(w, CLIENT);
        if (i < RELAY_STREAMS_MAX)
            ack(w, RUNTIME);
        if (i < RELAY_STREAMS_MAX)
            h2_rst(&w->out, id, 8);
    }
    calls_are(w, 1);
    h2_settings_ack(&w->out);
    feed_bad(w, RUNTIME, "too many SETTINGS without an ACK");
}

SCENARIO(a_message_over_the_limit_is_refused)
{
    request(w, 1, CREATE);
    data(w, 1, "\0\1\0\0\1x", 6, 0);
    feed(w, CLIENT);
    saw(w, RUNTIME, HEAD(1) "RST 1 8\nSETTINGS\n");
    told(w, "");
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT,
        "HEADERS 1 END :status=200 content-type=application/grpc grpc-status=8 grpc-message="
        "CreateContainer: message of 16777217 bytes is larger than the limit of 16777216\n"
        "RST 1 0\nSETTINGS\n");
}

/* ---- gzip ---- */

static void gzip(struct buffer *out, const void *bytes, size_t len)
{
    z_stream z = {.next_in = (void *)bytes, .avail_in = (uInt)len};
    size_t room = compressBound(len) + 64;
    uint8_t *packed = malloc(room);

    assert_non_null(packed);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = packed;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    h2_message(out, 1, packed, z.total_out);
    deflateEnd(&z);
    free(packed);
}

static void request_in(struct world *w, uint32_t stream, const char *method, const char *encoding)
{
    char path[128];
    const char *const fields[] = {":path", path, "grpc-encoding", encoding, NULL};

    snprintf(path, sizeof path, "/runtime.v1.RuntimeService/%s", method);
    h2_headers(&w->writers[CLIENT], &w->out, stream, 0, -1, 0, fields);
}

static void zip_call(struct world *w, uint32_t stream, const char *method, const char *encoding,
                     const struct buffer *framed)
{
    request_in(w, stream, method, encoding);
    data(w, stream, buffer_data(framed), buffer_len(framed), H2_END_STREAM);
    feed(w, CLIENT);
}

SCENARIO(a_gzip_message_goes_on_plain_with_a_fragment_and_packed_without)
{
    struct buffer packed = {0};
    char text[64];

    gzip(&packed, "hello", 5);
    zip_call(w, 1, CREATE, "gzip", &packed);
    told(w, "request CreateContainer 5 hello\n");
    forward(w, w->calls[0], FRAGMENT);
    saw(w, RUNTIME,
        "HEADERS 1 :path=/runtime.v1.RuntimeService/CreateContainer grpc-encoding=gzip\n"
        "DATA 1 20 .....<fragment>hello END\n");
    zip_call(w, 3, CREATE, "gzip", &packed);
    move_on(w);
    forward(w, w->calls[1], NULL);
    snprintf(text, sizeof text, "DATA 3 %zu", buffer_len(&packed));
    if (!w->quiet)
        assert_memory_equal(buffer_data(&w->to[RUNTIME]) + buffer_len(&w->to[RUNTIME]) -
                                buffer_len(&packed),
                            buffer_data(&packed), buffer_len(&packed));
    zip_call(w, 7, CREATE, "gzip", &packed);
    forward_instead(w, w->calls[2], NULL, "hullo", 5);
    move_on(w);
    if (!w->quiet)
        assert_memory_equal(buffer_data(&w->to[RUNTIME]) + buffer_len(&w->to[RUNTIME]) - 10,
                            "\0\0\0\0\5hullo", 10);
    /* an observed one, and a packed answer */
    zip_call(w, 9, "StopPodSandbox", "gzip", &packed);
    told(w, "request StopPodSandbox 5 hello\n");
    h2_headers(&w->writers[RUNTIME], &w->out, 9, 0, -1, 0,
               (const char *[]){":status", "200", "grpc-encoding", "gzip", NULL});
    data(w, 9, buffer_data(&packed), buffer_len(&packed), 0);
    h2_answer_end(&w->writers[RUNTIME], &w->out, 9, "0");
    feed(w, RUNTIME);
    told(w, "answered StopPodSandbox 0 hello\nended StopPodSandbox\n");
    buffer_fini(&packed);
}

ONCE(a_gzip_bomb_is_refused)
{
    size_t len = 17u << 20;
    uint8_t *zeros = calloc(1, len);
    struct buffer packed = {0};

    assert_non_null(zeros);
    gzip(&packed, zeros, len);
    free(zeros);
    request_in(w, 1, CREATE, "gzip");
    for (size_t at = 0; at < buffer_len(&packed); at += 16384) {
        size_t n = buffer_len(&packed) - at < 16384 ? buffer_len(&packed) - at : 16384;

        data(w, 1, buffer_data(&packed) + at, n, 0);
    }
    feed(w, CLIENT);
    told(w, "");
    ack(w, RUNTIME);
    assert_non_null(memmem(buffer_data(&w->to[CLIENT]), buffer_len(&w->to[CLIENT]),
                           "message inflates to more than 16 MiB", 36));
    buffer_fini(&packed);
    buffer_fini(&w->to[CLIENT]);
    buffer_fini(&w->to[RUNTIME]);
}

/* What compressed messages take while they are held has a bound, all of them together; what cannot
 * be read takes nothing. */
ONCE(inflated_messages_have_a_common_bound)
{
    size_t len = 12u << 20;
    uint8_t *zeros = calloc(1, len);
    struct buffer packed = {0}, broken = {0};

    assert_non_null(zeros);
    gzip(&packed, zeros, len);
    free(zeros);
    h2_put(&broken, buffer_data(&packed), buffer_len(&packed));
    broken.bytes[broken.end - 5] ^= 1; /* in its sum */
    for (uint32_t id = 1; id <= 7; id += 2)
        zip_call(w, id, CREATE, "gzip", id < 5 ? &broken : &packed);
    assert_int_equal(w->calls_len, 1);
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT,
        "HEADERS 7 END :status=200 content-type=application/grpc grpc-status=8 grpc-message="
        "CreateContainer: no memory for the message\n");
    forward(w, w->calls[0], NULL);
    zip_call(w, 9, CREATE, "gzip", &packed);
    assert_int_equal(w->calls_len, 2);
    move_on(w);
    buffer_fini(&packed);
    buffer_fini(&broken);
}

/* Those of answers have one as well; what does not fit passes unread. */
ONCE(copies_of_answers_have_a_common_bound)
{
    static const uint8_t long_id[59995];
    struct buffer framed = {0};
    uint32_t id = 1;

    h2_message(&framed, 0, long_id, sizeof long_id);
    for (; id < 2 * 100; id += 2) {
        call(w, id, "RemoveContainer", "x");
        h2_answer_head(&w->writers[RUNTIME], &w->out, id);
        for (size_t at = 0; at < buffer_len(&framed); at += 15000)
            data(w, id, buffer_data(&framed) + at, 15000, 0);
        feed(w, RUNTIME);
    }
    w->log_read = buffer_len(&w->log);
    h2_answer_end(&w->writers[RUNTIME], &w->out, 1, "0");
    h2_answer_end(&w->writers[RUNTIME], &w->out, id - 2, "0");
    feed(w, RUNTIME);
    told(w, "answered RemoveContainer 0 \nended RemoveContainer\n"
            "answered RemoveContainer 0 -\nended RemoveContainer\n");
    buffer_fini(&framed);
    move_on(w);
}

SCENARIO(compressions_that_cannot_be_read)
{
    struct buffer framed = {0};

    h2_message(&framed, 1, "????", 4);
    zip_call(w, 1, CREATE, "snappy", &framed);
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT,
        "HEADERS 1 END :status=200 content-type=application/grpc grpc-status=12 grpc-message="
        "CreateContainer: of the compressions in grpc-encoding the shim reads only gzip\n");
    /* no encoding named, or no gzip at all: the runtime's to refuse */
    zip_call(w, 3, CREATE, "identity", &framed);
    zip_call(w, 5, CREATE, "gzip", &framed);
    saw(w, RUNTIME,
        "HEADERS 3 :path=/runtime.v1.RuntimeService/CreateContainer grpc-encoding=identity\n"
        "DATA 3 9 .....???? END\n"
        "HEADERS 5 :path=/runtime.v1.RuntimeService/CreateContainer grpc-encoding=gzip\n"
        "DATA 5 9 .....???? END\n");
    zip_call(w, 7, "RunPodSandbox", "gzip", &framed);
    told(w, "");
    buffer_fini(&framed);
}

/* ---- flow control ---- */

static void fill(struct world *w, uint32_t stream, size_t len, int flags)
{
    uint8_t *bytes = calloc(1, 16384);

    assert_non_null(bytes);
    while (len > 0) {
        size_t n = len < 16384 ? len : 16384;

        len -= n;
        data(w, stream, bytes, n, len == 0 ? flags : 0);
    }
    free(bytes);
}

/* What the client believes it may send on the connection. */
static int64_t client_window(const struct world *w)
{
    struct h2_reader r = {.bytes = buffer_data(&w->fed[CLIENT]) + strlen(H2_PREFACE),
                          .len = buffer_len(&w->fed[CLIENT]) - strlen(H2_PREFACE)};
    int64_t window = 65535;

    for (int end = CLIENT; end <= RUNTIME; end++) {
        while (r.len >= 9) {
            size_t len = (size_t)r.bytes[0] << 16 | (size_t)r.bytes[1] << 8 | r.bytes[2];

            if (end == CLIENT && r.bytes[3] == NGHTTP2_DATA)
                window -= (int64_t)len;
            if (end == RUNTIME && r.bytes[3] == NGHTTP2_WINDOW_UPDATE && r.bytes[8] == 0)
                window += r.bytes[9] << 24 | r.bytes[10] << 16 | r.bytes[11] << 8 | r.bytes[12];
            r.bytes += 9 + len;
            r.len -= 9 + len;
        }
        r.bytes = buffer_data(&w->to[CLIENT]);
        r.len = buffer_len(&w->to[CLIENT]);
    }
    return window;
}

SCENARIO(a_message_over_the_windows_is_credited)
{
    request(w, 1, CREATE);
    data(w, 1, "\0\0\3\x0d\x40", 5, 0); /* 200,000 bytes */
    fill(w, 1, 65535 - 5, 0);
    feed(w, CLIENT);
    /* the stream at once; the connection, below 32,768, up to what the runtime would take */
    saw(w, CLIENT, "WINDOW 1 +150854\nWINDOW 0 +32773\n");
    for (int i = 0; i < 4; i++) {
        assert_true(client_window(w) >= 32768);
        fill(w, 1, 32768, 0);
        feed(w, CLIENT);
    }
    told(w, "");
    fill(w, 1, 200000 - 65530 - 4 * 32768, H2_END_STREAM);
    feed(w, CLIENT);
    assert_int_equal(w->calls_len, 1);
    forward(w, w->calls[0], NULL);
    /* what was credited early is taken off the runtime's updates */
    for (uint32_t left = 200005; left > 0; left -= left < 65535 ? left : 65535) {
        h2_window(&w->out, 0, left < 65535 ? left : 65535);
        h2_window(&w->out, 1, left < 65535 ? left : 65535);
        feed(w, RUNTIME);
    }
    assert_int_equal(client_window(w), 65535);
    move_on(w);
}

SCENARIO(injected_bytes_are_swallowed_from_later_updates)
{
    w->plan = PLAN_FRAGMENT;
    call(w, 1, CREATE, "abc");
    move_on(w);
    h2_window(&w->out, 1, 18);
    h2_window(&w->out, 0, 4);
    h2_window(&w->out, 0, 14);
    h2_window(&w->out, 0, 100);
    feed(w, RUNTIME);
    saw(w, CLIENT, "WINDOW 1 +8\nWINDOW 0 +8\nWINDOW 0 +100\n");
}

/* What the runtime will never be sent, nobody but us would ever credit. */
SCENARIO(a_smaller_message_is_credited)
{
    request(w, 1, CREATE);
    message(w, 1, "0123456789", 0);
    feed(w, CLIENT);
    forward_instead(w, w->calls[0], NULL, "abc", 3);
    saw(w, CLIENT, "WINDOW 1 +7\nWINDOW 0 +7\n");
    h2_window(&w->out, 1, 8); /* it has read what it got */
    h2_window(&w->out, 0, 8);
    feed(w, RUNTIME);
    saw(w, CLIENT, "WINDOW 1 +8\nWINDOW 0 +8\n");
    assert_true(w->quiet || client_window(w) == 65535);
    data(w, 1, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    move_on(w);
    /* with its last byte sent a client needs no more of the stream's */
    call(w, 3, CREATE, "0123456789");
    forward_instead(w, w->calls[1], NULL, "abc", 3);
    saw(w, CLIENT, "WINDOW 0 +7\n");
    move_on(w);
}

SCENARIO(a_larger_message_waits_for_the_windows)
{
    char *large = calloc(1, 100000);

    assert_non_null(large);
    request(w, 1, CREATE);
    data(w, 1, "\0\0\0\0\3abc", 8, 0);
    feed(w, CLIENT);
    forward_instead(w, w->calls[0], NULL, large, 100000);
    free(large);
    assert_true(w->quiet || buffer_len(&w->to[RUNTIME]) - w->read_to[RUNTIME] < 66000);
    /* 99,997 bytes more than the client knows of: swallowed, of each window */
    h2_window(&w->out, 1, 65535);
    h2_window(&w->out, 0, 65535);
    feed(w, RUNTIME);
    saw(w, CLIENT, "");
    h2_window(&w->out, 1, 100005 - 65535);
    h2_window(&w->out, 0, 100005 - 65535 + 1);
    feed(w, RUNTIME);
    saw(w, CLIENT, "WINDOW 1 +8\nWINDOW 0 +9\n");
    assert_true(w->quiet || client_window(w) == 65536);
    move_on(w);
    data(w, 1, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME, "DATA 1 0 END\n");
}

/* The runtime's updates are swallowed for bytes that are held, but others must not starve. */
SCENARIO(held_calls_do_not_starve_others)
{
    for (uint32_t id = 1; id < 200; id += 2) {
        request(w, id, CREATE);
        data(w, id, "\0\0\0\3\xe8", 5, 0);
        fill(w, id, 1000, H2_END_STREAM);
        feed(w, CLIENT);
    }
    assert_true(w->quiet || w->calls_len == 100);
    for (uint32_t id = 201; id < 220; id += 2) {
        request(w, id, "Version");
        fill(w, id, 32000, H2_END_STREAM);
        feed(w, CLIENT);
        h2_window(&w->out, 0, 32000);
        feed(w, RUNTIME);
        assert_true(w->quiet || client_window(w) >= 32768);
    }
    move_on(w);
}

SCENARIO(the_runtimes_windows_are_never_outgrown)
{
    h2_settings(&w->out, 4, 20);
    feed(w, RUNTIME);
    ack(w, CLIENT);
    move_on(w);
    call(w, 1, CREATE, "0123456789");
    move_on(w);
    forward(w, w->calls[0], FRAGMENT);
    saw(w, RUNTIME, "DATA 1 20 .....<fragment>01234\n");
    h2_window(&w->out, 1, 3);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "DATA 1 3 567\n");
    saw(w, CLIENT, "");
    h2_settings(&w->out, 4, 10); /* the window is -10 now */
    feed(w, RUNTIME);
    ack(w, CLIENT);
    h2_window(&w->out, 1, 10);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "SETTINGS ACK\n");
    h2_settings(&w->out, 4, 11);
    feed(w, RUNTIME);
    saw(w, RUNTIME, ""); /* a larger one counts from the client's ACK on (RFC 9113 §6.5.3) */
    ack(w, CLIENT);
    saw(w, RUNTIME, "SETTINGS ACK\nDATA 1 1 8\n");
    h2_window(&w->out, 1, 1);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "DATA 1 1 9 END\n");
}

/* A second frame of an open call is not let past the stream's window either. */
SCENARIO(what_follows_a_forwarded_message_waits_for_the_stream_window)
{
    h2_settings(&w->out, 4, 30);
    feed(w, RUNTIME);
    ack(w, CLIENT);
    move_on(w);
    request(w, 1, CREATE);
    message(w, 1, "abcde", 0);
    feed(w, CLIENT);
    move_on(w);
    forward(w, w->calls[0], FRAGMENT);
    saw(w, RUNTIME, "DATA 1 20 .....<fragment>abcde\n");
    data(w, 1, "0123456789ABCDEFGHIJ", 20, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME, "DATA 1 10 0123456789\n");
    h2_window(&w->out, 1, 30);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "DATA 1 10 ABCDEFGHIJ END\n");
    saw(w, CLIENT, "WINDOW 1 +20\n");
}

/* Lowered below what is withheld, the window would never open again by the runtime's doing. */
SCENARIO(a_lowered_window_does_not_strand_a_half_message)
{
    request(w, 1, CREATE);
    data(w, 1,
         "\0\0\0\0\144"
         "0123456789",
         15, 0);
    feed(w, CLIENT);
    move_on(w);
    h2_settings(&w->out, 4, 10);
    feed(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS 4=10\nWINDOW 1 +16479\n");
    ack(w, CLIENT);
    fill(w, 1, 90, H2_END_STREAM);
    feed(w, CLIENT);
    assert_true(w->quiet || w->calls_len == 1);
}

SCENARIO(a_relayed_call_waits_for_the_connection_window)
{
    struct buffer frame = {0};

    w->plan = PLAN_FRAGMENT;
    call(w, 1, CREATE, "abc"); /* 10 bytes more than the client knows */
    request(w, 3, "Version");
    fill(w, 3, 65500, 0);
    feed(w, CLIENT);
    move_on(w);
    h2_data(&frame, 3, "0123456789ABCDEFGHIJ", 20, H2_END_STREAM, 6); /* 27 of 27 */
    h2_put(&w->out, buffer_data(&frame), 20);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    h2_window(&w->out, 3, 65500);
    h2_window(&w->out, 0, 5); /* in the middle of the frame: 22 of it may go */
    feed(w, RUNTIME);
    h2_put(&w->out, buffer_data(&frame) + 20, buffer_len(&frame) - 20);
    feed(w, CLIENT);
    h2_window(&w->out, 0, 50);
    feed(w, RUNTIME);
    buffer_fini(&frame);
    calls_are(w, 1);
    call(w, 5, "Version", "x");
    if (!w->quiet)
        assert_non_null(memmem(buffer_data(&w->to[RUNTIME]), buffer_len(&w->to[RUNTIME]), "J", 1));
    move_on(w);
}

/* Three bytes of stream 3 are parked, HIJ, though the client has sent no more than it may. */
static void park(struct world *w)
{
    w->plan = PLAN_FRAGMENT;
    call(w, 1, CREATE, "abc"); /* 10 bytes more than the client knows */
    request(w, 3, "RunPodSandbox");
    fill(w, 3, 65500, 0);
    data(w, 3, "0123456789ABCDEFGHIJ", 20, 0);
    feed(w, CLIENT);
    move_on(w);
}

/* RFC 9113 §6.9.2: behind its ACK a lower window counts, for what the client sent before as well.
 */
SCENARIO(the_ack_of_a_lower_window_waits_for_what_is_parked)
{
    park(w);
    h2_settings(&w->out, 4, 100);
    h2_settings(&w->out, 4, 70000);
    feed(w, RUNTIME);
    move_on(w);
    h2_settings_ack(&w->out);
    data(w, 3, "more", 4, 0);
    h2_settings_ack(&w->out);
    request(w, 5, "CreateContainer");
    feed(w, CLIENT);
    saw(w, RUNTIME, HEAD(5));
    h2_window(&w->out, 0, 2);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "DATA 3 2 HI\n");
    h2_window(&w->out, 0, 2);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "DATA 3 2 Jm\nSETTINGS ACK\nSETTINGS ACK\n");
    h2_window(&w->out, 0, 100);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "DATA 3 3 ore\n");
    h2_settings(&w->out, 4, 50);
    feed(w, RUNTIME);
    move_on(w);
    ack(w, CLIENT);
    saw(w, RUNTIME, "SETTINGS ACK\n");
}

SCENARIO(the_ack_of_a_lower_window_goes_when_what_is_parked_goes)
{
    park(w);
    h2_settings(&w->out, 4, 100);
    feed(w, RUNTIME);
    move_on(w);
    ack(w, CLIENT);
    saw(w, RUNTIME, "");
    h2_rst(&w->out, 3, 8);
    feed(w, CLIENT);
    saw(w, RUNTIME, "RST 3 8\nSETTINGS ACK\n");
}

/* A header block behind the ACK may be written with the new table; it cannot wait, nor can the ACK
 * then. What is parked was not seen by the runtime, and the client is told that. */
SCENARIO(a_header_block_behind_the_ack_of_a_lower_window)
{
    park(w);
    h2_settings(&w->out, 4, 100);
    h2_settings(&w->out, 1, 4096);
    feed(w, RUNTIME);
    move_on(w);
    h2_settings_ack(&w->out);
    h2_settings_ack(&w->out);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    request(w, 5, CREATE);
    feed(w, CLIENT);
    saw(w, RUNTIME, "RST 3 8\nSETTINGS\nSETTINGS ACK\nSETTINGS ACK\n" HEAD(5));
    data(w, 3, "more", 4, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    ack(w, RUNTIME);
    saw(w, CLIENT, "RST 3 7\nSETTINGS\n");
    ack(w, CLIENT);
    calls_are(w, 2);
}

ONCE(too_much_held_is_refused)
{
    h2_window(&w->out, 0, 100 << 20);
    feed(w, RUNTIME);
    for (uint32_t id = 1; id < 10; id += 2) {
        request(w, id, CREATE);
        data(w, id, "\0\0\xf0\0\0", 5, 0);
        fill(w, id, 14 << 20, 0);
        feed(w, CLIENT);
    }
    ack(w, RUNTIME);
    assert_non_null(memmem(buffer_data(&w->to[CLIENT]), buffer_len(&w->to[CLIENT]),
                           "too many bytes are held", 23));
    buffer_fini(&w->to[CLIENT]);
    buffer_fini(&w->to[RUNTIME]);
}

/* Bytes behind the message of a call that waits for its decision count as well. */
ONCE(too_much_behind_a_held_message_ends_the_call)
{
    h2_window(&w->out, 0, 100 << 20);
    feed(w, RUNTIME);
    request(w, 1, CREATE);
    message(w, 1, "abc", 0);
    fill(w, 1, 65 << 20, 0);
    feed(w, CLIENT);
    told(w, "request CreateContainer 3 abc\nended CreateContainer\n");
    buffer_fini(&w->to[CLIENT]);
    buffer_fini(&w->to[RUNTIME]);
}

SCENARIO(more_than_the_window_is_not_kept)
{
    request(w, 1, "Version");
    fill(w, 1, 60000, 0);
    request(w, 3, CREATE);
    fill(w, 3, 5536, 0);
    feed_bad(w, CLIENT, "more DATA than the connection's window");
    saw(w, CLIENT, "GOAWAY 3 3\n");
}

/* ---- observed ---- */

SCENARIO(an_observed_call_passes_and_is_shown)
{
    request(w, 1, "StopPodSandbox");
    data(w, 1, "\0\0", 2, 0);
    data(w, 1, "\0\0\2o", 4, 0);
    feed(w, CLIENT);
    told(w, "");
    h2_data(&w->out, 1, "k", 1, H2_END_STREAM, 9);
    feed(w, CLIENT);
    told(w, "request StopPodSandbox 2 ok\n");
    answer(w, 1, "");
    told(w, "answered StopPodSandbox 0 \nended StopPodSandbox\n");

    request(w, 3, "RunPodSandbox");
    message(w, 3, "x", H2_END_STREAM);
    request(w, 5, "RemoveContainer");
    message(w, 5, "y", H2_END_STREAM);
    feed(w, CLIENT);
    told(w, "request RunPodSandbox 1 x\nrequest RemoveContainer 1 y\n");
    h2_answer_end(&w->writers[RUNTIME], &w->out, 3, "13"); /* trailers only */
    h2_rst(&w->out, 5, 2);
    feed(w, RUNTIME);
    told(w, "answered RunPodSandbox 13 -\nended RunPodSandbox\nended RemoveContainer\n");

    /* the end without trailers */
    request(w, 7, "RunPodSandbox");
    message(w, 7, "x", H2_END_STREAM);
    feed(w, CLIENT);
    h2_answer_head(&w->writers[RUNTIME], &w->out, 7);
    data(w, 7, "\0\0\0\0\1i", 6, H2_END_STREAM);
    feed(w, RUNTIME);
    told(w, "request RunPodSandbox 1 x\nanswered RunPodSandbox 0 i\nended RunPodSandbox\n");

    /* an answer that is longer than is read */
    request(w, 9, "RemovePodSandbox");
    message(w, 9, "x", H2_END_STREAM);
    feed(w, CLIENT);
    h2_answer_head(&w->writers[RUNTIME], &w->out, 9);
    data(w, 9, "\0\0\1\x86\xa0", 5, 0);
    fill(w, 9, 100000, 0);
    h2_answer_end(&w->writers[RUNTIME], &w->out, 9, "0");
    feed(w, RUNTIME);
    told(w,
         "request RemovePodSandbox 1 x\nanswered RemovePodSandbox 0 -\nended RemovePodSandbox\n");
    same(&w->to[RUNTIME], &w->fed[CLIENT]);
    same(&w->to[CLIENT], &w->fed[RUNTIME]);
    calls_are(w, 0);
}

ONCE(observed_requests_have_a_common_bound)
{
    for (uint32_t id = 1; id < 8; id += 2) {
        request(w, id, "RunPodSandbox");
        data(w, id, "\0\0\xf0\0\0", 5, 0);
        fill(w, id, (15 << 20) - 1, 0);
        feed(w, CLIENT);
    }
    for (uint32_t id = 7; id < 8; id -= 2) {
        data(w, id, "x", 1, H2_END_STREAM);
        feed(w, CLIENT);
    }
    assert_int_equal(w->calls_len, 2);
    same(&w->to[RUNTIME], &w->fed[CLIENT]);
    move_on(w);
}

/* ---- the runtime answers before it was asked ---- */

#define EARLY(id) "HEADERS " #id " END grpc-status=8 grpc-message= x-note=kept\n"

SCENARIO(early_answers)
{
    request(w, 1, CREATE); /* nothing came yet */
    request(w, 3, CREATE); /* half a message */
    data(w, 3, "\0\0\0", 3, 0);
    request(w, 5, CREATE); /* waits for the decision, and has ended */
    message(w, 5, "abc", H2_END_STREAM);
    feed(w, CLIENT);
    move_on(w);
    h2_answer_end(&w->writers[RUNTIME], &w->out, 1, "8");
    h2_answer_end(&w->writers[RUNTIME], &w->out, 3, "8");
    h2_answer_end(&w->writers[RUNTIME], &w->out, 5, "8");
    feed(w, RUNTIME);
    told(w, "answered CreateContainer 8 -\nended CreateContainer\n");
    saw(w, RUNTIME, "RST 1 8\nSETTINGS\nRST 3 8\nSETTINGS\nRST 5 8\n");
    saw(w, CLIENT,
        EARLY(1) "RST 1 0\nSETTINGS\n" EARLY(3) "WINDOW 0 +3\nRST 3 0\nSETTINGS\n" EARLY(
            5) "WINDOW 0 +8\n");
    calls_are(w, 2);
    h2_rst(&w->out, 1, 8); /* as clients do with a call that is answered too early */
    data(w, 3, "\0\1x", 3, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    calls_are(w, 1);
    h2_rst(&w->out, 3, 0); /* as gRPC's servers do behind such an answer; ours has said it */
    h2_settings_ack(&w->out);
    h2_settings_ack(&w->out);
    feed(w, RUNTIME);
    saw(w, CLIENT, "WINDOW 0 +3\n");
    calls_are(w, 0);
    assert_true(w->quiet || client_window(w) == 65535);
}

/* The END_STREAM of a frame that is thrown away reached nobody: the runtime hears of it. */
SCENARIO(an_early_answer_in_the_middle_of_the_last_frame)
{
    struct buffer frame = {0};

    request(w, 1, CREATE);
    h2_data(&frame, 1, "\0\0\0\0\11abc", 8, H2_END_STREAM, -1);
    h2_put(&w->out, buffer_data(&frame), 12);
    feed(w, CLIENT);
    move_on(w);
    h2_answer_end(&w->writers[RUNTIME], &w->out, 1, "8");
    feed(w, RUNTIME);
    saw(w, RUNTIME, "RST 1 8\n");
    h2_put(&w->out, buffer_data(&frame) + 12, 5);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    if (!w->quiet)
        assert_int_equal(client_window(w), 65535);
    buffer_fini(&frame);
}

SCENARIO(resets_in_every_phase)
{
    for (int from = CLIENT; from <= RUNTIME; from++) {
        uint32_t id = from == CLIENT ? 1 : 101;

        request(w, id, CREATE);
        request(w, id + 2, CREATE);
        data(w, id + 2, "\0\0\0", 3, 0);
        request(w, id + 4, CREATE);
        message(w, id + 4, "abc", 0);
        feed(w, CLIENT);
        request(w, id + 6, CREATE);
        message(w, id + 6, "def", H2_END_STREAM);
        feed(w, CLIENT);
        forward(w, w->calls[1], NULL);
        move_on(w);
        for (uint32_t i = 0; i < 8; i += 2)
            h2_rst(&w->out, id + i, 8);
        feed(w, from);
        told(w, "ended CreateContainer\nended CreateContainer\n");
        calls_are(w, 0);
    }
    saw(w, RUNTIME, "");
    saw(w, CLIENT, "RST 101 8\nRST 103 8\nWINDOW 0 +3\nRST 105 8\nWINDOW 0 +8\nRST 107 8\n");
}

SCENARIO(a_runtime_that_goes_away_ends_what_it_will_not_look_at)
{
    call(w, 1, CREATE, "a");
    call(w, 3, CREATE, "b");
    call(w, 5, "StopPodSandbox", "c");
    move_on(w);
    h2_goaway(&w->out, 1, 0);
    feed(w, RUNTIME);
    told(w, "ended CreateContainer\nended StopPodSandbox\n");
    saw(w, CLIENT, "GOAWAY 1 0\nWINDOW 0 +6\n");
    forward(w, w->calls[0], NULL);
    saw(w, RUNTIME, "DATA 1 6 .....a END\n");
    h2_goaway(&w->out, 1, 0);
    feed(w, CLIENT);
    saw(w, RUNTIME, "GOAWAY 1 0\n");
}

/* Every told call ends exactly once: world_fini() looks. */
SCENARIO(freed_in_every_phase)
{
    request(w, 1, CREATE);
    request(w, 3, CREATE);
    data(w, 3, "\0\0\0", 3, 0);
    feed(w, CLIENT);
    call(w, 5, CREATE, "held");
    call(w, 7, CREATE, "forwarded");
    call(w, 9, CREATE, "refused");
    call(w, 11, CREATE, "refused, answered");
    call(w, 13, "RunPodSandbox", "observed");
    forward(w, w->calls[1], FRAGMENT);
    refuse(w, w->calls[3], "no");
    ack(w, RUNTIME);
    refuse(w, w->calls[2], "no");
    assert_true(w->quiet || w->calls_len == 3);
    data(w, 15, "rest", 4, 0);
    h2_put(&w->out, "\0\0\x9", 3);
    feed(w, CLIENT);
    move_on(w);
}

/* ---- the client breaks the protocol ---- */

SCENARIO(a_frame_inside_a_header_block)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 0, 1, "\x82", 1);
    h2_frame(&w->out, NGHTTP2_PING, 0, 0, "12345678", 8);
    feed_bad(w, CLIENT, "a frame inside a header block");
    saw(w, CLIENT, "GOAWAY 1 1\n");
}

SCENARIO(a_continuation_of_another_stream)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 0, 1, "\x82", 1);
    h2_frame(&w->out, NGHTTP2_CONTINUATION, 4, 3, "\x82", 1);
    feed_bad(w, CLIENT, "a frame inside a header block");
    saw(w, CLIENT, "GOAWAY 1 1\n");
}

SCENARIO(a_continuation_of_nothing)
{
    h2_frame(&w->out, NGHTTP2_CONTINUATION, 4, 1, "\x82", 1);
    feed_bad(w, CLIENT, "a frame inside a header block");
    saw(w, CLIENT, "GOAWAY 0 1\n");
}

SCENARIO(a_client_that_pushes)
{
    h2_frame(&w->out, NGHTTP2_PUSH_PROMISE, 4, 1, "\0\0\0\2", 4);
    feed_bad(w, CLIENT, "a client must not push");
    saw(w, CLIENT, "GOAWAY 0 1\n");
}

SCENARIO(a_runtime_that_pushes)
{
    h2_frame(&w->out, NGHTTP2_PUSH_PROMISE, 4, 1, "\0\0\0\2", 4);
    feed_bad(w, RUNTIME, "the runtime pushes");
    saw(w, CLIENT, "");
}

SCENARIO(a_runtimes_frame_inside_a_header_block)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 0, 1, "\x82", 1);
    h2_frame(&w->out, NGHTTP2_PING, 0, 0, "12345678", 8);
    feed_bad(w, RUNTIME, "a frame inside a header block");
}

SCENARIO(a_block_that_is_not_hpack)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 4, 1, "\x80", 1);
    feed_bad(w, CLIENT, "a header block that is not HPACK");
    saw(w, CLIENT, "GOAWAY 1 9\n");
}

SCENARIO(a_block_that_ends_too_early)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 4, 1, "\x40\x05", 2);
    feed_bad(w, CLIENT, "a header block that ends too early");
    saw(w, CLIENT, "GOAWAY 1 9\n");
}

SCENARIO(padding_longer_than_its_frame)
{
    request(w, 1, CREATE);
    h2_frame(&w->out, NGHTTP2_DATA, H2_PADDED, 1, "\4abc", 4);
    feed_bad(w, CLIENT, "a frame shorter than what it says");
    saw(w, CLIENT, "GOAWAY 1 1\n");
}

SCENARIO(padding_longer_than_its_header_block)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, H2_PADDED | 4, 1, "\4abc", 4);
    feed_bad(w, CLIENT, "a frame shorter than what it says");
    saw(w, CLIENT, "GOAWAY 1 1\n");
}

SCENARIO(headers_too_short_for_their_priority)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, H2_PRIORITY | 4, 1, "\0\0\0\0", 4);
    feed_bad(w, CLIENT, "a frame shorter than what it says");
    saw(w, CLIENT, "GOAWAY 1 6\n");
}

SCENARIO(headers_too_short_for_their_padding)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, H2_PADDED | 4, 1, "", 0);
    feed_bad(w, CLIENT, "a frame shorter than what it says");
    saw(w, CLIENT, "GOAWAY 1 6\n");
}

SCENARIO(data_and_headers_without_a_stream)
{
    h2_headers(&w->writers[CLIENT], &w->out, 0, 0, -1, 0,
               (const char *[]){":path", "/runtime.v1.RuntimeService/CreateContainer", NULL});
    feed_bad(w, CLIENT, "DATA or HEADERS without a stream");
    saw(w, CLIENT, "GOAWAY 0 1\n");
}

SCENARIO(a_flood_of_settings)
{
    for (int i = 0; i < RELAY_SETTINGS_PENDING_MAX; i++)
        h2_settings(&w->out, -1, 0);
    feed(w, CLIENT);
    h2_settings(&w->out, -1, 0);
    feed_bad(w, CLIENT, "too many SETTINGS without an ACK");
    saw(w, CLIENT, "GOAWAY 0 11\n");
}

SCENARIO(a_runtimes_flood_of_settings)
{
    for (int i = 0; i < RELAY_SETTINGS_PENDING_MAX; i++)
        h2_settings(&w->out, -1, 0);
    feed(w, RUNTIME);
    h2_settings(&w->out, -1, 0);
    feed_bad(w, RUNTIME, "SETTINGS cannot be kept");
}

SCENARIO(too_many_streams)
{
    const char *const fields[] = {":path", "/runtime.v1.RuntimeService/CreateContainer", NULL};

    for (uint32_t i = 0; i < RELAY_STREAMS_MAX; i++)
        h2_headers(&w->writers[CLIENT], &w->out, 2 * i + 1, 0, -1, 0, fields);
    feed(w, CLIENT);
    calls_are(w, RELAY_STREAMS_MAX);
    h2_headers(&w->writers[CLIENT], &w->out, 2 * RELAY_STREAMS_MAX + 1, 0, -1, 0, fields);
    feed_bad(w, CLIENT, "too many calls on one connection");
    saw(w, CLIENT, "GOAWAY 8193 11\n");
}

/* Refusals the client resets at once leave a barrier each, until the runtime acknowledges. */
ONCE(too_many_barriers)
{
    const char *const fields[] = {":path", "/runtime.v1.RuntimeService/CreateContainer", NULL};
    uint32_t id = 1;

    w->plan = PLAN_REFUSE;
    for (; id < 2 * RELAY_STREAMS_MAX + 1; id += 2) {
        h2_headers(&w->writers[CLIENT], &w->out, id, 0, -1, 0, fields);
        message(w, id, "", H2_END_STREAM);
        h2_rst(&w->out, id, 8);
    }
    feed(w, CLIENT);
    calls_are(w, 0);
    h2_headers(&w->writers[CLIENT], &w->out, id, 0, -1, 0, fields);
    message(w, id, "", H2_END_STREAM);
    feed_bad(w, CLIENT, "the runtime does not acknowledge SETTINGS");
}

/* ---- what the runtime is left to judge ---- */

SCENARIO(odd_streams_pass_and_leave_nothing_behind)
{
    data(w, 77, "idle", 4, 0);
    h2_request(&w->writers[CLIENT], &w->out, 2, "Version");
    data(w, 2, "even", 4, H2_END_STREAM);
    h2_rst(&w->out, 0, 1);
    h2_rst(&w->out, 99, 1);
    h2_window(&w->out, 0, 0);
    h2_frame(&w->out, NGHTTP2_DATA, H2_PADDED, 5, "\xff", 1); /* nobody looks */
    h2_frame(&w->out, NGHTTP2_WINDOW_UPDATE, 0, 0, "abc", 3);
    h2_frame(&w->out, NGHTTP2_GOAWAY, 0, 0, "a", 1);
    h2_frame(&w->out, NGHTTP2_SETTINGS, 0, 0, "abcdefgh", 8);
    feed(w, CLIENT);
    h2_frame(&w->out, NGHTTP2_WINDOW_UPDATE, 0, 0, "abc", 3);
    h2_frame(&w->out, NGHTTP2_GOAWAY, 0, 0, "a", 1);
    h2_frame(&w->out, NGHTTP2_HEADERS, 4, 0, "\x88", 1);
    h2_window(&w->out, 0, 0x80000000);
    h2_settings(&w->out, 4, 0x80000000);
    h2_settings_ack(&w->out);
    h2_settings_ack(&w->out);
    h2_settings_ack(&w->out);
    feed(w, RUNTIME);
    same(&w->to[RUNTIME], &w->fed[CLIENT]);
    same(&w->to[CLIENT], &w->fed[RUNTIME]);
    calls_are(w, 0);
}

/* DATA on an idle stream must not hide the call that begins there later. */
SCENARIO(data_before_headers_does_not_hide_a_call)
{
    w->plan = PLAN_FRAGMENT;
    call(w, 1, CREATE, "abc");
    request(w, 3, "Version");
    fill(w, 3, 65500, 0);
    data(w, 5, "0123456789ABCDEFGH", 18, 0); /* the runtime would take 17 */
    feed(w, CLIENT);
    move_on(w);
    call(w, 5, CREATE, "abc");
    told(w, "request CreateContainer 3 abc\n");
    move_on(w);
}

SCENARIO(a_runtimes_block_that_is_not_hpack_passes)
{
    call(w, 1, CREATE, "a");
    forward(w, w->calls[0], NULL);
    move_on(w);
    h2_frame(&w->out, NGHTTP2_HEADERS, 4, 1, "\x80", 1);
    data(w, 1, "\0\0\0\0\1i", 6, 0);
    h2_frame(&w->out, NGHTTP2_HEADERS, 5, 1, "\x88", 1);
    feed(w, RUNTIME);
    told(w, "answered CreateContainer 0 i\nended CreateContainer\n");
    same(&w->to[CLIENT], &w->fed[RUNTIME]);
    w->read_to[CLIENT] = buffer_len(&w->to[CLIENT]);
}

SCENARIO(a_kept_frame_larger_than_the_runtime_allows)
{
    uint8_t *bytes = calloc(1, 20000);

    assert_non_null(bytes);
    h2_settings(&w->out, 5, 18000);
    feed(w, RUNTIME);
    request(w, 1, CREATE);
    data(w, 1, "\0\0\xf0\0\0", 5, 0);
    data(w, 1, bytes, 18000, 0);
    feed(w, CLIENT);
    move_on(w);
    data(w, 1, bytes, 18001, 0);
    free(bytes);
    feed_bad(w, CLIENT, "a frame larger than the runtime allows");
    saw(w, CLIENT, "GOAWAY 1 6\n");
}

SCENARIO(a_header_block_without_end)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 0, 1, "\x82", 1);
    for (size_t i = 0; i < RELAY_HEADER_BLOCK_BYTES_MAX / 9; i++)
        h2_frame(&w->out, NGHTTP2_CONTINUATION, 0, 1, "", 0);
    feed_bad(w, CLIENT, "a header block without end");
    saw(w, CLIENT, "GOAWAY 1 11\n");
}

SCENARIO(a_runtimes_header_block_without_end)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 0, 1, "\x88", 1);
    for (size_t i = 0; i < RELAY_HEADER_BLOCK_BYTES_MAX / 9; i++)
        h2_frame(&w->out, NGHTTP2_CONTINUATION, 0, 1, "", 0);
    feed_bad(w, RUNTIME, "a header block of the runtime's without end");
}

/* grpc's C core ends a stream that was reset behind its ACK (RFC 9113 §5.1 would have it stop). */
SCENARIO(a_second_answer_behind_the_barrier)
{
    request(w, 1, CREATE);
    message(w, 1, "abc", 0);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    ack(w, RUNTIME);
    move_on(w);
    h2_answer_end(&w->writers[RUNTIME], &w->out, 1, "1");
    h2_rst(&w->out, 1, 8);
    feed(w, RUNTIME);
    saw(w, CLIENT, "HEADERS 1 END grpc-status=1 grpc-message= x-note=kept\n");
    data(w, 1, "rest", 4, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    calls_are(w, 0);
}

/* Acknowledged before it is whole: the runtime knows no better, and nothing may be written to the
 * entry that is gone. */
SCENARIO(an_ack_before_the_settings_are_whole)
{
    struct buffer frame = {0};

    h2_settings(&frame, 1, 64);
    h2_put(&w->out, buffer_data(&frame), 10);
    feed(w, CLIENT);
    ack(w, RUNTIME);
    h2_put(&w->out, buffer_data(&frame) + 10, 5);
    feed(w, CLIENT);
    buffer_fini(&frame);
    h2_settings(&frame, 4, 70000);
    h2_put(&w->out, buffer_data(&frame), 10);
    feed(w, RUNTIME);
    ack(w, CLIENT);
    h2_put(&w->out, buffer_data(&frame) + 10, 5);
    feed(w, RUNTIME);
    buffer_fini(&frame);
    same(&w->to[RUNTIME], &w->fed[CLIENT]);
    same(&w->to[CLIENT], &w->fed[RUNTIME]);
}

/* RFC 9113 §6.8: what runs goes on, and nothing that runs is put below the last stream. */
#define LIST "ListContainers"

SCENARIO(another_class_for_the_calls_to_come)
{
    call(w, 1, "Version", "one");
    session_set_class(w->session, CRI_VERSION, CRI_CLASS_OBSERVED);
    call(w, 3, "Version", "two");
    told(w, "request Version 3 two\n");
    request(w, 5, LIST);
    feed(w, CLIENT); /* has begun: goes as it did */
    session_set_class(w->session, CRI_LIST_CONTAINERS, CRI_CLASS_INTERCEPTED);
    message(w, 5, "three", H2_END_STREAM);
    feed(w, CLIENT);
    told(w, "");
    answer(w, 3, "v");
    told(w, "answered Version 0 v\nended Version\n");
    call(w, 7, LIST, "four");
    told(w, "request ListContainers 4 four\n");
    if (!w->quiet)
        assert_null(memmem(buffer_data(&w->to[RUNTIME]), buffer_len(&w->to[RUNTIME]), "four", 4));
    session_set_class(w->session, CRI_LIST_CONTAINERS, CRI_CLASS_RELAYED);
    session_set_class(w->session, CRI_VERSION, CRI_CLASS_RELAYED);
    call(w, 9, LIST, "five");
    call(w, 11, "Version", "six");
    told(w, "");
    move_on(w);
    forward(w, w->calls[0], NULL); /* intercepted when it began */
    saw(w, RUNTIME, "DATA 7 9 .....four END\n");
    answer(w, 7, "list");
    told(w, "answered ListContainers 0 list\nended ListContainers\n");
    calls_are(w, 0);
}

/* A refusal of the relay's own says which method it was. */
SCENARIO(a_method_that_cannot_be_read_is_named)
{
    struct buffer framed = {0};

    session_set_class(w->session, CRI_LIST_CONTAINERS, CRI_CLASS_INTERCEPTED);
    h2_message(&framed, 1, "????", 4);
    zip_call(w, 1, LIST, "snappy", &framed);
    ack(w, RUNTIME);
    saw(w, CLIENT,
        "WINDOW 0 +9\n"
        "HEADERS 1 END :status=200 content-type=application/grpc grpc-status=12 grpc-message="
        "ListContainers: of the compressions in grpc-encoding the shim reads only gzip\n");
    buffer_fini(&framed);
}

SCENARIO(a_client_that_is_drained)
{
    call(w, 1, CREATE, "a");
    move_on(w);
    assert_true(session_drain(w->session));
    saw(w, CLIENT, "GOAWAY 2147483647 0\n");
    forward(w, w->calls[0], NULL);
    answer(w, 1, "id");
    saw(w, CLIENT, ANSWER_HEAD(1) "DATA 1 7 .....id\n" ANSWER_END(1));
}

/* RFC 9113 §6.8: the number of the last stream must not rise. */
SCENARIO(a_client_that_the_runtime_drains)
{
    struct buffer frame = {0};

    call(w, 1, CREATE, "a");
    call(w, 3, CREATE, "b");
    move_on(w);
    h2_goaway(&frame, 1, 0);
    h2_put(&w->out, buffer_data(&frame), 9);
    feed(w, RUNTIME);
    assert_true(session_drain(w->session)); /* between its head and its number */
    h2_put(&w->out, buffer_data(&frame) + 9, 8);
    feed(w, RUNTIME);
    saw(w, CLIENT, "GOAWAY 1 0\nWINDOW 0 +6\n");
    assert_true(session_drain(w->session));
    saw(w, CLIENT, "");
    h2_frame(&w->out, NGHTTP2_CONTINUATION, 0, 5, "", 0);
    feed_bad(w, CLIENT, "a frame inside a header block");
    saw(w, CLIENT, "GOAWAY 1 1\n");
    buffer_fini(&frame);
}

#define EVENTS "GetContainerEvents"
#define STOPS "GetContainerEvents: cri-device-shim stops; ask again\n"

SCENARIO(container_events_end_when_a_client_is_drained)
{
    call(w, 1, EVENTS, "");
    h2_answer_head(&w->writers[RUNTIME], &w->out, 1);
    data(w, 1, "\0\0\0\0\2e1", 7, 0);
    feed(w, RUNTIME);
    call(w, 3, EVENTS, ""); /* nothing has come on it */
    request(w, 5, EVENTS);  /* its request is still to come */
    feed(w, CLIENT);
    told(w, "request GetContainerEvents 0 \nrequest GetContainerEvents 0 \n");
    move_on(w);
    assert_true(session_drain(w->session));
    saw(w, CLIENT, "GOAWAY 2147483647 0\n");
    saw(w, RUNTIME, "RST 1 8\nSETTINGS\nRST 3 8\nSETTINGS\n");
    told(w, "ended GetContainerEvents\nended GetContainerEvents\n");
    data(w, 1, "\0\0\0\0\2e2", 7, 0); /* was under way */
    feed(w, RUNTIME);
    saw(w, CLIENT, "DATA 1 7 .....e2\n");
    ack(w, RUNTIME);
    ack(w, RUNTIME);
    saw(w, CLIENT,
        "HEADERS 1 END grpc-status=14 grpc-message=" STOPS
        "HEADERS 3 END :status=200 content-type=application/grpc grpc-status=14 "
        "grpc-message=" STOPS);
    calls_are(w, 1);
}

/* RFC 9113 §3.4: the runtime's SETTINGS come first, though the padding's credit is owed before. */
static void nothing_comes_before_the_runtimes_settings(void **state)
{
    struct world w = {0};

    (void)state;
    world_init(&w);
    h2_put(&w.out, H2_PREFACE, strlen(H2_PREFACE));
    h2_settings(&w.out, -1, 0);
    request(&w, 1, CREATE);
    h2_data(&w.out, 1, "\0\0\0\0\3abc", 8, H2_END_STREAM, 200);
    feed(&w, CLIENT);
    assert_int_equal(buffer_len(&w.to[CLIENT]), 0);
    h2_settings(&w.out, -1, 0);
    feed(&w, RUNTIME);
    saw(&w, CLIENT, "SETTINGS\nWINDOW 0 +201\n");
    world_fini(&w);
}

static void one_that_has_not_spoken_cannot_be_drained(void **state)
{
    struct world w = {0};

    (void)state;
    world_init(&w);
    assert_false(session_drain(w.session));
    assert_int_equal(w.writes, 0);
    world_fini(&w);
}

static void what_is_not_http2_ends_at_its_first_wrong_byte(void **state)
{
    static const char *const lines[] = {"GET / HTTP/1.1\r\n", "PRI * HTTP/1.1\r\n",
                                        "PRI * HTTP/2.0\r\n\r\nSM\r\n\rx", "\x16\x03\x01"};

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        for (size_t cut = 0; cut < 2; cut++) {
            struct world w = {.cut = cut};

            world_init(&w);
            h2_put(&w.out, lines[i], strlen(lines[i]));
            feed_bad(&w, CLIENT, "the client does not speak HTTP/2");
            assert_int_equal(buffer_len(&w.to[CLIENT]), 0);
            world_fini(&w);
        }
    }
}

/* ---- no memory ---- */

static scenario *const FOR_MEMORY[] = {
    a_fragment_comes_first_script,
    bytes_behind_a_held_message_do_not_lose_it_script,
    a_message_is_withheld_until_it_is_whole_script,
    acks_go_to_whom_they_belong_script,
    a_refused_client_that_goes_on_sending_script,
    a_gzip_message_goes_on_plain_with_a_fragment_and_packed_without_script,
    an_observed_call_passes_and_is_shown_script,
    early_answers_script,
    freed_in_every_phase_script,
    the_runtimes_windows_are_never_outgrown_script,
    a_relayed_call_waits_for_the_connection_window_script,
    the_ack_of_a_lower_window_waits_for_what_is_parked_script,
    a_header_block_behind_the_ack_of_a_lower_window_script,
    another_message_takes_its_place_script,
    container_events_end_when_a_client_is_drained_script,
};

static void without_memory_nothing_leaks_or_breaks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof FOR_MEMORY / sizeof *FOR_MEMORY; i++) {
        for (unsigned n = 1;; n++) {
            struct world w = {.quiet = true};

            alloc_fail_at(n);
            world_init(&w);
            if (w.session) {
                greet(&w);
                FOR_MEMORY[i](&w);
            }
            assert_true(w.error == 0 || w.error == -ENOMEM || w.error == -EPROTO);
            if (w.session && session_error(w.session))
                assert_true(w.error < 0 || w.failed); /* or nobody would close it */
            world_fini(&w);
            if (!alloc_failed())
                break;
        }
        alloc_fail_at(0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_traffic_passes_byte_for_byte),
        cmocka_unit_test(one_read_is_one_write),
        cmocka_unit_test(a_message_is_withheld_until_it_is_whole),
        cmocka_unit_test(a_fragment_comes_first),
        cmocka_unit_test(another_message_takes_its_place),
        cmocka_unit_test(the_end_may_come_in_a_frame_of_its_own),
        cmocka_unit_test(padding_is_dropped_and_credited),
        cmocka_unit_test(bytes_behind_the_first_message_follow_it),
        cmocka_unit_test(bytes_behind_a_held_message_do_not_lose_it),
        cmocka_unit_test(what_is_no_whole_message_passes),
        cmocka_unit_test(an_empty_message_is_a_message),
        cmocka_unit_test(trailers_send_the_call_on_without_its_message),
        cmocka_unit_test(a_decision_in_the_middle_of_a_frame),
        cmocka_unit_test(a_refusal_waits_for_the_barrier),
        cmocka_unit_test(a_refusal_in_the_callback),
        cmocka_unit_test(the_decoder_keeps_its_table),
        cmocka_unit_test(acks_go_to_whom_they_belong),
        cmocka_unit_test(a_barrier_behind_half_a_settings_frame),
        cmocka_unit_test(a_refusal_in_the_middle_of_a_header_block),
        cmocka_unit_test(a_lowered_table_size_is_said_by_the_refusal),
        cmocka_unit_test(the_runtimes_headers_before_the_barrier),
        cmocka_unit_test(the_runtimes_whole_answer_before_the_barrier),
        cmocka_unit_test(resets_before_the_barrier),
        cmocka_unit_test(a_refused_client_that_goes_on_sending),
        cmocka_unit_test(a_refused_client_that_stops),
        cmocka_unit_test(a_refused_client_that_acknowledges_nothing),
        cmocka_unit_test(a_message_over_the_limit_is_refused),
        cmocka_unit_test(a_gzip_message_goes_on_plain_with_a_fragment_and_packed_without),
        cmocka_unit_test(a_gzip_bomb_is_refused),
        cmocka_unit_test(inflated_messages_have_a_common_bound),
        cmocka_unit_test(copies_of_answers_have_a_common_bound),
        cmocka_unit_test(compressions_that_cannot_be_read),
        cmocka_unit_test(a_message_over_the_windows_is_credited),
        cmocka_unit_test(injected_bytes_are_swallowed_from_later_updates),
        cmocka_unit_test(a_smaller_message_is_credited),
        cmocka_unit_test(a_larger_message_waits_for_the_windows),
        cmocka_unit_test(held_calls_do_not_starve_others),
        cmocka_unit_test(the_runtimes_windows_are_never_outgrown),
        cmocka_unit_test(what_follows_a_forwarded_message_waits_for_the_stream_window),
        cmocka_unit_test(a_lowered_window_does_not_strand_a_half_message),
        cmocka_unit_test(a_relayed_call_waits_for_the_connection_window),
        cmocka_unit_test(the_ack_of_a_lower_window_waits_for_what_is_parked),
        cmocka_unit_test(the_ack_of_a_lower_window_goes_when_what_is_parked_goes),
        cmocka_unit_test(a_header_block_behind_the_ack_of_a_lower_window),
        cmocka_unit_test(too_much_held_is_refused),
        cmocka_unit_test(too_much_behind_a_held_message_ends_the_call),
        cmocka_unit_test(more_than_the_window_is_not_kept),
        cmocka_unit_test(an_observed_call_passes_and_is_shown),
        cmocka_unit_test(observed_requests_have_a_common_bound),
        cmocka_unit_test(early_answers),
        cmocka_unit_test(an_early_answer_in_the_middle_of_the_last_frame),
        cmocka_unit_test(resets_in_every_phase),
        cmocka_unit_test(a_runtime_that_goes_away_ends_what_it_will_not_look_at),
        cmocka_unit_test(freed_in_every_phase),
        cmocka_unit_test(a_frame_inside_a_header_block),
        cmocka_unit_test(a_continuation_of_another_stream),
        cmocka_unit_test(a_continuation_of_nothing),
        cmocka_unit_test(a_client_that_pushes),
        cmocka_unit_test(a_runtime_that_pushes),
        cmocka_unit_test(a_runtimes_frame_inside_a_header_block),
        cmocka_unit_test(a_block_that_is_not_hpack),
        cmocka_unit_test(a_block_that_ends_too_early),
        cmocka_unit_test(padding_longer_than_its_frame),
        cmocka_unit_test(padding_longer_than_its_header_block),
        cmocka_unit_test(headers_too_short_for_their_priority),
        cmocka_unit_test(headers_too_short_for_their_padding),
        cmocka_unit_test(data_and_headers_without_a_stream),
        cmocka_unit_test(a_flood_of_settings),
        cmocka_unit_test(a_runtimes_flood_of_settings),
        cmocka_unit_test(too_many_streams),
        cmocka_unit_test(too_many_barriers),
        cmocka_unit_test(odd_streams_pass_and_leave_nothing_behind),
        cmocka_unit_test(data_before_headers_does_not_hide_a_call),
        cmocka_unit_test(a_runtimes_block_that_is_not_hpack_passes),
        cmocka_unit_test(a_kept_frame_larger_than_the_runtime_allows),
        cmocka_unit_test(a_header_block_without_end),
        cmocka_unit_test(a_runtimes_header_block_without_end),
        cmocka_unit_test(a_second_answer_behind_the_barrier),
        cmocka_unit_test(an_ack_before_the_settings_are_whole),
        cmocka_unit_test(another_class_for_the_calls_to_come),
        cmocka_unit_test(a_method_that_cannot_be_read_is_named),
        cmocka_unit_test(a_client_that_is_drained),
        cmocka_unit_test(a_client_that_the_runtime_drains),
        cmocka_unit_test(container_events_end_when_a_client_is_drained),
        cmocka_unit_test(nothing_comes_before_the_runtimes_settings),
        cmocka_unit_test(one_that_has_not_spoken_cannot_be_drained),
        cmocka_unit_test(what_is_not_http2_ends_at_its_first_wrong_byte),
        cmocka_unit_test(without_memory_nothing_leaks_or_breaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
