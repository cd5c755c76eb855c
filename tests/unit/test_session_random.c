/*
 * shim/relay/session.c between a correct client and a strict runtime that do as a seed says: what
 * arrives is what was sent, no window is outgrown, and in the end the two ends agree on it.
 * SESSION_SEED=n replays one seed, SESSION_RUNS=n sets how many there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "h2_script.h"
#include "shim/relay/session.h"

#define RUNS 2000
#define STEPS 160
#define DRAIN_ROUNDS_MAX 5000
#define STREAMS_MAX 12
#define FRAGMENT "<the fragment of options>"
#define FRAGMENT_BYTES (sizeof FRAGMENT - 1)
#define WINDOW_PENDING_MAX 64
#define CLIENT SESSION_CLIENT
#define RUNTIME SESSION_RUNTIME

static const char *const METHODS[] = {"Version", "StopPodSandbox", "CreateContainer",
                                      "CreateContainer"};

enum decision { UNDECIDED, FORWARDED, WITH_FRAGMENT, INSTEAD, REFUSED };

struct stream {
    uint32_t id;
    size_t method;
    uint8_t *request; /* framed message */
    size_t request_bytes;
    struct session_call *call; /* held by the owner */
    bool answered_first;       /* the answer was under way when the request was shown */
    enum decision decision;
    uint8_t *other; /* in the place of the message */
    size_t other_bytes;
    /* the client's view */
    int64_t window;
    size_t sent;
    bool client_sent_end, client_closed, client_got_end, client_reset;
    int status_seen; /* 14: our refusal */
    /* the runtime's view */
    bool known;
    int64_t room;
    uint32_t consumed;
    struct buffer got;
    bool runtime_got_end, runtime_answered, runtime_closed;
};

struct world {
    uint64_t seed;
    struct h2_random random;
    struct session *session;
    struct h2_writer writers[2];
    struct h2_reader readers[2];
    struct buffer from[2]; /* sent by an end, not yet fed */
    struct buffer to[2];   /* written to an end, not yet read by it */
    bool preface_read;
    struct stream streams[STREAMS_MAX];
    size_t streams_len;
    size_t told;
    /* the client */
    int64_t window;
    int64_t initial;
    /* the runtime */
    int64_t room;
    int64_t room_initial;                   /* acknowledged */
    uint32_t room_news[WINDOW_PENDING_MAX]; /* SETTINGS the client has yet to acknowledge */
    size_t room_news_len;
    uint32_t room_last; /* announced */
    bool lowered;       /* one was smaller than that before it */
    uint32_t consumed;
    unsigned acks_due; /* by the runtime */
};

#define CHECK(w, condition)                                                                        \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("seed %llu, line %d: %s", (unsigned long long)(w)->seed, __LINE__,            \
                     #condition);                                                                  \
    } while (0)

static bool chance(struct world *w, uint32_t percent)
{
    return h2_random(&w->random, 100) < percent;
}

static struct stream *find(struct world *w, uint32_t id)
{
    for (size_t i = 0; i < w->streams_len; i++) {
        if (w->streams[i].id == id)
            return &w->streams[i];
    }
    return NULL;
}

/* ---- the owner ---- */

static struct stream *of_call(struct world *w, const struct session_call *call)
{
    for (size_t i = 0; i < w->streams_len; i++) {
        if (w->streams[i].call == call)
            return &w->streams[i];
    }
    return NULL;
}

/* A message to be sent in the place of the client's, of any size beside it. */
static void make_other(struct world *w, struct stream *st)
{
    st->other_bytes = h2_random(&w->random, (uint32_t)(2 * st->request_bytes));
    st->other = malloc(st->other_bytes + 1);
    assert_non_null(st->other);
    for (size_t i = 0; i < st->other_bytes; i++)
        st->other[i] = (uint8_t)(i * 17 + st->id);
}

static void decide(struct world *w, struct stream *st)
{
    struct session_call *call = st->call;

    st->decision = 1 + h2_random(&w->random, 4);
    if (st->decision == REFUSED) {
        st->call = NULL;
        w->told--;
        session_refuse(w->session, call, 14, "not now");
        return;
    }
    if (st->decision == INSTEAD) {
        make_other(w, st);
        CHECK(w,
              session_forward_instead(w->session, call, NULL, 0, st->other, st->other_bytes) == 0);
        return;
    }
    CHECK(w, session_forward(w->session, call, st->decision == FORWARDED ? NULL : FRAGMENT,
                             st->decision == FORWARDED ? 0 : FRAGMENT_BYTES) == 0);
}

static void on_write(void *user, enum session_end to, const struct iovec *pieces, int n)
{
    struct world *w = user;

    for (int i = 0; i < n; i++)
        h2_put(&w->to[to], pieces[i].iov_base, pieces[i].iov_len);
}

static void on_request(void *user, struct session *session, struct session_call *call)
{
    struct world *w = user;
    uint32_t id;
    struct stream *st;

    /* the body begins with its stream's number */
    CHECK(w, session == w->session && call->message_bytes >= sizeof id);
    memcpy(&id, call->message, sizeof id);
    st = find(w, id);
    CHECK(w, st && !st->call && call->message_bytes == st->request_bytes - 5);
    CHECK(w, memcmp(call->message, st->request + 5, call->message_bytes) == 0);
    st->call = call;
    st->answered_first = st->runtime_answered;
    w->told++;
    if (st->method >= 2 && chance(w, 40))
        decide(w, st);
}

static void on_answered(void *user, struct session_call *call, int status, const uint8_t *message,
                        size_t bytes)
{
    struct world *w = user;

    struct stream *st = of_call(w, call);

    CHECK(w, st && status == 0);
    CHECK(w, message ? bytes == 2 : st->answered_first);
}

static void on_ended(void *user, struct session_call *call)
{
    struct world *w = user;
    struct stream *st = of_call(w, call);

    CHECK(w, st);
    st->call = NULL;
    w->told--;
}

static void on_failed(void *user)
{
    (void)user;
    fail_msg("the session failed");
}

static const struct session_ops OPS = {.write = on_write, .failed = on_failed};
static const struct session_owner_ops OWNER_OPS = {
    .request = on_request, .answered = on_answered, .ended = on_ended};

/* ---- the client ---- */

static void client_begin(struct world *w)
{
    struct stream *st = &w->streams[w->streams_len];
    uint32_t bytes = 4 + h2_random(&w->random, chance(w, 10) ? 150000 : 3000);

    if (w->streams_len == STREAMS_MAX)
        return;
    *st = (struct stream){.id = (uint32_t)(2 * w->streams_len + 1), .window = w->initial};
    w->streams_len++;
    st->method = h2_random(&w->random, 4);
    st->request_bytes = bytes + 5;
    st->request = malloc(st->request_bytes);
    assert_non_null(st->request);
    for (size_t i = 9; i < st->request_bytes; i++)
        st->request[i] = (uint8_t)(i * 31 + st->id);
    st->request[0] = 0;
    for (int i = 0; i < 4; i++)
        st->request[1 + i] = (uint8_t)(bytes >> (24 - 8 * i));
    memcpy(st->request + 5, &st->id, sizeof st->id);
    h2_request(&w->writers[CLIENT], &w->from[CLIENT], st->id, METHODS[st->method]);
}

static void client_send(struct world *w, struct stream *st)
{
    int64_t room = st->window < w->window ? st->window : w->window;
    size_t left = st->request_bytes - st->sent;
    uint32_t limit = chance(w, 30) ? 40 : 16384;
    size_t n = left < limit ? left : 1 + h2_random(&w->random, limit);
    int pad = chance(w, 20) ? (int)h2_random(&w->random, 255) : -1;
    bool end;

    if (st->client_closed || st->client_sent_end)
        return;
    n = (int64_t)n > room ? (size_t)(room > 0 ? room : 0) : n;
    if ((int64_t)n + pad + 1 > room || n + 256 > 16384)
        pad = -1;
    end = n == left && chance(w, 70);
    if (n == 0 && left > 0)
        return;
    if (n == 0)
        pad = -1;
    end = end || (left == 0);
    h2_data(&w->from[CLIENT], st->id, st->request + st->sent, n, end ? H2_END_STREAM : 0, pad);
    st->sent += n;
    st->window -= (int64_t)n + pad + 1;
    w->window -= (int64_t)n + pad + 1;
    st->client_sent_end = end;
    if (end && st->client_got_end)
        st->client_closed = true;
}

static void client_reset(struct world *w, struct stream *st)
{
    if (st->client_closed)
        return;
    h2_rst(&w->from[CLIENT], st->id, 8);
    st->client_closed = st->client_reset = true;
}

static uint32_t number(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void client_settings(struct world *w, const struct h2_seen *f)
{
    if (f->flags & H2_ACK)
        return;
    if (f->len == 6) {
        int64_t delta = (int64_t)number(f->payload + 2) - w->initial;

        w->initial += delta;
        for (size_t i = 0; i < w->streams_len; i++)
            w->streams[i].window += delta;
    }
    h2_settings_ack(&w->from[CLIENT]);
}

static void client_ended(struct world *w, struct stream *st)
{
    const char *fields = (const char *)buffer_data(&w->readers[CLIENT].fields);
    size_t len = buffer_len(&w->readers[CLIENT].fields);

    CHECK(w, !st->client_got_end);
    st->client_got_end = true;
    st->status_seen = memmem(fields, len, "grpc-status=14", 14) ? 14 : 0;
    CHECK(w, st->status_seen == 0 || st->decision == REFUSED);
    if (!st->client_sent_end)
        client_reset(w, st); /* nobody wants the rest */
    st->client_closed = true;
}

static void client_frame(struct world *w, const struct h2_seen *f)
{
    struct stream *st = find(w, f->stream);

    switch (f->type) {
    case NGHTTP2_SETTINGS:
        client_settings(w, f);
        break;
    case NGHTTP2_WINDOW_UPDATE:
        CHECK(w, f->len == 4 && number(f->payload) > 0);
        if (f->stream == 0)
            w->window += number(f->payload);
        else
            st->window += number(f->payload);
        CHECK(w, w->window <= INT32_MAX && (!st || st->window <= INT32_MAX));
        break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
        CHECK(w, st && (!st->client_got_end || st->client_reset));
        if (f->flags & H2_END_STREAM && !st->client_reset)
            client_ended(w, st);
        break;
    case NGHTTP2_RST_STREAM:
        CHECK(w, st);
        st->client_closed = true;
        break;
    default:
        CHECK(w, false);
    }
}

/* ---- the runtime ---- */

static void runtime_answer(struct world *w, struct stream *st)
{
    if (!st->known || st->runtime_answered || st->runtime_closed)
        return;
    h2_answer(&w->writers[RUNTIME], &w->from[RUNTIME], st->id, "ok");
    st->runtime_answered = true;
}

static void runtime_reset(struct world *w, struct stream *st)
{
    if (!st->known || st->runtime_answered || st->runtime_closed)
        return;
    h2_rst(&w->from[RUNTIME], st->id, 2);
    st->runtime_closed = true;
}

static void runtime_grant(struct world *w, uint32_t id, uint32_t bytes)
{
    struct stream *st = find(w, id);

    if (bytes == 0)
        return;
    h2_window(&w->from[RUNTIME], id, bytes);
    if (id == 0) {
        w->room += bytes;
        w->consumed -= bytes;
    } else {
        st->room += bytes;
        st->consumed -= bytes < st->consumed ? bytes : st->consumed;
    }
}

static void runtime_grant_some(struct world *w)
{
    struct stream *st =
        w->streams_len ? &w->streams[h2_random(&w->random, (uint32_t)w->streams_len)] : NULL;

    if (chance(w, 50))
        runtime_grant(w, 0, h2_random(&w->random, w->consumed + 1));
    else if (st && st->known && !st->runtime_closed)
        runtime_grant(w, st->id, h2_random(&w->random, st->consumed + 1));
}

static void runtime_new_window(struct world *w)
{
    uint32_t value = h2_random(&w->random, chance(w, 50) ? 300 : 120000);

    if (w->room_news_len == WINDOW_PENDING_MAX)
        return;
    w->lowered = w->lowered || value < w->room_last;
    w->room_last = value;
    w->room_news[w->room_news_len++] = value;
    h2_settings(&w->from[RUNTIME], 4, value);
}

static void runtime_ack(struct world *w)
{
    if (w->acks_due == 0)
        return;
    w->acks_due--;
    h2_settings_ack(&w->from[RUNTIME]);
}

static void runtime_settings(struct world *w, const struct h2_seen *f)
{
    int64_t delta;

    if (!(f->flags & H2_ACK)) {
        w->acks_due++;
        return;
    }
    CHECK(w, w->room_news_len > 0);
    delta = (int64_t)w->room_news[0] - w->room_initial;
    w->room_news_len--;
    memmove(w->room_news, w->room_news + 1, w->room_news_len * sizeof *w->room_news);
    w->room_initial += delta;
    for (size_t i = 0; i < w->streams_len; i++)
        w->streams[i].room += w->streams[i].known ? delta : 0;
}

static void runtime_got_end(struct world *w, struct stream *st)
{
    size_t extra = st->decision == WITH_FRAGMENT ? FRAGMENT_BYTES : 0;
    const uint8_t *message = st->decision == INSTEAD ? st->other : st->request + 5;
    size_t bytes = st->decision == INSTEAD ? st->other_bytes : st->request_bytes - 5;
    const uint8_t *got = buffer_data(&st->got);

    CHECK(w, !st->runtime_got_end);
    st->runtime_got_end = true;
    CHECK(w, st->method < 2 || (st->decision != UNDECIDED && st->decision != REFUSED));
    CHECK(w, buffer_len(&st->got) == 5 + extra + bytes);
    CHECK(w, got[0] == 0 && number(got + 1) == buffer_len(&st->got) - 5);
    CHECK(w, memcmp(got + 5, FRAGMENT, extra) == 0);
    CHECK(w, memcmp(got + 5 + extra, message, bytes) == 0);
}

static void runtime_data(struct world *w, const struct h2_seen *f)
{
    struct stream *st = find(w, f->stream);
    bool open;

    CHECK(w, st && st->known);
    CHECK(w, f->wire_len <= 16384);
    CHECK(w, (int64_t)f->wire_len <= w->room || f->wire_len == 0);
    w->room -= (int64_t)f->wire_len;
    w->consumed += (uint32_t)f->wire_len;
    open = !st->runtime_closed && !st->runtime_answered;
    if (st->runtime_closed)
        return;
    /* DATA of a relayed call that waited for the connection's window may come behind the client's
     * ACK of a smaller stream window: the relay keeps no ledger for such a stream. */
    CHECK(w,
          (int64_t)f->wire_len <= st->room || f->wire_len == 0 || (st->method < 2 && w->lowered));
    st->room -= (int64_t)f->wire_len;
    st->consumed += (uint32_t)f->wire_len;
    h2_put(&st->got, f->payload, f->len);
    if (f->flags & H2_END_STREAM && open)
        runtime_got_end(w, st);
}

static void runtime_frame(struct world *w, const struct h2_seen *f)
{
    struct stream *st = find(w, f->stream);

    switch (f->type) {
    case NGHTTP2_SETTINGS:
        runtime_settings(w, f);
        break;
    case NGHTTP2_HEADERS:
        CHECK(w, st && !st->known);
        st->known = true;
        st->room = w->room_initial;
        break;
    case NGHTTP2_DATA:
        runtime_data(w, f);
        break;
    case NGHTTP2_RST_STREAM:
        CHECK(w, st && st->known);
        st->runtime_closed = true;
        break;
    default:
        CHECK(w, false);
    }
}

/* ---- the wires ---- */

static void read_all(struct world *w, enum session_end end)
{
    struct h2_reader *r = &w->readers[end];
    struct h2_seen f;

    if (end == RUNTIME && !w->preface_read) {
        if (buffer_len(&w->to[end]) < strlen(H2_PREFACE))
            return;
        buffer_consume(&w->to[end], strlen(H2_PREFACE));
        w->preface_read = true;
    }
    r->bytes = buffer_data(&w->to[end]);
    r->len = buffer_len(&w->to[end]);
    while (r->len > 0 && h2_read(r, &f)) {
        if (end == CLIENT)
            client_frame(w, &f);
        else
            runtime_frame(w, &f);
    }
    buffer_consume(&w->to[end], buffer_len(&w->to[end]) - r->len);
}

static void deliver(struct world *w, enum session_end from, size_t n)
{
    uint8_t *copy;

    if (n == 0)
        return;
    copy = malloc(n);
    assert_non_null(copy);
    memcpy(copy, buffer_data(&w->from[from]), n);
    buffer_consume(&w->from[from], n);
    if (session_feed(w->session, from, copy, n) != 0)
        fail_msg("seed %llu: %s", (unsigned long long)w->seed, session_error(w->session));
    free(copy);
}

static void step(struct world *w)
{
    struct stream *st =
        w->streams_len ? &w->streams[h2_random(&w->random, (uint32_t)w->streams_len)] : NULL;
    enum session_end end = h2_random(&w->random, 2);
    uint32_t have = (uint32_t)buffer_len(&w->from[end]);

    switch (h2_random(&w->random, 12)) {
    case 0:
        client_begin(w);
        break;
    case 1:
    case 2:
    case 3:
        if (st)
            client_send(w, st);
        break;
    case 4:
    case 5:
        deliver(w, end, chance(w, 30) ? h2_random(&w->random, have + 1) : have);
        break;
    case 6:
    case 7:
        read_all(w, end);
        break;
    case 8:
        if (st && st->call && st->method >= 2 && st->decision == UNDECIDED)
            decide(w, st);
        break;
    case 9:
        runtime_grant_some(w);
        break;
    case 10:
        runtime_ack(w);
        if (st && st->runtime_got_end)
            runtime_answer(w, st);
        break;
    default:
        if (chance(w, 15))
            runtime_new_window(w);
        else if (chance(w, 10))
            h2_settings(&w->from[CLIENT], 3, 100);
        else if (st && chance(w, 10))
            client_reset(w, st);
        else if (st && chance(w, 10))
            runtime_answer(w, st);
        else if (st && chance(w, 5))
            runtime_reset(w, st);
        break;
    }
}

/* Everybody finishes what is begun. Whether anything is left to do. */
static bool drain(struct world *w)
{
    bool busy = false;

    for (size_t i = 0; i < w->streams_len; i++) {
        struct stream *st = &w->streams[i];

        client_send(w, st);
        if (st->call && st->method >= 2 && st->decision == UNDECIDED)
            decide(w, st);
        if (st->runtime_got_end)
            runtime_answer(w, st);
        if (st->known && !st->runtime_closed) {
            runtime_grant(w, st->id, st->consumed);
            if (st->room < 1000)
                runtime_grant(w, st->id, (uint32_t)(1000 - st->room));
        }
        busy = busy || !st->client_closed;
    }
    runtime_grant(w, 0, w->consumed);
    while (w->acks_due > 0)
        runtime_ack(w);
    for (int end = CLIENT; end <= RUNTIME; end++) {
        deliver(w, end, buffer_len(&w->from[end]));
        read_all(w, end);
        busy = busy || buffer_len(&w->from[end]) > 0 || buffer_len(&w->to[end]) > 0;
    }
    for (int end = CLIENT; end <= RUNTIME; end++)
        busy = busy || buffer_len(&w->from[end]) > 0 || buffer_len(&w->to[end]) > 0;
    return busy || w->consumed > 0 || w->acks_due > 0;
}

static void begin(struct world *w)
{
    w->session = session_new(&OPS, w, (struct session_owner){&OWNER_OPS, w});
    assert_non_null(w->session);
    for (int end = CLIENT; end <= RUNTIME; end++) {
        h2_writer_init(&w->writers[end]);
        h2_reader_init(&w->readers[end]);
    }
    w->window = w->initial = w->room = w->room_initial = w->room_last = 65535;
    h2_put(&w->from[CLIENT], H2_PREFACE, strlen(H2_PREFACE));
    h2_settings(&w->from[CLIENT], -1, 0);
    if (chance(w, 50))
        runtime_new_window(w);
}

static void end(struct world *w)
{
    session_free(w->session);
    for (int i = CLIENT; i <= RUNTIME; i++) {
        h2_writer_fini(&w->writers[i]);
        h2_reader_fini(&w->readers[i]);
        buffer_fini(&w->from[i]);
        buffer_fini(&w->to[i]);
    }
    for (size_t i = 0; i < w->streams_len; i++) {
        free(w->streams[i].request);
        free(w->streams[i].other);
        buffer_fini(&w->streams[i].got);
    }
}

static void run(uint64_t seed)
{
    struct world *w = calloc(1, sizeof *w);
    unsigned rounds = 0;

    assert_non_null(w);
    w->seed = w->random.state = seed;
    begin(w);
    for (int i = 0; i < STEPS; i++)
        step(w);
    if (chance(w, 90)) {
        while (drain(w))
            CHECK(w, ++rounds < DRAIN_ROUNDS_MAX);
        CHECK(w, session_calls(w->session) == 0);
        CHECK(w, w->told == 0);
        CHECK(w, w->window == w->room);
        for (size_t i = 0; i < w->streams_len; i++)
            CHECK(w, w->streams[i].decision != REFUSED || !w->streams[i].runtime_got_end);
    }
    end(w);
    CHECK(w, w->told == 0);
    free(w);
}

static void any_interleaving_keeps_messages_and_windows(void **state)
{
    const char *seed = getenv("SESSION_SEED");
    const char *runs = getenv("SESSION_RUNS");
    uint64_t last = runs ? strtoull(runs, NULL, 10) : RUNS;

    (void)state;
    if (seed) {
        run(strtoull(seed, NULL, 10));
        return;
    }
    for (uint64_t i = 1; i <= last; i++)
        run(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_interleaving_keeps_messages_and_windows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
