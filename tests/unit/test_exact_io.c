/* shim/exact_io.c: one that reads or writes and is killed again and again, between any two steps and
 * at any time, while its peer and what it has stored must agree on each byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

/* Set in a process that is to end at the so-many-th of its steps. */
static unsigned steps_left;

static void step_passed(void);
#define POINT(name) step_passed()
#include "shim/exact_io.c"

static void step_passed(void)
{
    if (steps_left > 0 && --steps_left == 0)
        raise(SIGKILL);
}

#define PIECE_BYTES_MAX 20000
#define TOTAL_BYTES (1 << 20)

/* What outlives each life. Of `done` the upper half is the number of the last call that counts, the
 * lower half the bytes of all that do: one store commits both. */
struct shared {
    struct exact_io io;
    uint64_t done;
    uint8_t landing[PIECE_BYTES_MAX];
    uint8_t bytes[TOTAL_BYTES + PIECE_BYTES_MAX]; /* that were read, or are to be written */
};

static struct shared *shared_new(void)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    assert_true(shared != MAP_FAILED);
    return shared;
}

static unsigned draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % below;
}

static uint8_t byte_at(size_t i)
{
    return (uint8_t)((i * 2654435761u) >> 13);
}

static size_t done_bytes(const struct shared *shared)
{
    return shared->done & UINT32_MAX;
}

static uint32_t done_serial(const struct shared *shared)
{
    return (uint32_t)(shared->done >> 32);
}

static void commit(struct shared *shared, size_t moved)
{
    uint64_t done = (uint64_t)exact_serial(&shared->io) << 32 | (done_bytes(shared) + moved);

    POINT("before commit");
    __atomic_store_n(&shared->done, done, __ATOMIC_RELEASE);
    POINT("after commit");
}

static void settle_read(struct shared *shared, ssize_t moved)
{
    memcpy(shared->bytes + done_bytes(shared), shared->landing, (size_t)moved);
    commit(shared, (size_t)moved);
}

/* ---- lives; each ends when all is moved, or killed ---- */

static void live_reading(struct shared *shared, int fd, unsigned seed)
{
    ssize_t n = exact_unsettled(&shared->io, done_serial(shared));

    if (n < 0)
        _exit(20);
    if (n > 0)
        settle_read(shared, n);
    for (;;) {
        n = exact_read(&shared->io, done_serial(shared), fd, shared->landing,
                       1 + draw(&seed, draw(&seed, 4) ? 300 : PIECE_BYTES_MAX));
        if (n > 0)
            settle_read(shared, n);
        else if (n == 0)
            _exit(0);
        else if (n == -EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
        else
            _exit(21);
    }
}

static void live_writing(struct shared *shared, int fd, unsigned seed)
{
    ssize_t n = exact_unsettled(&shared->io, done_serial(shared));

    if (n < 0)
        _exit(20);
    if (n > 0)
        commit(shared, (size_t)n);
    while (done_bytes(shared) < TOTAL_BYTES) {
        size_t len = 1 + draw(&seed, draw(&seed, 4) ? 300 : PIECE_BYTES_MAX);

        if (len > TOTAL_BYTES - done_bytes(shared))
            len = TOTAL_BYTES - done_bytes(shared);
        n = exact_write(&shared->io, done_serial(shared), fd, shared->bytes + done_bytes(shared),
                        len);
        if (n > 0)
            commit(shared, (size_t)n);
        else if (n == -EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else
            _exit(21);
    }
    _exit(0);
}

/* ---- the peer ---- */

struct peer {
    struct shared *shared;
    int fd;   /* its own */
    int kept; /* what the lives go on with */
    void (*live)(struct shared *shared, int fd, unsigned seed);
    unsigned seed, kills;
    size_t moved;
};

static void peer_init(struct peer *peer, unsigned seed,
                      void (*live)(struct shared *shared, int fd, unsigned seed))
{
    int pair[2], small = 4096;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    if (seed % 2) /* or writes come out whole */
        setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    *peer = (struct peer){
        .shared = shared_new(), .fd = pair[0], .kept = pair[1], .live = live, .seed = seed};
}

static void peer_fini(struct peer *peer)
{
    munmap(peer->shared, sizeof *peer->shared);
    if (peer->fd >= 0)
        close(peer->fd);
    close(peer->kept);
}

/* `steps_max`: it ends by one of its first so many steps; 0: when it is killed. */
static pid_t begin_life(struct peer *peer, unsigned steps_max)
{
    unsigned seed = draw(&peer->seed, 1 << 15);
    unsigned steps = steps_max ? 1 + draw(&peer->seed, steps_max) : 0;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    steps_left = steps;
    close(peer->fd); /* or its end would not be seen */
    peer->live(peer->shared, peer->kept, seed);
    _exit(30);
}

/* True: all is moved. */
static bool end_life(struct peer *peer, pid_t pid, bool kills)
{
    int status;

    if (kills)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    peer->kills++;
    return false;
}

static void peer_send(struct peer *peer)
{
    uint8_t bytes[PIECE_BYTES_MAX];
    size_t len = 1 + draw(&peer->seed, sizeof bytes);
    ssize_t n;

    if (len > TOTAL_BYTES - peer->moved)
        len = TOTAL_BYTES - peer->moved;
    for (size_t i = 0; i < len; i++)
        bytes[i] = byte_at(peer->moved + i);
    n = send(peer->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
        peer->moved += (size_t)n;
    if (peer->moved < TOTAL_BYTES)
        return;
    close(peer->fd);
    peer->fd = -1;
}

static void peer_receive(struct peer *peer)
{
    uint8_t bytes[PIECE_BYTES_MAX];
    ssize_t n = recv(peer->fd, bytes, 1 + draw(&peer->seed, sizeof bytes), MSG_DONTWAIT);

    for (ssize_t i = 0; i < n; i++)
        assert_int_equal(bytes[i], byte_at(peer->moved++));
}

static void work(struct peer *peer, unsigned steps_max, void (*turn)(struct peer *peer))
{
    for (bool over = false; !over;) {
        pid_t pid = begin_life(peer, steps_max);
        unsigned turns = draw(&peer->seed, 30);

        for (unsigned i = 0; i < turns && peer->fd >= 0; i++) {
            turn(peer);
            if (draw(&peer->seed, 4) == 0)
                poll(NULL, 0, (int)draw(&peer->seed, 2));
        }
        over = end_life(peer, pid, peer->fd >= 0 || draw(&peer->seed, 2));
    }
}

/* EXACT_IO_KILLS: more of them. */
static unsigned kills_wanted(unsigned kills)
{
    const char *text = getenv("EXACT_IO_KILLS");

    return text ? (unsigned)strtoul(text, NULL, 10) : kills;
}

static void all_is_read_once(unsigned kills, unsigned steps_max)
{
    unsigned sum = 0;

    for (unsigned seed = 1; sum < kills_wanted(kills); seed++) {
        struct peer peer;

        peer_init(&peer, seed, live_reading);
        work(&peer, steps_max, peer_send);
        assert_int_equal(done_bytes(peer.shared), TOTAL_BYTES);
        for (size_t i = 0; i < TOTAL_BYTES; i++)
            assert_int_equal(peer.shared->bytes[i], byte_at(i));
        sum += peer.kills;
        peer_fini(&peer);
    }
    print_message("%u kills\n", sum);
}

static void all_is_written_once(unsigned kills, unsigned steps_max)
{
    unsigned sum = 0;

    for (unsigned seed = 1; sum < kills_wanted(kills); seed++) {
        struct peer peer;
        size_t before;

        peer_init(&peer, seed, live_writing);
        for (size_t i = 0; i < TOTAL_BYTES; i++)
            peer.shared->bytes[i] = byte_at(i);
        work(&peer, steps_max, peer_receive);
        do {
            before = peer.moved;
            peer_receive(&peer);
        } while (peer.moved > before);
        assert_int_equal(peer.moved, TOTAL_BYTES);
        sum += peer.kills;
        peer_fini(&peer);
    }
    print_message("%u kills\n", sum);
}

static void killed_between_any_two_steps_a_reader_loses_and_doubles_nothing(void **state)
{
    (void)state;
    all_is_read_once(200, 60);
}

static void killed_at_any_time_a_reader_loses_and_doubles_nothing(void **state)
{
    (void)state;
    all_is_read_once(200, 0);
}

static void killed_between_any_two_steps_a_writer_loses_and_doubles_nothing(void **state)
{
    (void)state;
    all_is_written_once(200, 60);
}

static void killed_at_any_time_a_writer_loses_and_doubles_nothing(void **state)
{
    (void)state;
    all_is_written_once(200, 0);
}

/* ---- one process ---- */

static void what_moved_nothing_need_not_be_settled(void **state)
{
    struct shared *shared = shared_new();
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(exact_unsettled(&shared->io, 0), 0);
    assert_int_equal(exact_read(&shared->io, 0, pair[0], shared->landing, 9), -EAGAIN);
    assert_int_equal(exact_read(&shared->io, 0, pair[0], shared->landing, 9), -EAGAIN);
    assert_int_equal(exact_unsettled(&shared->io, 0), 0);
    assert_int_equal(write(pair[1], "abc", 3), 3);
    assert_int_equal(exact_read(&shared->io, 0, pair[0], shared->landing, 2), 2);
    assert_int_equal(exact_unsettled(&shared->io, 0), 2);
    assert_int_equal(exact_serial(&shared->io), 1);
    assert_int_equal(exact_unsettled(&shared->io, 1), 0);
    close(pair[1]);
    assert_int_equal(exact_read(&shared->io, 1, pair[0], shared->landing, 9), 1);
    assert_memory_equal(shared->landing, "c", 1);
    assert_int_equal(exact_read(&shared->io, 2, pair[0], shared->landing, 9), 0);
    assert_int_equal(exact_unsettled(&shared->io, 2), 0);
    assert_int_equal(exact_write(&shared->io, 2, pair[0], "x", 1), -EPIPE); /* and no SIGPIPE */
    assert_int_equal(exact_unsettled(&shared->io, 2), 0);
    close(pair[0]);
    munmap(shared, sizeof *shared);
}

static void a_number_or_length_that_cannot_be_is_none(void **state)
{
    struct exact_io io = {.serial = 8, .asked = 5, .call.msg_len = 5};

    (void)state;
    assert_int_equal(exact_unsettled(&io, 8), 0);
    assert_int_equal(exact_unsettled(&io, 7), 5);
    assert_int_equal(exact_unsettled(&io, 6), -EUCLEAN);
    assert_int_equal(exact_unsettled(&io, 9), -EUCLEAN);
    io.call.msg_len = 6;
    assert_int_equal(exact_unsettled(&io, 7), -EUCLEAN);
    io.asked = UINT32_MAX;
    assert_int_equal(exact_unsettled(&io, 7), -EUCLEAN);
    io = (struct exact_io){.serial = 0, .asked = 5, .call.msg_len = 1};
    assert_int_equal(exact_unsettled(&io, UINT32_MAX), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_moved_nothing_need_not_be_settled),
        cmocka_unit_test(a_number_or_length_that_cannot_be_is_none),
        cmocka_unit_test(killed_between_any_two_steps_a_reader_loses_and_doubles_nothing),
        cmocka_unit_test(killed_at_any_time_a_reader_loses_and_doubles_nothing),
        cmocka_unit_test(killed_between_any_two_steps_a_writer_loses_and_doubles_nothing),
        cmocka_unit_test(killed_at_any_time_a_writer_loses_and_doubles_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
