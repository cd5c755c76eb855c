/* shim/bridge/kept_socket.c and kept_memory.c: a conversation whose one side is killed again and
 * again, between any two steps and at any time, and whose other side must not notice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "alloc_fail.h"

/* Set in a process that is to end at the so-many-th of its steps. */
static unsigned steps_left;

static void step_passed(void);
#define POINT(name) step_passed()
#include "shim/bridge/kept_layout.c"
#include "shim/bridge/kept_memory.c"
#include "shim/bridge/kept_socket.c"
#include "shim/exact_io.c"

static void step_passed(void)
{
    if (steps_left > 0 && --steps_left == 0)
        raise(SIGKILL);
}

/* ---- one that answers each byte with two, which depend on all before ---- */

struct talk {
    uint64_t count;
    uint64_t sum;
};

/* The same in another release. */
struct later_talk {
    uint8_t more[70000];
    uint64_t sum;
    uint32_t count;
};

#define TALK(type, tag, field)                                                                     \
    {                                                                                              \
        tag, KEPT_NUMBER, offsetof(type, field), sizeof(((type *)0)->field), 1, 0                  \
    }

static const struct kept_field FIELDS[] = {TALK(struct talk, 1, count), TALK(struct talk, 2, sum)};
static const struct kept_field LATER_FIELDS[] = {
    {7, KEPT_BYTES, 0, 70000, 1, 0},
    TALK(struct later_talk, 2, sum),
    TALK(struct later_talk, 1, count),
};
static const struct kept_state STATE = {.bytes = sizeof(struct talk),
                                        .format = 7,
                                        .fields = FIELDS,
                                        .fields_len = 2,
                                        .areas = 2,
                                        .area_bytes = 10000};
static const struct kept_state LATER = {.bytes = sizeof(struct later_talk),
                                        .format = 7,
                                        .fields = LATER_FIELDS,
                                        .fields_len = 3,
                                        .areas = 3,
                                        .area_bytes = 20000};

static void answer_to(struct talk *talk, uint8_t byte, uint8_t out[2])
{
    talk->count++;
    talk->sum = talk->sum * 31 + byte + 1;
    out[0] = (uint8_t)(byte ^ talk->count);
    out[1] = (uint8_t)(talk->sum >> 16);
}

/* `release`: whose state it is. */
static void eat(struct kept_socket *kept, void *state, const uint8_t *bytes, size_t len,
                void *release)
{
    struct later_talk *later = release == &LATER ? state : NULL;
    struct talk talk = later ? (struct talk){later->count, later->sum} : *(struct talk *)state;
    uint8_t out[2 * KEPT_READ_BYTES_MAX];

    for (size_t i = 0; i < len; i++)
        answer_to(&talk, bytes[i], &out[2 * i]);
    if (later) {
        later->count = (uint32_t)talk.count;
        later->sum = talk.sum;
    } else {
        *(struct talk *)state = talk;
    }
    kept_socket_put(kept, out, 2 * len);
}

/* Ends with 0 when the other side has, else with where it failed. */
static int talk(struct kept_socket *kept, const struct kept_state *release)
{
    for (;;) {
        struct pollfd fd = {.fd = kept_socket_fd(kept, KEPT_SOCKET)};
        bool room = kept_socket_room(kept) >= 2 * KEPT_READ_BYTES_MAX;
        int written = kept_socket_write(kept),
            r = room ? kept_socket_read(kept, eat, (void *)release) : -EAGAIN;

        if (written < 0 && written != -EAGAIN)
            return 21;
        if (r == 0)
            return 0;
        if (r < 0 && r != -EAGAIN)
            return 22;
        fd.events = (short)((written < 0 ? POLLOUT : 0) | (room ? POLLIN : 0));
        if (r < 0)
            poll(&fd, 1, -1);
    }
}

/* A life of it, ended by step `steps` (0: not so). */
static pid_t begin_life(const int fds[KEPT_DESCRIPTORS], const struct kept_state *release,
                        unsigned steps)
{
    struct kept_socket *kept;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    signal(SIGPIPE, SIG_IGN);
    steps_left = steps;
    if (kept_socket_resume(fds, release, &kept) < 0)
        _exit(20);
    kept_socket_settled(kept);
    _exit(talk(kept, release));
}

/* ---- the other side, which also keeps the descriptors ---- */

struct peer {
    int fd;
    struct kept_socket *kept; /* only its descriptors */
    int fds[KEPT_DESCRIPTORS];
    struct talk expected;
    uint8_t waiting[2 * 256 * 1024]; /* answers to what was sent */
    size_t sent, got, total;
    unsigned seed;
    unsigned kills;
    bool upgraded; /* now and then, there or back */
};

static unsigned draw(struct peer *peer, unsigned below)
{
    peer->seed = peer->seed * 1103515245u + 12345u;
    return (peer->seed >> 16) % below;
}

static void peer_init(struct peer *peer, unsigned seed, size_t total)
{
    int pair[2], small = 4096;

    memset(peer, 0, sizeof *peer);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    peer->fd = pair[0];
    peer->seed = seed;
    peer->total = total;
    assert_int_equal(kept_socket_new(pair[1], &STATE, &peer->kept), 0);
    for (int i = 0; i < KEPT_DESCRIPTORS; i++)
        peer->fds[i] = kept_socket_fd(peer->kept, (enum kept_descriptor)i);
}

static void peer_fini(struct peer *peer)
{
    kept_socket_free(peer->kept);
    close(peer->fd);
}

static void peer_send(struct peer *peer)
{
    uint8_t bytes[20000];
    size_t len = 1 + draw(peer, draw(peer, 4) ? 500 : sizeof bytes);
    struct talk expected = peer->expected;
    ssize_t n;

    if (len > peer->total - peer->sent)
        len = peer->total - peer->sent;
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(draw(peer, 2) ? 0xff * draw(peer, 2) : draw(peer, 256));
    n = send(peer->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (ssize_t i = 0; i < n; i++)
        answer_to(&expected, bytes[i], &peer->waiting[2 * (peer->sent + (size_t)i)]);
    if (n > 0) {
        peer->expected = expected;
        peer->sent += (size_t)n;
    }
}

static void peer_receive(struct peer *peer)
{
    uint8_t bytes[4096];
    ssize_t n;

    while ((n = recv(peer->fd, bytes, 1 + draw(peer, sizeof bytes), MSG_DONTWAIT)) > 0) {
        assert_true(peer->got + (size_t)n <= 2 * peer->sent);
        assert_memory_equal(bytes, peer->waiting + peer->got, n);
        peer->got += (size_t)n;
    }
    assert_true(n != 0); /* it never ends */
}

/* After KEPT_TAKEOVERS_MAX lives in a row that did not settle none goes on: so now and then one has
 * to.
 */
static bool must_settle(const struct peer *peer)
{
    return peer->kills % (KEPT_TAKEOVERS_MAX - 2) == 0;
}

/* Before it has settled. */
#define UNSETTLED_STEPS_MAX 4

static unsigned steps_of(struct peer *peer, unsigned steps_max)
{
    return 1 + draw(peer, steps_max) + (must_settle(peer) ? UNSETTLED_STEPS_MAX : 0);
}

/* `steps_max`: each life ends by one of its first so many steps; 0: at any time. */
static void converse(struct peer *peer, unsigned steps_max)
{
    while (peer->got < 2 * peer->total) {
        const struct kept_state *release = peer->upgraded && draw(peer, 2) ? &LATER : &STATE;
        pid_t life = begin_life(peer->fds, release, steps_max ? steps_of(peer, steps_max) : 0);
        unsigned turns = draw(peer, 20);
        size_t got = peer->got;
        int status;

        for (unsigned turn = 0; steps_max ? waitpid(life, &status, WNOHANG) == 0
                                          : turn < turns || (must_settle(peer) && peer->got == got);
             turn++) {
            struct pollfd fd = {.fd = peer->fd, .events = POLLIN};

            if (peer->sent < peer->total && peer->sent - peer->got / 2 < 100000)
                peer_send(peer);
            peer_receive(peer);
            if (peer->got == 2 * peer->total) {
                kill(life, SIGKILL);
                waitpid(life, &status, 0);
                break;
            }
            poll(&fd, 1, 1);
        }
        if (steps_max == 0) {
            kill(life, SIGKILL);
            waitpid(life, &status, 0);
        }
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        peer->kills++;
    }
    peer_receive(peer);
    assert_int_equal(peer->got, 2 * peer->total);
}

/* KEPT_SOCKET_KILLS: more of them. */
static unsigned kills_wanted(unsigned kills)
{
    const char *text = getenv("KEPT_SOCKET_KILLS");

    return text ? (unsigned)strtoul(text, NULL, 10) : kills;
}

static void killed_between_any_two_steps(bool upgraded)
{
    static struct peer peer;
    unsigned kills = 0;

    for (unsigned seed = 1; kills < kills_wanted(400); seed++) {
        peer_init(&peer, seed, 10000);
        peer.upgraded = upgraded;
        converse(&peer, 4 + seed % 30);
        kills += peer.kills;
        peer_fini(&peer);
    }
    print_message("%u kills\n", kills);
}

static void killed_at_any_time(bool upgraded)
{
    static struct peer peer;
    unsigned kills = 0;

    for (unsigned seed = 1; kills < kills_wanted(100); seed++) {
        peer_init(&peer, seed, 200000);
        peer.upgraded = upgraded;
        converse(&peer, 0);
        kills += peer.kills;
        peer_fini(&peer);
    }
    print_message("%u kills\n", kills);
}

static void killed_between_any_two_steps_nothing_is_lost_or_doubled(void **state)
{
    (void)state;
    killed_between_any_two_steps(false);
}

static void killed_at_any_time_nothing_is_lost_or_doubled(void **state)
{
    (void)state;
    killed_at_any_time(false);
}

/* Also while one of them makes the other's state its own. */
static void nor_when_releases_take_turns(void **state)
{
    (void)state;
    killed_between_any_two_steps(true);
    killed_at_any_time(true);
}

/* ---- one process ---- */

struct pair {
    int peer;
    struct kept_socket *kept;
};

static void pair_init(struct pair *pair)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    pair->peer = fds[0];
    assert_int_equal(kept_socket_new(fds[1], &STATE, &pair->kept), 0);
}

static void pair_fini(struct pair *pair)
{
    kept_socket_free(pair->kept);
    close(pair->peer);
}

/* As another process, with duplicates of what is kept, `socket` in place of its own (-1: its own);
 * what that came to. */
static int go_on(const struct pair *pair, int socket, const struct kept_state *state)
{
    struct kept_socket *next = NULL;
    int fds[KEPT_DESCRIPTORS], err;

    for (int i = 0; i < KEPT_DESCRIPTORS; i++)
        fds[i] = dup(i == KEPT_SOCKET && socket >= 0
                         ? socket
                         : kept_socket_fd(pair->kept, (enum kept_descriptor)i));
    err = kept_socket_resume(fds, state, &next);
    for (int i = 0; i < KEPT_DESCRIPTORS && err; i++)
        assert_int_equal(close(fds[i]), 0); /* still the caller's */
    kept_socket_free(next);
    return err;
}

static void only_its_own_state_is_gone_on_with(void **state)
{
    struct kept_state other_format = STATE;
    struct pair pair, other;

    (void)state;
    pair_init(&pair);
    pair_init(&other);
    other_format.format++;
    assert_int_equal(go_on(&pair, -1, &other_format), -ESTALE);
    assert_int_equal(go_on(&pair, kept_socket_fd(other.kept, KEPT_SOCKET), &STATE), -ESTALE);
    assert_int_equal(go_on(&pair, -1, &STATE), 0);
    pair.kept->memory.root->format++; /* a later release's */
    assert_int_equal(go_on(&pair, -1, &STATE), -ESTALE);
    pair_fini(&pair);
    pair_fini(&other);
}

static void a_state_that_makes_no_sense_is_given_up(void **state)
{
    struct pair pair;
    struct kept_slot good;

    (void)state;
    pair_init(&pair);
    kept_socket_edit(pair.kept);
    kept_socket_put(pair.kept, "x", 1);
    kept_socket_commit(pair.kept);
    assert_int_equal(kept_socket_write(pair.kept), 0);
    good = *active(pair.kept);
    for (int what = 0; what < 4; what++) {
        struct kept_slot *slot = active(pair.kept);

        memcpy(slot, &good, offsetof(struct kept_slot, out));
        if (what == 1)
            slot->out_len = KEPT_OUT_BYTES_MAX + 1;
        if (what == 2)
            slot->read -= 2;
        if (what == 3)
            slot->written--; /* of one byte more than was to be written */
        kept_socket_settled(pair.kept);
        assert_int_equal(go_on(&pair, -1, &STATE), what == 0 ? 0 : -EUCLEAN);
    }
    memcpy(active(pair.kept), &good, offsetof(struct kept_slot, out));
    pair.kept->memory.head->active = 2;
    assert_int_equal(go_on(&pair, -1, &STATE), -EUCLEAN);
    pair.kept->memory.head->active = 0;
    pair_fini(&pair);
}

static void next_of(const struct pair *pair, const struct kept_state *release,
                    struct kept_socket **out)
{
    int fds[KEPT_DESCRIPTORS];

    for (int i = 0; i < KEPT_DESCRIPTORS; i++)
        fds[i] = dup(kept_socket_fd(pair->kept, (enum kept_descriptor)i));
    assert_int_equal(kept_socket_resume(fds, release, out), 0);
}

/* What one has that the other has not is zero, and what it has in areas is where it was. */
static void another_release_goes_on_and_back(void **state)
{
    struct kept_socket *later, *again;
    struct pair pair;
    struct talk *talk;
    struct later_talk *at;

    (void)state;
    pair_init(&pair);
    talk = kept_socket_edit(pair.kept);
    *talk = (struct talk){.count = 41, .sum = 42};
    kept_socket_put(pair.kept, "xyz", 3);
    kept_socket_commit(pair.kept);
    memset(kept_socket_area(pair.kept, 1), 'b', STATE.area_bytes);
    next_of(&pair, &LATER, &later);
    at = kept_socket_edit(later);
    assert_int_equal(at->count, 41);
    assert_int_equal(at->sum, 42);
    assert_int_equal(at->more[0] + at->more[69999], 0);
    assert_int_equal(kept_socket_room(later), KEPT_OUT_BYTES_MAX - 3);
    at->count = 43;
    memset(at->more, 1, sizeof at->more);
    kept_socket_commit(later);
    assert_int_equal(kept_socket_area(later, 1)[STATE.area_bytes - 1], 'b');
    memset(kept_socket_area(later, 2), 'c', LATER.area_bytes);
    next_of(&pair, &STATE, &again);
    assert_int_equal(((const struct talk *)kept_socket_state(again))->count, 43);
    assert_int_equal(((const struct talk *)kept_socket_state(again))->sum, 42);
    kept_socket_free(later);
    next_of(&pair, &LATER, &later);
    assert_int_equal(((const struct later_talk *)kept_socket_state(later))->more[69999], 0);
    assert_int_equal(kept_socket_area(later, 2)[LATER.area_bytes - 1], 'c');
    kept_socket_free(later);
    kept_socket_free(again);
    pair_fini(&pair);
}

static void what_does_not_fit_another_release_is_not_gone_on_with(void **state)
{
    struct pair pair;
    struct talk *talk;

    (void)state;
    pair_init(&pair);
    talk = kept_socket_edit(pair.kept);
    talk->count = UINT64_C(1) << 32;
    kept_socket_commit(pair.kept);
    assert_int_equal(go_on(&pair, -1, &LATER), -ESTALE);
    assert_int_equal(go_on(&pair, -1, &STATE), 0);
    memset(pair.kept->memory.image, 0xff, 4);
    assert_int_equal(go_on(&pair, -1, &STATE), -EUCLEAN);
    pair_fini(&pair);
}

/* Each allocation fails once: there is none then, and what was kept is there for the next. */
static void without_memory_nothing_is_lost(void **state)
{
    struct pair pair;
    struct talk *talk;
    int fds[2], made = -ENOMEM, resumed = -ENOMEM;
    unsigned failures = 0;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    pair.peer = fds[0];
    for (unsigned n = 1; made < 0; n++, failures++) {
        alloc_fail_at(n);
        alloc_fail_enable(true);
        made = kept_socket_new(fds[1], &STATE, &pair.kept);
        alloc_fail_enable(false);
        assert_int_equal(made, alloc_failed() ? -ENOMEM : 0);
    }
    talk = kept_socket_edit(pair.kept);
    talk->count = 41;
    kept_socket_commit(pair.kept);
    for (unsigned n = 1; resumed < 0; n++, failures++) {
        alloc_fail_at(n);
        alloc_fail_enable(true);
        resumed = go_on(&pair, -1, &LATER);
        alloc_fail_enable(false);
        assert_int_equal(resumed, alloc_failed() ? -ENOMEM : 0);
        alloc_fail_at(0);
        assert_int_equal(go_on(&pair, -1, &STATE), 0);
        kept_socket_settled(pair.kept);
    }
    assert_in_range(failures, 6, 20);
    pair_fini(&pair);
}

/* It may be what they read that kills them. */
static void processes_that_die_one_after_the_other_end_it(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(go_on(&pair, -1, &STATE), 0);
        kept_socket_settled(pair.kept);
    }
    for (int i = 0; i < KEPT_TAKEOVERS_MAX; i++)
        assert_int_equal(go_on(&pair, -1, &STATE), 0);
    assert_int_equal(go_on(&pair, -1, &STATE), -ELOOP);
    assert_int_equal(go_on(&pair, -1, &STATE), -ELOOP);
    pair_fini(&pair);
}

static void its_end_is_told(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(kept_socket_read(pair.kept, eat, NULL), -EAGAIN);
    assert_int_equal(send(pair.peer, "abc", 3, 0), 3);
    shutdown(pair.peer, SHUT_WR);
    assert_int_equal(kept_socket_read(pair.kept, eat, NULL), 3);
    assert_int_equal(((const struct talk *)kept_socket_state(pair.kept))->count, 3);
    assert_int_equal(kept_socket_room(pair.kept), KEPT_OUT_BYTES_MAX - 6);
    assert_int_equal(kept_socket_read(pair.kept, eat, NULL), 0);
    assert_int_equal(kept_socket_write(pair.kept), 0);
    close(pair.peer);
    pair.peer = -1;
    kept_socket_edit(pair.kept);
    kept_socket_put(pair.kept, "x", 1);
    kept_socket_commit(pair.kept);
    assert_int_equal(kept_socket_write(pair.kept), -EPIPE);
    kept_socket_free(pair.kept);
    kept_socket_free(NULL);
}

static void a_change_that_was_not_committed_is_none(void **state)
{
    struct pair pair;
    struct talk *talk;

    (void)state;
    pair_init(&pair);
    talk = kept_socket_edit(pair.kept);
    talk->count = 9;
    kept_socket_put(pair.kept, "x", 1);
    assert_int_equal(kept_socket_room(pair.kept), KEPT_OUT_BYTES_MAX - 1);
    kept_socket_abandon(pair.kept); /* or it dies here */
    assert_int_equal(go_on(&pair, -1, &STATE), 0);
    assert_int_equal(((const struct talk *)kept_socket_state(pair.kept))->count, 0);
    assert_int_equal(kept_socket_room(pair.kept), KEPT_OUT_BYTES_MAX);
    talk = kept_socket_edit(pair.kept);
    assert_int_equal(talk->count, 0);
    talk->count = 9;
    kept_socket_commit(pair.kept);
    assert_int_equal(((const struct talk *)kept_socket_state(pair.kept))->count, 9);
    pair_fini(&pair);
}

static void areas_outlive_it_until_they_are_discarded(void **state)
{
    struct pair pair;
    struct kept_socket *next;
    int fds[KEPT_DESCRIPTORS];

    (void)state;
    pair_init(&pair);
    memset(kept_socket_area(pair.kept, 0), 'a', STATE.area_bytes);
    memset(kept_socket_area(pair.kept, 1), 'b', STATE.area_bytes);
    assert_ptr_equal(kept_socket_area(pair.kept, 1), kept_socket_area(pair.kept, 1));
    for (int i = 0; i < KEPT_DESCRIPTORS; i++)
        fds[i] = dup(kept_socket_fd(pair.kept, (enum kept_descriptor)i));
    assert_int_equal(kept_socket_resume(fds, &STATE, &next), 0);
    kept_socket_discard(next, 0);
    assert_int_equal(kept_socket_area(pair.kept, 0)[STATE.area_bytes - 1], 0);
    assert_int_equal(kept_socket_area(next, 0)[0], 0);
    assert_int_equal(kept_socket_area(next, 1)[STATE.area_bytes - 1], 'b');
    assert_int_equal(kept_socket_area(next, 1)[0], 'b');
    kept_socket_free(next);
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_its_own_state_is_gone_on_with),
        cmocka_unit_test(a_state_that_makes_no_sense_is_given_up),
        cmocka_unit_test(another_release_goes_on_and_back),
        cmocka_unit_test(what_does_not_fit_another_release_is_not_gone_on_with),
        cmocka_unit_test(without_memory_nothing_is_lost),
        cmocka_unit_test(processes_that_die_one_after_the_other_end_it),
        cmocka_unit_test(its_end_is_told),
        cmocka_unit_test(areas_outlive_it_until_they_are_discarded),
        cmocka_unit_test(a_change_that_was_not_committed_is_none),
        cmocka_unit_test(killed_between_any_two_steps_nothing_is_lost_or_doubled),
        cmocka_unit_test(killed_at_any_time_nothing_is_lost_or_doubled),
        cmocka_unit_test(nor_when_releases_take_turns),
    };

    signal(SIGPIPE, SIG_IGN); /* as all of ours do */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
