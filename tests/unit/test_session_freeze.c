/*
 * shim/relay/session/freeze.c, journal.c and replay.c: recorded and random exchanges are cut into
 * pieces, and behind each piece the session is frozen and another one thawed in its place, by
 * another release now and then; or behind some another one is made of its journal. What both ends
 * are sent must be what a session that was left alone sends them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "h2_script.h"
#include "session_next.h"
#include "shim/relay/replay.h"
#include "shim/relay/session.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/stream.h"

#define CLIENT SESSION_CLIENT
#define RUNTIME SESSION_RUNTIME
#define HELD_MAX 64
#define SEEDS 40
#define EVENTS 90
#define STREAMS_MAX 24
#define MESSAGE_BYTES_MAX 6000
/* Of larger recordings the pieces are of random length. */
#define BYTE_BY_BYTE_MAX 5000
#define CAP_HEAD_BYTES 13
#define OBSERVED_MAX 4096

/* ---- what is fed ---- */

struct event {
    enum session_end from;
    size_t at, len; /* of the bytes */
};

struct tape {
    struct buffer events; /* of struct event */
    struct buffer bytes;
};

static void add(struct tape *tape, enum session_end from, const void *bytes, size_t len)
{
    const struct event event = {.from = from, .at = buffer_len(&tape->bytes), .len = len};

    h2_put(&tape->events, &event, sizeof event);
    h2_put(&tape->bytes, bytes, len);
}

static void tape_fini(struct tape *tape)
{
    buffer_fini(&tape->events);
    buffer_fini(&tape->bytes);
}

/* ---- the owner ---- */

struct playing {
    struct session *session;
    struct buffer to[2];
    struct session_call *held[HELD_MAX];
    size_t held_len;
    unsigned frozen, asked_again;
    bool thawing;
    size_t most;                   /* bytes of a state */
    size_t observed[OBSERVED_MAX]; /* by stream: bytes of its message */
    /* Of one that is played into a journal: */
    struct journal *journal;
    int pairs[2][2];
    struct h2_random when;
    unsigned replayed, put, passed;
    uint64_t put_out[2];
    uint64_t taken[2]; /* by the ends, of that */
};

static void look_in_between(struct playing *p);

/* What waits for it, or some of that. */
static void end_takes(struct playing *p, enum session_end to)
{
    size_t len = buffer_len(&p->to[to]) - p->taken[to];
    static uint8_t gone[65536];
    struct iovec piece = {(void *)(buffer_data(&p->to[to]) + p->taken[to]), len};

    if (len == 0 || h2_random(&p->when, 20) == 0)
        return;
    if (h2_random(&p->when, 20) == 0 || len > sizeof gone)
        piece.iov_len = 1 + h2_random(&p->when, len < sizeof gone ? (uint32_t)len : sizeof gone);
    assert_int_equal(journal_write(p->journal, to, p->pairs[to][0], &piece, 1), piece.iov_len);
    assert_int_equal(read(p->pairs[to][1], gone, sizeof gone), piece.iov_len);
    p->taken[to] += piece.iov_len;
}

static void on_write(void *user, enum session_end to, const struct iovec *pieces, int n)
{
    struct playing *p = user;

    for (int i = 0; i < n; i++) {
        /* of one that is made again: the end has it from the one before */
        size_t gone = p->taken[to] > p->put_out[to] ? p->taken[to] - p->put_out[to] : 0;

        gone = p->journal ? 0 : gone < pieces[i].iov_len ? gone : pieces[i].iov_len;
        h2_put(&p->to[to], (const uint8_t *)pieces[i].iov_base + gone, pieces[i].iov_len - gone);
        p->put_out[to] += pieces[i].iov_len;
    }
    if (p->journal)
        end_takes(p, to);
    look_in_between(p);
}

static void on_decided(void *user, uint32_t told, const struct session_decision *decision)
{
    struct playing *p = user;

    if (p->journal)
        journal_decide(p->journal, told, decision);
    look_in_between(p);
}

static void on_failed(void *user)
{
    (void)user;
}

static void on_begun(void *owner, struct session *session, pid_t client)
{
    (void)owner, (void)session, (void)client;
}

static void on_gone(void *owner, struct session *session)
{
    (void)owner, (void)session;
}

static void decide(struct playing *p, struct session_call *call)
{
    static const char fragment[] = "<fragment>", other[] = "something else";

    switch (call->message_bytes % 4) {
    case 0:
        assert_int_equal(session_forward(p->session, call, NULL, 0), 0);
        break;
    case 1:
        assert_int_equal(session_forward(p->session, call, fragment, sizeof fragment), 0);
        break;
    case 2:
        assert_int_equal(session_forward_instead(p->session, call, NULL, 0, other, sizeof other),
                         0);
        break;
    default:
        session_refuse(p->session, call, 14, "not now");
        break;
    }
}

static size_t *observed(struct playing *p, const struct session_call *call)
{
    return &p->observed[((const struct stream *)call)->id / 2 % OBSERVED_MAX];
}

static unsigned regained; /* in all of them, of observed calls */

/* With its request, which is compressed where it cannot be read any more. */
static void on_regained(void *owner, struct session *session, struct session_call *call)
{
    const struct buffer *request = &((const struct stream *)call)->request;
    struct playing *p = owner;

    (void)session;
    if (cri_method_class(call->method) != CRI_CLASS_OBSERVED)
        return;
    assert_true(buffer_len(request) > 0);
    assert_true(call->message || buffer_data(request)[0] != 0);
    if (!call->message)
        return;
    assert_int_equal(call->message_bytes, *observed(p, call));
    regained++;
}

static void on_request(void *owner, struct session *session, struct session_call *call)
{
    struct playing *p = owner;

    (void)session;
    if (cri_method_class(call->method) != CRI_CLASS_INTERCEPTED) {
        *observed(p, call) = call->message_bytes;
        return;
    }
    assert_true(p->held_len < HELD_MAX);
    if (call->message_bytes % 5 == 0) {
        decide(p, call); /* from inside */
        return;
    }
    p->held[p->held_len++] = call;
    p->asked_again += p->thawing;
}

static void on_answered(void *owner, struct session_call *call, int status, const uint8_t *message,
                        size_t bytes)
{
    (void)owner, (void)call, (void)status, (void)message, (void)bytes;
}

static void on_ended(void *owner, struct session_call *call)
{
    struct playing *p = owner;

    for (size_t i = 0; i < p->held_len; i++) {
        if (p->held[i] == call)
            p->held[i] = p->held[--p->held_len];
    }
}

static const struct session_ops OPS = {
    .write = on_write, .failed = on_failed, .decided = on_decided};
static const struct session_owner_ops OWNER_OPS = {on_begun,    on_gone,  on_request,
                                                   on_answered, on_ended, on_regained};

static int by_stream(const void *a, const void *b)
{
    const struct stream *x = *(struct stream *const *)a, *y = *(struct stream *const *)b;

    return (x->id > y->id) - (x->id < y->id);
}

static void decide_all(struct playing *p)
{
    struct session_call *held[HELD_MAX];
    size_t len = p->held_len;

    memcpy(held, p->held, sizeof held);
    p->held_len = 0;
    qsort(held, len, sizeof *held, by_stream);
    for (size_t i = 0; i < len; i++)
        decide(p, held[i]);
}

/* ---- playing ---- */

/* What passes without a look. */
struct passing {
    struct {
        uint64_t watched;
        uint32_t passing, passing_methods;
    } ends[2];
};

static struct passing passing_of(const struct session *s)
{
    struct passing out;

    memset(&out, 0, sizeof out);
    for (enum session_end end = CLIENT; end <= RUNTIME; end++) {
        out.ends[end].watched = s->sides[end].lane.watched;
        out.ends[end].passing = s->sides[end].lane.passing;
        out.ends[end].passing_methods = s->sides[end].lane.passing_methods;
    }
    return out;
}

/* Which release writes, and which reads. */
static const struct {
    __typeof__(session_freeze) *freeze;
    __typeof__(session_thaw) *thaw;
} WAYS[] = {
    {session_freeze, session_thaw},
    {session_next_freeze, session_thaw},
    {session_freeze, session_next_thaw},
};
#define WAYS_LEN (sizeof WAYS / sizeof WAYS[0])

/* Within a header block it stays the same session. */
static void freeze(struct playing *p)
{
    const struct session_owner owner = {&OWNER_OPS, p};
    const struct passing before = passing_of(p->session);
    struct passing after;
    struct buffer state = {0};
    size_t way = p->frozen % WAYS_LEN;
    int r = WAYS[way].freeze(p->session, &state);

    if (r == -EAGAIN) {
        buffer_fini(&state);
        return;
    }
    assert_int_equal(r, 0);
    p->held_len = 0;
    session_free(p->session);
    p->session = NULL;
    assert_int_equal(
        WAYS[way].thaw(buffer_data(&state), buffer_len(&state), &OPS, p, owner, &p->session), 0);
    after = passing_of(p->session);
    assert_memory_equal(&after, &before, sizeof before);
    p->thawing = true;
    session_begin(p->session, 0);
    p->thawing = false;
    p->frozen++;
    p->most = buffer_len(&state) > p->most ? buffer_len(&state) : p->most;
    buffer_fini(&state);
}

enum how { PLAYS, FREEZES, REPLAYS };

static unsigned replays, states, moves, journal_passes; /* in all of them */

static void same(const struct buffer *a, const struct buffer *b)
{
    assert_int_equal(buffer_len(a), buffer_len(b));
    if (buffer_len(a) > 0)
        assert_memory_equal(buffer_data(a), buffer_data(b), buffer_len(a));
}

static void playing_fini(struct playing *p)
{
    buffer_fini(&p->to[CLIENT]);
    buffer_fini(&p->to[RUNTIME]);
}

/* ---- a journal ---- */

static void journal_begins(struct playing *p)
{
    int sockets[2];

    for (int i = CLIENT; i <= RUNTIME; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p->pairs[i]), 0);
        sockets[i] = p->pairs[i][0];
    }
    p->journal = journal_new(sockets);
    assert_non_null(p->journal);
    journal_begin(p->journal);
}

static void journal_ends(struct playing *p)
{
    journal_free(p->journal);
    p->journal = NULL;
    for (int i = 0; i < 4; i++)
        close(p->pairs[i / 2][i % 2]);
}

/* As another process would make it; its journal is to be freed. */
static struct journal *make_again(struct playing *p, struct playing *again)
{
    int sockets[2] = {p->pairs[RUNTIME][0], p->pairs[CLIENT][0]};
    const struct session_owner owner = {&OWNER_OPS, again};
    const struct buffer to[2] = {p->to[CLIENT], p->to[RUNTIME]};
    struct journal_start start;
    struct journal *j;

    assert_int_equal(journal_open(dup(journal_fd(p->journal)), sockets, &j), 0);
    again->journal = NULL; /* it is repeated, not written */
    assert_int_equal(sockets[CLIENT], p->pairs[CLIENT][0]);
    assert_int_equal(journal_start(j, &start), 0);
    for (int i = CLIENT; i <= RUNTIME; i++) {
        assert_int_equal(start.taken[i], p->taken[i]);
        again->to[i] = (struct buffer){0};
        h2_put(&again->to[i], buffer_data(&to[i]), p->taken[i]);
        h2_put(&again->to[i], buffer_data(&start.unsent[i]), buffer_len(&start.unsent[i]));
        buffer_fini(&start.unsent[i]);
        again->put_out[i] = start.put_out[i];
        again->taken[i] = start.taken[i];
    }
    if (start.session)
        assert_int_equal(
            session_thaw(start.session, start.session_len, &OPS, again, owner, &again->session), 0);
    else
        again->session = session_new(&OPS, again, owner);
    assert_int_equal(replay(j, again->session, again->put_out), 0);
    journal_settled(j);
    return j;
}

/* In the middle of an event the other is ahead. */
static void look_in_between(struct playing *p)
{
    struct playing again = {0};

    if (!p->journal || h2_random(&p->when, 10) > 0)
        return;
    journal_free(make_again(p, &again));
    for (int i = CLIENT; i <= RUNTIME; i++) {
        assert_true(buffer_len(&again.to[i]) >= buffer_len(&p->to[i]));
        if (buffer_len(&p->to[i]) > 0)
            assert_memory_equal(buffer_data(&again.to[i]), buffer_data(&p->to[i]),
                                buffer_len(&p->to[i]));
        buffer_fini(&again.to[i]);
    }
    session_free(again.session);
    p->replayed++;
}

/* `put`: in the place of what is there, or for another release. */
static bool put_state(struct playing *p, __typeof__(journal_state) *put)
{
    struct buffer state = {0}, unsent[2] = {p->to[CLIENT], p->to[RUNTIME]};
    bool done = session_freeze(p->session, &state) == 0;

    unsent[CLIENT].start += p->taken[CLIENT];
    unsent[RUNTIME].start += p->taken[RUNTIME];
    if (done)
        put(p->journal, &state, unsent, p->put_out);
    buffer_fini(&state);
    return done;
}

/* Between two events it is the same; and goes on in its place. */
static void take_over(struct playing *p)
{
    struct journal *before = p->journal;
    struct buffer to[2] = {p->to[CLIENT], p->to[RUNTIME]};
    struct session *session = p->session;
    struct journal *j;

    if (h2_random(&p->when, 8) == 0)
        p->put += put_state(p, journal_state);
    if (h2_random(&p->when, 4) > 0)
        return;
    if (h2_random(&p->when, 3) == 0)
        moves += put_state(p, journal_move);
    p->held_len = 0;
    j = make_again(p, p);
    p->journal = NULL; /* what the old one says while it goes is nobody's */
    session_free(session);
    journal_free(before);
    for (int i = CLIENT; i <= RUNTIME; i++) {
        same(&p->to[i], &to[i]);
        buffer_fini(&to[i]);
    }
    p->journal = j;
    journal_begin(j);
    session_set_owner(p->session, (struct session_owner){&OWNER_OPS, p});
    session_begin(p->session, 0);
    p->replayed++;
}

static unsigned passes; /* in all of them */

static int feed_by_journal(struct playing *p, enum session_end from, const uint8_t *bytes,
                           size_t len)
{
    struct session_passed passed;
    const uint8_t *taken;
    int r;

    assert_int_equal(write(p->pairs[from][1], bytes, len), len);
    assert_int_equal(journal_read(p->journal, from, p->pairs[from][0], &taken), len);
    r = session_feed(p->session, from, taken, len);
    if (session_passed(p->session, from, &passed)) {
        journal_done(p->journal, p->put_out, &passed);
        p->passed++;
    } else {
        journal_done(p->journal, p->put_out, NULL);
    }
    return r;
}

/* What a feed came to leaves the same state as the bytes did. */
static void expect_passed(const struct buffer *before, struct session *s, enum session_end from)
{
    uint64_t put_out[2] = {0};
    struct playing twin = {0};
    struct session_passed passed;
    struct buffer state = {0}, expected = {0};

    if (!session_passed(s, from, &passed))
        return;
    assert_int_equal(session_thaw(buffer_data(before), buffer_len(before), &OPS, &twin,
                                  (struct session_owner){&OWNER_OPS, &twin}, &twin.session),
                     0);
    assert_int_equal(session_pass(twin.session, from, &passed), 0);
    assert_memory_equal(twin.put_out, put_out, sizeof put_out);
    assert_int_equal(session_freeze(twin.session, &state), 0);
    assert_int_equal(session_freeze(s, &expected), 0);
    same(&state, &expected);
    buffer_fini(&state);
    buffer_fini(&expected);
    session_free(twin.session);
    passes++;
}

static int feed(struct playing *p, enum session_end from, const uint8_t *bytes, size_t len,
                enum how how)
{
    struct buffer before = {0};
    int r;

    if (p->journal)
        return feed_by_journal(p, from, bytes, len);
    if (how == PLAYS && session_freeze(p->session, &before) < 0)
        buffer_fini(&before);
    r = session_feed(p->session, from, bytes, len);
    if (buffer_len(&before) > 0)
        expect_passed(&before, p->session, from);
    buffer_fini(&before);
    return r;
}

/* `cut`: bytes of a piece, 0: random. Returns what the session did. */
static int play(struct playing *p, const struct tape *tape, size_t cut, enum how how)
{
    bool freezes = how == FREEZES;
    const struct event *events = (const struct event *)(const void *)buffer_data(&tape->events);
    size_t n = buffer_len(&tape->events) / sizeof *events;
    struct h2_random random = {n};
    int r = 0;

    p->session = session_new(&OPS, p, (struct session_owner){&OWNER_OPS, p});
    assert_non_null(p->session);
    if (how == REPLAYS)
        journal_begins(p);
    session_begin(p->session, 0);
    session_set_class(p->session, CRI_VERSION, CRI_CLASS_OBSERVED);
    for (size_t i = 0; i < n && r == 0; i++) {
        for (size_t at = 0, piece; at < events[i].len && r == 0; at += piece) {
            piece = cut ? cut : 1 + h2_random(&random, buffer_len(&tape->bytes) > 40000 ? 400 : 60);
            piece = piece < events[i].len - at ? piece : events[i].len - at;
            r = feed(p, events[i].from, buffer_data(&tape->bytes) + events[i].at + at, piece, how);
            if (r == 0 && freezes)
                freeze(p);
            if (r == 0 && p->journal)
                take_over(p);
        }
        if (r == 0 && i % 3 == 0)
            decide_all(p);
    }
    if (p->journal)
        journal_ends(p);
    session_free(p->session);
    return r;
}

/* How many calls were held over a freeze. */
static unsigned compare(const struct tape *tape, size_t cut)
{
    struct playing alone = {0}, frozen = {0}, replayed = {.when = {cut + 1}};
    int r = play(&alone, tape, cut, PLAYS);

    assert_int_equal(play(&frozen, tape, cut, FREEZES), r);
    assert_int_equal(play(&replayed, tape, cut, REPLAYS), r);
    same(&replayed.to[CLIENT], &alone.to[CLIENT]);
    same(&replayed.to[RUNTIME], &alone.to[RUNTIME]);
    replays += replayed.replayed;
    journal_passes += replayed.passed;
    states += replayed.put;
    playing_fini(&replayed);
    same(&frozen.to[CLIENT], &alone.to[CLIENT]);
    same(&frozen.to[RUNTIME], &alone.to[RUNTIME]);
    assert_true(frozen.frozen > 0);
    playing_fini(&alone);
    playing_fini(&frozen);
    return frozen.asked_again;
}

/* ---- recorded ---- */

static uint32_t number(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void load(struct tape *tape, const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t head[CAP_HEAD_BYTES];

    assert_non_null(file);
    while (fread(head, sizeof head, 1, file) == 1) {
        size_t len = number(head + 9);
        uint8_t *bytes = malloc(len + 1);

        assert_non_null(bytes);
        assert_int_equal(fread(bytes, 1, len, file), len);
        if (head[0] == '>' || head[0] == '<')
            add(tape, head[0] == '>' ? CLIENT : RUNTIME, bytes, len);
        free(bytes);
    }
    fclose(file);
}

static void recorded_exchanges_go_on(void **state)
{
    DIR *dir = opendir(CAPTURES);
    unsigned found = 0, held = 0;
    struct dirent *entry;

    (void)state;
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        struct tape tape = {0};
        char path[512];

        if (!strstr(entry->d_name, ".cap"))
            continue;
        snprintf(path, sizeof path, CAPTURES "/%s", entry->d_name);
        load(&tape, path);
        held += compare(&tape, buffer_len(&tape.bytes) <= BYTE_BY_BYTE_MAX ? 1 : 0);
        tape_fini(&tape);
        found++;
    }
    closedir(dir);
    assert_true(found >= 20);
    assert_true(held > 0);
    assert_true(replays > 1000 && states > 100 && moves > 100 && regained > 100);
    assert_true(passes > 1000 && journal_passes > 1000);
}

/* ---- random ---- */

struct maker {
    struct h2_random random;
    uint32_t message_most; /* bytes */
    struct h2_writer writers[2];
    uint32_t sizes[2]; /* of an end's table, announced; UINT32_MAX: none */
    unsigned acks[2];  /* that an end owes */
    uint32_t streams;
    struct buffer out;
};

static bool chance(struct maker *m, uint32_t percent)
{
    return h2_random(&m->random, 100) < percent;
}

static void headers(struct maker *m, enum session_end from, uint32_t id, int flags,
                    const char *const *fields)
{
    h2_headers(&m->writers[from], &m->out, id, flags, chance(m, 20) ? 7 : -1,
               chance(m, 20) ? 1 + h2_random(&m->random, 30) : 0, fields);
}

static void make_message(struct maker *m, uint32_t id, int flags)
{
    static const uint8_t zeros[MESSAGE_BYTES_MAX];
    struct buffer framed = {0};
    size_t len, cut;

    h2_message(&framed, 0, zeros, h2_random(&m->random, m->message_most));
    len = buffer_len(&framed);
    cut = chance(m, 50) ? len : h2_random(&m->random, (uint32_t)len);
    h2_data(&m->out, id, buffer_data(&framed), cut, cut == len ? flags : 0,
            chance(m, 30) ? (int)h2_random(&m->random, 60) : -1);
    if (cut < len && chance(m, 80))
        h2_data(&m->out, id, buffer_data(&framed) + cut, len - cut, flags, -1);
    buffer_fini(&framed);
}

static void make_request(struct maker *m)
{
    static const char *const METHODS[] = {"Version", "StopPodSandbox", "CreateContainer",
                                          "CreateContainer", "GetContainerEvents"};
    uint32_t id = 2 * m->streams++ + 1;
    char path[96], note[16];
    const char *const fields[] = {":method", "POST", ":path", path, "x-note", note, NULL};

    snprintf(path, sizeof path, "/runtime.v1.RuntimeService/%s", METHODS[h2_random(&m->random, 5)]);
    snprintf(note, sizeof note, "%u", h2_random(&m->random, 30));
    headers(m, CLIENT, id, 0, fields);
    make_message(m, id, chance(m, 70) ? H2_END_STREAM : 0);
}

static void make_answer(struct maker *m, uint32_t id)
{
    const char *const head[] = {":status", "200", "content-type", "application/grpc", NULL};
    const char *const end[] = {"grpc-status", "0", "x-note", chance(m, 50) ? "a" : "b", NULL};

    if (chance(m, 80)) {
        headers(m, RUNTIME, id, 0, head);
        make_message(m, id, 0);
    }
    headers(m, RUNTIME, id, H2_END_STREAM, end);
}

/* One has acknowledged: the other's encoder... its own obeys what was announced to it. */
static void make_ack(struct maker *m, enum session_end from)
{
    enum session_end other = from == CLIENT ? RUNTIME : CLIENT;

    h2_settings_ack(&m->out);
    if (m->acks[from] == 0)
        return; /* for a barrier, or for nothing */
    m->acks[from]--;
    if (m->acks[from] == 0 && m->sizes[other] != UINT32_MAX) {
        assert_int_equal(
            nghttp2_hd_deflate_change_table_size(m->writers[from].deflater, m->sizes[other]), 0);
        m->sizes[other] = UINT32_MAX;
    }
}

static void make_settings(struct maker *m, enum session_end from)
{
    enum session_end other = from == CLIENT ? RUNTIME : CLIENT;

    if (m->acks[other] > 0)
        return;
    m->acks[other]++;
    if (chance(m, 50)) {
        m->sizes[from] = h2_random(&m->random, 5000);
        h2_settings(&m->out, 1, m->sizes[from]);
    } else {
        h2_settings(&m->out, 4, h2_random(&m->random, chance(m, 50) ? 500 : 90000));
    }
}

static void make_frame(struct maker *m, enum session_end from)
{
    uint32_t id = 2 * h2_random(&m->random, m->streams + 1) + 1;

    switch (h2_random(&m->random, 9)) {
    case 0:
    case 1:
    case 2:
        if (from == RUNTIME)
            make_answer(m, id);
        else if (m->streams < STREAMS_MAX)
            make_request(m);
        break;
    case 3:
        if (from == CLIENT && m->streams > 0)
            h2_data(&m->out, 2 * h2_random(&m->random, m->streams) + 1, "more", 4,
                    chance(m, 50) ? H2_END_STREAM : 0, -1);
        break;
    case 4:
        h2_window(&m->out, chance(m, 50) ? id : 0, 1 + h2_random(&m->random, 4 * m->message_most));
        break;
    case 5:
        make_settings(m, from);
        break;
    case 6:
        make_ack(m, from);
        break;
    case 7:
        if (chance(m, 30))
            h2_rst(&m->out, id, 8);
        break;
    default:
        h2_frame(&m->out, NGHTTP2_PING, 0, 0, "12345678", 8);
        break;
    }
}

static void make(struct tape *tape, uint64_t seed)
{
    /* with the larger ones the windows are used up */
    struct maker m = {.random = {seed},
                      .message_most = seed % 2 ? 400 : MESSAGE_BYTES_MAX,
                      .sizes = {UINT32_MAX, UINT32_MAX},
                      .acks = {1, 1}};

    h2_writer_init(&m.writers[CLIENT]);
    h2_writer_init(&m.writers[RUNTIME]);
    add(tape, CLIENT, H2_PREFACE, strlen(H2_PREFACE));
    h2_settings(&m.out, -1, 0);
    add(tape, CLIENT, buffer_data(&m.out), buffer_len(&m.out));
    add(tape, RUNTIME, buffer_data(&m.out), buffer_len(&m.out));
    buffer_fini(&m.out);
    for (int i = 0; i < EVENTS; i++) {
        enum session_end from = chance(&m, 50) ? CLIENT : RUNTIME;

        for (uint32_t n = 1 + h2_random(&m.random, 4); n > 0; n--)
            make_frame(&m, from);
        add(tape, from, buffer_data(&m.out), buffer_len(&m.out));
        buffer_fini(&m.out);
    }
    h2_writer_fini(&m.writers[CLIENT]);
    h2_writer_fini(&m.writers[RUNTIME]);
}

static void random_exchanges_go_on(void **state)
{
    unsigned held = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct tape tape = {0};

        make(&tape, seed);
        held += compare(&tape, seed % 20 == 1 ? 1 : 0);
        tape_fini(&tape);
    }
    assert_true(held > SEEDS);
}

/* ---- what chance does not come to ---- */

static void take(struct tape *tape, enum session_end from, struct maker *m)
{
    add(tape, from, buffer_data(&m->out), buffer_len(&m->out));
    buffer_fini(&m->out);
}

static void put_call(struct maker *m, uint32_t id, size_t bytes)
{
    struct buffer framed = {0};

    h2_request(&m->writers[CLIENT], &m->out, id, "CreateContainer");
    h2_message(&framed, 0, "????????", bytes);
    h2_data(&m->out, id, buffer_data(&framed), buffer_len(&framed), H2_END_STREAM, -1);
    buffer_fini(&framed);
}

/* The fragment of stream 1 leaves no room for the last bytes of stream 3, so that the ACKs of a
 * lower window wait. */
static void make_late_acks(struct tape *tape, struct maker *m)
{
    static const uint8_t zeros[16384];

    put_call(m, 1, 5);
    take(tape, CLIENT, m); /* and it is decided */
    h2_request(&m->writers[CLIENT], &m->out, 3, "RunPodSandbox");
    for (int i = 0; i < 3; i++)
        h2_data(&m->out, 3, zeros, sizeof zeros, 0, -1);
    h2_data(&m->out, 3, zeros, 65500 - 3 * sizeof zeros, 0, -1);
    h2_data(&m->out, 3, "0123456789ABCDEFGHIJ", 20, 0, -1);
    take(tape, CLIENT, m);
    h2_settings(&m->out, 4, 100);
    h2_settings(&m->out, 4, 70000);
    take(tape, RUNTIME, m);
    h2_settings_ack(&m->out);
    h2_data(&m->out, 3, "more", 4, 0, -1);
    h2_settings_ack(&m->out);
    take(tape, CLIENT, m);
    for (int i = 0; i < 3; i++) {
        h2_window(&m->out, 0, i < 2 ? 5 : 100);
        take(tape, RUNTIME, m);
    }
}

/* The runtime's headers have passed when the call is refused. */
static void make_late_refusal(struct tape *tape, struct maker *m)
{
    put_call(m, 7, 3);
    take(tape, CLIENT, m);
    h2_answer_head(&m->writers[RUNTIME], &m->out, 7);
    take(tape, RUNTIME, m);
    h2_window(&m->out, 0, 1);
    take(tape, RUNTIME, m); /* and it is decided */
    h2_settings_ack(&m->out);
    take(tape, RUNTIME, m);
}

/* A message that may go waits until a PING is over: which then did not only pass. */
static void what_lets_own_frames_out_has_not_only_passed(void **state)
{
    struct session_passed passed;
    struct playing p = {0};
    struct maker m = {0};
    const uint8_t *bytes;
    size_t len;

    (void)state;
    h2_writer_init(&m.writers[CLIENT]);
    h2_put(&m.out, H2_PREFACE, strlen(H2_PREFACE));
    h2_settings(&m.out, -1, 0);
    p.session = session_new(&OPS, &p, (struct session_owner){&OWNER_OPS, &p});
    assert_non_null(p.session);
    session_begin(p.session, 0);
    assert_int_equal(session_feed(p.session, CLIENT, buffer_data(&m.out), buffer_len(&m.out)), 0);
    assert_false(session_passed(p.session, CLIENT, &passed));
    buffer_fini(&m.out);
    put_call(&m, 1, 6);
    assert_int_equal(session_feed(p.session, CLIENT, buffer_data(&m.out), buffer_len(&m.out)), 0);
    assert_int_equal(p.held_len, 1);
    buffer_fini(&m.out);
    h2_frame(&m.out, NGHTTP2_PING, 0, 0, "12345678", 8);
    bytes = buffer_data(&m.out);
    len = buffer_len(&m.out);
    assert_int_equal(session_feed(p.session, CLIENT, bytes, len - 6), 0);
    assert_true(session_passed(p.session, CLIENT, &passed));
    decide_all(&p);
    assert_int_equal(session_feed(p.session, CLIENT, bytes + len - 6, 3), 0);
    assert_true(session_passed(p.session, CLIENT, &passed));
    assert_int_equal(session_feed(p.session, CLIENT, bytes + len - 3, 3), 0);
    assert_false(session_passed(p.session, CLIENT, &passed));
    session_free(p.session);
    buffer_fini(&m.out);
    h2_writer_fini(&m.writers[CLIENT]);
    playing_fini(&p);
}

static void acks_and_refusals_that_are_late_go_on(void **state)
{
    struct tape tape = {0};
    struct playing p = {0};
    struct maker m = {0};

    (void)state;
    h2_writer_init(&m.writers[CLIENT]);
    h2_writer_init(&m.writers[RUNTIME]);
    add(&tape, CLIENT, H2_PREFACE, strlen(H2_PREFACE));
    h2_settings(&m.out, -1, 0);
    take(&tape, CLIENT, &m);
    h2_settings(&m.out, -1, 0);
    h2_settings_ack(&m.out);
    take(&tape, RUNTIME, &m);
    make_late_acks(&tape, &m); /* events 3 to 9 */
    make_late_refusal(&tape, &m);
    compare(&tape, 0);
    assert_int_equal(play(&p, &tape, 0, FREEZES), 0);
    assert_non_null(memmem(buffer_data(&p.to[CLIENT]), buffer_len(&p.to[CLIENT]), "not now", 7));
    playing_fini(&p);
    tape_fini(&tape);
    h2_writer_fini(&m.writers[CLIENT]);
    h2_writer_fini(&m.writers[RUNTIME]);
}

/* ---- what is no state ---- */

/* Of a session in the middle of an exchange. */
static void some_state(struct buffer *out)
{
    struct playing p = {0};
    struct tape tape = {0};
    const struct event *events;

    make(&tape, 7);
    p.session = session_new(&OPS, &p, (struct session_owner){&OWNER_OPS, &p});
    assert_non_null(p.session);
    events = (const struct event *)(const void *)buffer_data(&tape.events);
    for (size_t i = 0; i < EVENTS / 2; i++)
        assert_int_equal(session_feed(p.session, events[i].from,
                                      buffer_data(&tape.bytes) + events[i].at, events[i].len),
                         0);
    assert_int_equal(session_freeze(p.session, out), 0);
    assert_true(session_calls(p.session) > 1);
    session_free(p.session);
    playing_fini(&p);
    tape_fini(&tape);
}

static int thaw(const uint8_t *bytes, size_t len)
{
    struct playing p = {0};
    uint8_t *copy = malloc(len ? len : 1); /* exact, so that a sanitizer sees a read behind it */
    int r;

    assert_non_null(copy);
    if (len > 0)
        memcpy(copy, bytes, len);
    alloc_fail_enable(true);
    r = session_thaw(copy, len, &OPS, &p, (struct session_owner){&OWNER_OPS, &p}, &p.session);
    alloc_fail_enable(false);
    free(copy);
    if (r == 0)
        session_free(p.session);
    else
        assert_null(p.session);
    playing_fini(&p);
    return r;
}

static void a_state_that_is_damaged_is_refused(void **state)
{
    struct buffer frozen = {0};

    (void)state;
    some_state(&frozen);
    assert_int_equal(thaw(buffer_data(&frozen), buffer_len(&frozen)), 0);
    for (size_t len = 0; len < buffer_len(&frozen); len++)
        assert_int_equal(thaw(buffer_data(&frozen), len), -EPROTO);
    for (size_t i = 0; i < buffer_len(&frozen); i++) {
        frozen.bytes[frozen.start + i] ^= 1u << i % 8;
        assert_int_equal(thaw(buffer_data(&frozen), buffer_len(&frozen)), -EPROTO);
        frozen.bytes[frozen.start + i] ^= 1u << i % 8;
    }
    buffer_fini(&frozen);
}

static void without_memory_it_is_not_thawed(void **state)
{
    struct buffer frozen = {0};
    int r = -ENOMEM;

    (void)state;
    some_state(&frozen);
    for (unsigned n = 1; r != 0; n++) {
        alloc_fail_at(n);
        r = thaw(buffer_data(&frozen), buffer_len(&frozen));
        assert_true(r == 0 ? !alloc_failed() : r == -ENOMEM && alloc_failed());
    }
    alloc_fail_at(0);
    buffer_fini(&frozen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_exchanges_go_on),
        cmocka_unit_test(random_exchanges_go_on),
        cmocka_unit_test(acks_and_refusals_that_are_late_go_on),
        cmocka_unit_test(what_lets_own_frames_out_has_not_only_passed),
        cmocka_unit_test(a_state_that_is_damaged_is_refused),
        cmocka_unit_test(without_memory_it_is_not_thawed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
