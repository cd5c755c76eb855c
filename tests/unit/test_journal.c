/*
 * shim/relay/journal.c: what is taken over, and what is not. That it says what was is
 * test_session_freeze.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "shim/relay/frozen.h"
#include "shim/relay/journal.h"
#include "shim/relay/limits.h"

struct world {
    int pairs[2][2]; /* ours, the peer's */
    int sockets[2];
    struct journal *j;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    *state = w;
    for (int i = 0; i < 2; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, w->pairs[i]) < 0)
            return -1;
        w->sockets[i] = w->pairs[i][0];
    }
    w->j = journal_new(w->sockets);
    return w->j ? 0 : -1;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    journal_free(w->j);
    for (int i = 0; i < 4; i++)
        close(w->pairs[i / 2][i % 2]);
    free(w);
    return 0;
}

static int open_again(struct world *w, struct journal **out)
{
    return journal_open(dup(journal_fd(w->j)), w->sockets, out);
}

static void comes(struct world *w, enum session_end from, const char *text)
{
    const uint8_t *bytes;
    size_t len = strlen(text);

    assert_int_equal(send(w->pairs[from][1], text, len, 0), len);
    assert_int_equal(journal_read(w->j, from, w->sockets[from], &bytes), len);
    assert_memory_equal(bytes, text, len);
}

static void goes(struct world *w, enum session_end to, const char *text)
{
    const struct iovec piece = {(void *)text, strlen(text)};

    assert_int_equal(journal_write(w->j, to, w->sockets[to], &piece, 1), strlen(text));
}

/* What was read last, for which nothing was put out. */
static void has_taken_effect(struct world *w)
{
    journal_done(w->j, (const uint64_t[2]){0, 0}, NULL);
}

static void expect_bytes(struct journal *j, enum journal_kind kind, const char *text, bool done)
{
    struct journal_event e;

    assert_int_equal(journal_next(j, false, &e), 0);
    assert_int_equal(e.kind, kind);
    assert_int_equal(e.len, strlen(text));
    assert_memory_equal(e.bytes, text, e.len);
    assert_int_equal(e.done, done);
}

static void expect_end(struct journal *j)
{
    struct journal_event e;

    assert_int_equal(journal_next(j, true, &e), 0);
    assert_int_equal(e.kind, JOURNAL_NOTHING);
}

static void what_has_come_is_there_in_its_order(void **state)
{
    struct world *w = *state;
    const struct session_decision decision = {.what = SESSION_FORWARDS_INSTEAD,
                                              .stream = 7,
                                              .fragment = "abc",
                                              .fragment_bytes = 3,
                                              .message = "mess",
                                              .message_bytes = 4};
    struct journal_event e;
    struct journal *j;

    journal_begin(w->j);
    comes(w, SESSION_CLIENT, "hello");
    journal_decide(w->j, 3, &decision);
    journal_done(w->j, (const uint64_t[2]){11, 22}, NULL);
    comes(w, SESSION_RUNTIME, "world!");
    assert_int_equal(open_again(w, &j), 0);
    expect_bytes(j, JOURNAL_BEGIN, "", false);
    assert_int_equal(journal_next(j, true, &e), 0);
    assert_int_equal(e.put_out[0], 11);
    assert_int_equal(e.put_out[1], 22);
    expect_bytes(j, JOURNAL_CLIENT, "hello", true);
    assert_int_equal(journal_next(j, false, &e), 0);
    assert_int_equal(e.kind, JOURNAL_DECISION);
    assert_int_equal(e.told, 3);
    assert_int_equal(e.decision.stream, 7);
    assert_memory_equal(e.decision.fragment, "abc", 3);
    assert_int_equal(e.decision.message_bytes, 4);
    assert_memory_equal(e.decision.message, "mess", 4);
    expect_bytes(j, JOURNAL_RUNTIME, "world!", false);
    expect_end(j);
    journal_free(j);
}

static void a_state_takes_the_place_of_what_was(void **state)
{
    struct world *w = *state;
    struct buffer session = {0}, unsent[2] = {{0}};
    struct journal_start start;
    struct journal *j;

    comes(w, SESSION_CLIENT, "before");
    goes(w, SESSION_RUNTIME, "12345");
    assert_int_equal(buffer_put(&session, "state", 5), 0);
    assert_int_equal(buffer_put(&unsent[SESSION_RUNTIME], "6789", 4), 0);
    journal_state(w->j, &session, unsent, (const uint64_t[2]){0, 9});
    goes(w, SESSION_RUNTIME, "67"); /* some of what was unsent */
    comes(w, SESSION_RUNTIME, "after");
    assert_int_equal(open_again(w, &j), 0);
    assert_int_equal(journal_start(j, &start), 0);
    assert_int_equal(start.session_len, 5);
    assert_memory_equal(start.session, "state", 5);
    assert_int_equal(start.put_out[SESSION_RUNTIME], 9);
    assert_int_equal(start.taken[SESSION_RUNTIME], 7);
    assert_int_equal(buffer_len(&start.unsent[SESSION_RUNTIME]), 2);
    assert_memory_equal(buffer_data(&start.unsent[SESSION_RUNTIME]), "89", 2);
    assert_int_equal(buffer_len(&start.unsent[SESSION_CLIENT]), 0);
    expect_bytes(j, JOURNAL_RUNTIME, "after", false);
    expect_end(j);
    buffer_fini(&start.unsent[SESSION_RUNTIME]);
    buffer_fini(&start.unsent[SESSION_CLIENT]);
    buffer_fini(&session);
    buffer_fini(&unsent[SESSION_RUNTIME]);
    journal_free(j);
}

static void one_that_killed_its_reader_is_not_read_again(void **state)
{
    struct world *w = *state;
    struct journal *j;

    for (unsigned takers = 0; takers < 2 * JOURNAL_TAKERS_MAX; takers++) {
        assert_int_equal(open_again(w, &j), 0);
        journal_settled(j);
        journal_free(j);
    }
    for (unsigned takers = 0; takers < JOURNAL_TAKERS_MAX; takers++) {
        assert_int_equal(open_again(w, &j), 0);
        journal_free(j);
    }
    assert_int_equal(open_again(w, &j), -EPROTO);
}

static void sockets_come_in_any_order_but_no_others(void **state)
{
    struct world *w = *state;
    int turned[2] = {w->sockets[1], w->sockets[0]};
    int others[2] = {w->sockets[0], w->pairs[1][1]};
    struct journal *j;

    assert_int_equal(journal_open(dup(journal_fd(w->j)), turned, &j), 0);
    assert_int_equal(turned[0], w->sockets[0]);
    assert_int_equal(turned[1], w->sockets[1]);
    journal_free(j);
    assert_int_equal(journal_open(dup(journal_fd(w->j)), others, &j), -EPROTO);
}

static void what_is_no_journal_is_refused(void **state)
{
    struct world *w = *state;
    int memory = memfd_create("test", MFD_CLOEXEC);
    uint64_t other_format = 1;
    struct journal *j;

    assert_int_equal(journal_open(memory, w->sockets, &j), -EPROTO);
    assert_int_equal(pwrite(journal_fd(w->j), &other_format, sizeof other_format, 0), 8);
    assert_int_equal(open_again(w, &j), -EPROTO);
}

static void what_is_damaged_is_refused(void **state)
{
    struct world *w = *state;
    uint32_t kind = 99, len = 1u << 30;
    struct journal *j;

    comes(w, SESSION_CLIENT, "hello");
    has_taken_effect(w);
    assert_int_equal(pwrite(journal_fd(w->j), &kind, 4, 4096), 4);
    assert_int_equal(open_again(w, &j), -EPROTO);
    kind = JOURNAL_CLIENT;
    assert_int_equal(pwrite(journal_fd(w->j), &kind, 4, 4096), 4);
    assert_int_equal(pwrite(journal_fd(w->j), &len, 4, 4100), 4);
    assert_int_equal(open_again(w, &j), -EPROTO);
}

/* Where the first event's head lies, how long that is, and how much there may be of them. */
#define EVENTS_AT 4096
#define EVENTS_BYTES_MAX (64u * 1024 * 1024 + JOURNAL_EVENTS_BYTES_MOST)
#define EVENT_HEAD_BYTES 64

/* As one that is killed before it can write that down. */
static void reads_and_is_killed(struct world *w, enum session_end from, size_t events_bytes)
{
    char *memory = mmap(NULL, 2 * EVENTS_AT, PROT_WRITE, MAP_SHARED, journal_fd(w->j), 0);

    assert_true(memory != MAP_FAILED);
    assert_true(
        recv(w->sockets[from], memory + EVENTS_AT + events_bytes + EVENT_HEAD_BYTES, 99, 0) > 0);
    munmap(memory, 2 * EVENTS_AT);
}

static void what_was_read_last_is_there(void **state)
{
    struct world *w = *state;
    struct buffer session = {0}, unsent[2] = {{0}};
    struct journal *j;

    comes(w, SESSION_CLIENT, "before the state");
    assert_int_equal(buffer_put(&session, "state", 5), 0);
    journal_state(w->j, &session, unsent, (const uint64_t[2]){0, 0});
    comes(w, SESSION_RUNTIME, "world");
    has_taken_effect(w);
    assert_int_equal(send(w->pairs[SESSION_CLIENT][1], "hello", 5, 0), 5);
    reads_and_is_killed(w, SESSION_CLIENT, EVENT_HEAD_BYTES + 8);
    for (int i = 0; i < 2; i++) { /* also of whom the next was killed too */
        assert_int_equal(open_again(w, &j), 0);
        expect_bytes(j, JOURNAL_RUNTIME, "world", true);
        expect_bytes(j, JOURNAL_CLIENT, "hello", false);
        expect_end(j);
        journal_free(j);
    }
    buffer_fini(&session);
}

static void who_takes_it_over_reads_on(void **state)
{
    struct world *w = *state;
    struct journal *j;

    comes(w, SESSION_CLIENT, "first");
    assert_int_equal(open_again(w, &j), 0);
    journal_free(w->j);
    w->j = j;
    comes(w, SESSION_CLIENT, "second");
    assert_int_equal(open_again(w, &j), 0);
    expect_bytes(j, JOURNAL_CLIENT, "first", false);
    expect_bytes(j, JOURNAL_CLIENT, "second", false);
    expect_end(j);
    journal_free(j);
}

/* ---- what has passed ---- */

static const struct session_passed PASSED = {
    .data = 3, .stream = 5, .place = {.left = 7, .within = 1, .carry = {1, 2, 3}}};

static void expect_passed(struct journal *j, enum journal_kind kind, size_t len,
                          const uint64_t put_out[2])
{
    struct journal_event e;

    assert_int_equal(journal_next(j, false, &e), 0);
    assert_int_equal(e.kind, kind);
    assert_int_equal(e.len, len);
    assert_null(e.bytes);
    assert_true(e.done);
    assert_int_equal(e.put_out[0], put_out[0]);
    assert_int_equal(e.put_out[1], put_out[1]);
    assert_int_equal(e.passed.data, PASSED.data);
    assert_int_equal(e.passed.stream, PASSED.stream);
    assert_memory_equal(&e.passed.place, &PASSED.place, sizeof PASSED.place);
}

static void what_it_came_to_takes_the_place_of_what_passed(void **state)
{
    const uint64_t put_out[2] = {0, 7}, both[2] = {6, 7};
    struct world *w = *state;
    struct journal *j;

    comes(w, SESSION_CLIENT, "through");
    goes(w, SESSION_RUNTIME, "through");
    journal_done(w->j, put_out, &PASSED);
    comes(w, SESSION_RUNTIME, "answer");
    goes(w, SESSION_CLIENT, "answer");
    journal_done(w->j, both, &PASSED);
    comes(w, SESSION_CLIENT, "next");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_again(w, &j), 0);
        expect_passed(j, JOURNAL_CLIENT_PASSED, 7, put_out);
        expect_passed(j, JOURNAL_RUNTIME_PASSED, 6, both);
        expect_bytes(j, JOURNAL_CLIENT, "next", false);
        expect_end(j);
        journal_free(j);
    }
}

/* It is for the next process to write the rest. */
static void what_was_not_all_taken_stays(void **state)
{
    const uint64_t put_out[2] = {0, 7};
    struct world *w = *state;
    struct journal *j;

    comes(w, SESSION_CLIENT, "through");
    goes(w, SESSION_RUNTIME, "throug");
    journal_done(w->j, put_out, &PASSED);
    assert_int_equal(open_again(w, &j), 0);
    expect_bytes(j, JOURNAL_CLIENT, "through", true);
    expect_end(j);
    journal_free(j);
}

/* Where the head says how much the runtime has taken, behind the number of the last write. */
#define RUNTIME_TAKEN_AT 60

/* Else the count of what was taken since the last state would begin anew. */
static void what_passes_long_after_a_state_stays(void **state)
{
    struct world *w = *state;
    uint64_t put_out[2] = {0, UINT32_C(1) << 31};
    uint32_t taken = UINT32_C(1) << 31;
    struct journal *j;

    assert_int_equal(pwrite(journal_fd(w->j), &taken, 4, RUNTIME_TAKEN_AT), 4);
    comes(w, SESSION_CLIENT, "through");
    journal_done(w->j, put_out, &PASSED);
    comes(w, SESSION_CLIENT, "x");
    goes(w, SESSION_RUNTIME, "x");
    put_out[SESSION_RUNTIME]++;
    journal_done(w->j, put_out, &PASSED);
    assert_int_equal(open_again(w, &j), 0);
    put_out[SESSION_RUNTIME]--;
    expect_passed(j, JOURNAL_CLIENT_PASSED, 7, put_out);
    expect_bytes(j, JOURNAL_CLIENT, "x", true);
    expect_end(j);
    journal_free(j);
}

/* In the middle of it. */
static void what_was_decided_on_stays(void **state)
{
    const struct session_decision decision = {.what = SESSION_FORWARDS, .stream = 1};
    struct world *w = *state;
    struct journal_event e;
    struct journal *j;

    comes(w, SESSION_CLIENT, "hello");
    journal_decide(w->j, 1, &decision);
    journal_done(w->j, (const uint64_t[2]){0, 0}, &PASSED);
    assert_int_equal(open_again(w, &j), 0);
    expect_bytes(j, JOURNAL_CLIENT, "hello", true);
    assert_int_equal(journal_next(j, false, &e), 0);
    assert_int_equal(e.kind, JOURNAL_DECISION);
    expect_end(j);
    journal_free(j);
}

/* Events of what passed are short: many of them come before a state is due. */
static void what_passed_takes_little_room(void **state)
{
    uint64_t put_out[2] = {0, 0};
    struct world *w = *state;
    unsigned n = 0;
    char text[4001];

    memset(text, 'x', 4000);
    text[4000] = '\0';
    for (; !journal_is_due(w->j, 0); n++) {
        comes(w, SESSION_CLIENT, text);
        goes(w, SESSION_RUNTIME, text);
        assert_int_equal(recv(w->pairs[SESSION_RUNTIME][1], text, 4000, MSG_WAITALL), 4000);
        put_out[SESSION_RUNTIME] += 4000;
        journal_done(w->j, put_out, &PASSED);
    }
    assert_int_equal(n, JOURNAL_EVENTS_BYTES / EVENT_HEAD_BYTES);
}

static void what_passed_and_was_not_taken_is_damage(void **state)
{
    struct world *w = *state;
    struct journal_event e;
    uint64_t more = 8;
    struct journal *j;

    comes(w, SESSION_CLIENT, "through");
    goes(w, SESSION_RUNTIME, "through");
    journal_done(w->j, (const uint64_t[2]){0, 7}, &PASSED);
    assert_int_equal(pwrite(journal_fd(w->j), &more, 8, EVENTS_AT + EVENT_HEAD_BYTES - 8), 8);
    assert_int_equal(open_again(w, &j), 0);
    assert_int_equal(journal_next(j, false, &e), -EPROTO);
    journal_free(j);
}

/* Where the head says where the events end, and how much was read behind that. */
#define EVENTS_WORD_AT 40

static void more_than_one_read_takes_is_damage(void **state)
{
    uint64_t word = (uint64_t)(RELAY_READ_BYTES + 1) << 32;
    struct world *w = *state;
    struct journal *j;

    assert_int_equal(pwrite(journal_fd(w->j), &word, 8, EVENTS_WORD_AT), 8);
    assert_int_equal(open_again(w, &j), -EPROTO);
    word = (uint64_t)RELAY_READ_BYTES << 32 | (EVENTS_BYTES_MAX - 64);
    assert_int_equal(pwrite(journal_fd(w->j), &word, 8, EVENTS_WORD_AT), 8);
    assert_int_equal(open_again(w, &j), -EPROTO);
    word = (uint64_t)5 << 32 | 1; /* behind no event */
    assert_int_equal(pwrite(journal_fd(w->j), &word, 8, EVENTS_WORD_AT), 8);
    assert_int_equal(open_again(w, &j), -EPROTO);
}

/* Nobody was killed in two reads. */
static void reads_of_both_ends_are_none(void **state)
{
    struct world *w = *state;
    struct journal *j;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(send(w->pairs[i][1], "x", 1, 0), 1);
        reads_and_is_killed(w, (enum session_end)i, 0);
    }
    assert_int_equal(open_again(w, &j), -EPROTO);
}

static void one_without_room_is_over(void **state)
{
    struct world *w = *state;
    size_t most = RELAY_MESSAGE_BYTES_MAX;
    const struct session_decision decision = {
        .what = SESSION_FORWARDS_INSTEAD, .message = calloc(1, most), .message_bytes = most};
    const uint8_t *bytes;
    struct journal *j;
    unsigned n = 0;

    while (!journal_is_over(w->j)) {
        journal_decide(w->j, 0, &decision);
        assert_true(++n < 8);
    }
    assert_true(n >= 5);
    assert_int_equal(send(w->pairs[0][1], "x", 1, 0), 1);
    assert_int_equal(journal_read(w->j, SESSION_CLIENT, w->sockets[0], &bytes), -ENOBUFS);
    assert_int_equal(recv(w->sockets[0], &n, 1, 0), 1); /* it was not taken */
    assert_int_equal(open_again(w, &j), -EPROTO);
    free((void *)decision.message);
}

static void a_state_is_due_now_and_then(void **state)
{
    struct world *w = *state;
    struct buffer nothing = {0}, unsent[2] = {{0}};
    char text[1001];

    memset(text, 'x', 1000);
    text[1000] = '\0';
    for (size_t n = 0; n < JOURNAL_EVENTS_BYTES; n += 1000 + EVENT_HEAD_BYTES) {
        assert_false(journal_is_due(w->j, 0));
        comes(w, SESSION_CLIENT, text);
        has_taken_effect(w);
    }
    assert_true(journal_is_due(w->j, 0));
    journal_state(w->j, &nothing, unsent, (const uint64_t[2]){0, 0});
    assert_false(journal_is_due(w->j, 0));
}

/* How many bytes of events come behind a state of so many until the next is due, of
 * `next_bytes`. */
static size_t due_behind(struct world *w, size_t state_bytes, size_t next_bytes)
{
    struct buffer session = {0}, unsent[2] = {{0}};
    static char text[60001];
    size_t n = 0;

    memset(text, 'x', sizeof text - 1);
    assert_int_equal(buffer_reserve(&session, state_bytes), 0);
    memset(session.bytes, 'y', state_bytes);
    session.end = state_bytes;
    journal_state(w->j, &session, unsent, (const uint64_t[2]){0, 0});
    buffer_fini(&session);
    for (; !journal_is_due(w->j, next_bytes); n += strlen(text)) {
        comes(w, SESSION_CLIENT, text);
        has_taken_effect(w);
    }
    return n;
}

/* Else a message that is held while it comes would be written once for each JOURNAL_EVENTS_BYTES of
 * it: 4 GiB for one of 16 MiB. */
static void what_is_written_of_states_is_little_more_than_what_comes(void **state)
{
    struct world *w = *state;

    assert_in_range(due_behind(w, 5000, 5000), JOURNAL_EVENTS_BYTES - 1000,
                    JOURNAL_EVENTS_BYTES + 60000);
    assert_in_range(due_behind(w, 3000000, 3000000), 2900000, 3100000);
    assert_in_range(due_behind(w, 100000000, 100000000), JOURNAL_EVENTS_BYTES_MOST - 100000,
                    JOURNAL_EVENTS_BYTES_MOST + 100000);
    /* nothing is held any more, and the memory of the last state is to be given back soon */
    assert_in_range(due_behind(w, 3000000, 0), 1, JOURNAL_EVENTS_BYTES + 60000);
}

/* However much has come before them. */
static void as_many_large_decisions_as_are_held_have_room(void **state)
{
    struct world *w = *state;
    size_t most = RELAY_MESSAGE_BYTES_MAX - 100000; /* with what is in front, and the last read */
    const struct session_decision decision = {
        .what = SESSION_FORWARDS_INSTEAD, .message = calloc(1, most), .message_bytes = most};

    (void)due_behind(w, 1, 4 * (size_t)RELAY_MESSAGE_BYTES_MAX);
    for (int i = 0; i < 4; i++)
        journal_decide(w->j, 0, &decision);
    assert_false(journal_is_over(w->j));
    free((void *)decision.message);
}

/* ---- moved ---- */

/* With 7 of 9 bytes taken by the runtime. */
static void move(struct world *w)
{
    struct buffer session = {0}, unsent[2] = {{0}};

    comes(w, SESSION_CLIENT, "before");
    goes(w, SESSION_RUNTIME, "1234567");
    assert_int_equal(buffer_put(&session, "state", 5), 0);
    assert_int_equal(buffer_put(&unsent[SESSION_RUNTIME], "89", 2), 0);
    journal_move(w->j, &session, unsent, (const uint64_t[2]){0, 9});
    buffer_fini(&session);
    buffer_fini(&unsent[SESSION_RUNTIME]);
}

static void expect_moved(struct journal *j)
{
    struct journal_start start;

    assert_int_equal(journal_start(j, &start), 0);
    assert_int_equal(start.session_len, 5);
    assert_memory_equal(start.session, "state", 5);
    assert_int_equal(start.put_out[SESSION_RUNTIME], 9);
    assert_int_equal(start.taken[SESSION_RUNTIME], 7);
    assert_int_equal(buffer_len(&start.unsent[SESSION_RUNTIME]), 2);
    assert_memory_equal(buffer_data(&start.unsent[SESSION_RUNTIME]), "89", 2);
    assert_int_equal(buffer_len(&start.unsent[SESSION_CLIENT]), 0);
    buffer_fini(&start.unsent[SESSION_RUNTIME]);
    expect_end(j);
}

/* Of the memory behind its first two numbers, nothing is left as it was. */
static void lay_otherwise(struct world *w, off_t bytes)
{
    uint8_t noise[4096 - 16];

    memset(noise, 0xa5, sizeof noise);
    assert_int_equal(pwrite(journal_fd(w->j), noise, sizeof noise, 16), sizeof noise);
    assert_int_equal(pwrite(journal_fd(w->j), noise, sizeof noise, bytes), sizeof noise);
}

static void what_was_moved_is_read_however_the_memory_was(void **state)
{
    struct world *w = *state;
    int turned[2] = {w->sockets[1], w->sockets[0]};
    struct journal *j;

    /* somebody was killed at the same before */
    assert_int_equal(pwrite(journal_fd(w->j), "left", 4, ((off_t)1 << 40) + 5000), 4);
    move(w);
    lay_otherwise(w, 64 * 1024 * 1024);
    assert_int_equal(journal_open(dup(journal_fd(w->j)), turned, &j), 0);
    assert_int_equal(turned[0], w->sockets[0]);
    expect_moved(j);
    assert_true(lseek(journal_fd(j), 0, SEEK_END) < (off_t)1 << 40); /* of that nothing is left */
    journal_free(w->j);
    w->j = j;
    comes(w, SESSION_RUNTIME, "after"); /* it is one as any other */
    goes(w, SESSION_RUNTIME, "89");
    assert_int_equal(open_again(w, &j), 0);
    expect_bytes(j, JOURNAL_RUNTIME, "after", false);
    expect_end(j);
    journal_free(j);
}

static void who_moved_in_may_be_killed_at_once(void **state)
{
    struct world *w = *state;
    uint64_t moved = frozen_format(JOURNAL_MOVED_FORMAT), takers;
    uint8_t left[4096];
    struct journal *j;
    off_t moved_bytes, moved_at = (off_t)1 << 40;

    move(w);
    moved_bytes = lseek(journal_fd(w->j), 0, SEEK_END) - moved_at;
    assert_in_range(moved_bytes, 1, sizeof left);
    assert_int_equal(pread(journal_fd(w->j), left, (size_t)moved_bytes, moved_at), moved_bytes);
    for (unsigned i = 1; i < JOURNAL_TAKERS_MAX; i++) {
        assert_int_equal(open_again(w, &j), 0);
        journal_free(j);
        assert_int_equal(pread(journal_fd(w->j), &takers, 8, 8), 8);
        assert_int_equal(takers, i);
        /* as before it made that count */
        assert_int_equal(pwrite(journal_fd(w->j), left, (size_t)moved_bytes, moved_at),
                         moved_bytes);
        assert_int_equal(pwrite(journal_fd(w->j), &moved, 8, 0), 8);
    }
    assert_int_equal(open_again(w, &j), 0);
    expect_moved(j);
    journal_free(j);
    assert_int_equal(open_again(w, &j), -EPROTO);
}

static void what_was_moved_and_damaged_is_refused(void **state)
{
    struct world *w = *state;
    int others[2] = {w->sockets[0], w->pairs[1][1]};
    off_t at = (off_t)1 << 40, end;
    uint64_t none = 0;
    struct journal *j;
    uint8_t byte;

    move(w);
    assert_int_equal(journal_open(dup(journal_fd(w->j)), others, &j), -EPROTO);
    end = lseek(journal_fd(w->j), 0, SEEK_END);
    for (; at < end; at++) {
        assert_int_equal(pwrite(journal_fd(w->j), &none, 8, 8), 8); /* nobody died of it */
        assert_int_equal(pread(journal_fd(w->j), &byte, 1, at), 1);
        byte ^= 1;
        assert_int_equal(pwrite(journal_fd(w->j), &byte, 1, at), 1);
        assert_int_equal(open_again(w, &j), -EPROTO);
        byte ^= 1;
        assert_int_equal(pwrite(journal_fd(w->j), &byte, 1, at), 1);
    }
    assert_int_equal(pwrite(journal_fd(w->j), &none, 8, 8), 8);
    assert_int_equal(ftruncate(journal_fd(w->j), end - 1), 0);
    assert_int_equal(open_again(w, &j), -EPROTO);
    assert_int_equal(pwrite(journal_fd(w->j), &none, 8, 8), 8);
    assert_int_equal(ftruncate(journal_fd(w->j), (off_t)1 << 40), 0);
    assert_int_equal(open_again(w, &j), -EPROTO);
}

/* Without memory for it the journal stays what it was. */
static void what_cannot_be_moved_stays(void **state)
{
    struct world *w = *state;
    struct buffer session = {0}, unsent[2] = {{0}};
    unsigned failures = 0;
    struct journal *j;

    comes(w, SESSION_CLIENT, "before");
    assert_int_equal(buffer_put(&session, "state", 5), 0);
    for (bool failed = true; failed; failures++) {
        alloc_fail_at(failures + 1);
        alloc_fail_enable(true);
        journal_move(w->j, &session, unsent, (const uint64_t[2]){0, 0});
        alloc_fail_enable(false);
        failed = alloc_failed();
        alloc_fail_at(0);
        if (!failed)
            break;
        assert_int_equal(open_again(w, &j), 0);
        expect_bytes(j, JOURNAL_CLIENT, "before", false);
        expect_end(j);
        journal_settled(j);
        journal_free(j);
    }
    assert_true(failures > 0);
    assert_int_equal(open_again(w, &j), 0);
    expect_end(j);
    journal_free(j);
    buffer_fini(&session);
}

/* Each allocation of who takes it over fails once, and the next one finds all of it. */
static void without_memory_it_stays_for_the_next(void **state)
{
    struct world *w = *state;
    struct journal_start start;
    struct journal *j;
    int r = -ENOMEM;
    unsigned n = 0;

    move(w);
    while (r < 0) {
        alloc_fail_at(++n);
        alloc_fail_enable(true);
        r = open_again(w, &j);
        if (r == 0) {
            journal_settled(j);
            r = journal_start(j, &start);
            if (r < 0)
                journal_free(j);
        }
        alloc_fail_enable(false);
        assert_int_equal(r, alloc_failed() ? -ENOMEM : 0);
    }
    alloc_fail_at(0);
    assert_true(n > 2);
    buffer_fini(&start.unsent[SESSION_RUNTIME]);
    expect_moved(j);
    journal_free(j);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_has_come_is_there_in_its_order),
        TEST(a_state_takes_the_place_of_what_was),
        TEST(one_that_killed_its_reader_is_not_read_again),
        TEST(sockets_come_in_any_order_but_no_others),
        TEST(what_is_no_journal_is_refused),
        TEST(what_is_damaged_is_refused),
        TEST(what_was_read_last_is_there),
        TEST(who_takes_it_over_reads_on),
        TEST(what_it_came_to_takes_the_place_of_what_passed),
        TEST(what_was_not_all_taken_stays),
        TEST(what_passes_long_after_a_state_stays),
        TEST(what_was_decided_on_stays),
        TEST(what_passed_takes_little_room),
        TEST(what_passed_and_was_not_taken_is_damage),
        TEST(more_than_one_read_takes_is_damage),
        TEST(reads_of_both_ends_are_none),
        TEST(one_without_room_is_over),
        TEST(a_state_is_due_now_and_then),
        TEST(what_is_written_of_states_is_little_more_than_what_comes),
        TEST(as_many_large_decisions_as_are_held_have_room),
        TEST(what_was_moved_is_read_however_the_memory_was),
        TEST(who_moved_in_may_be_killed_at_once),
        TEST(what_was_moved_and_damaged_is_refused),
        TEST(what_cannot_be_moved_stays),
        TEST(without_memory_it_stays_for_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
