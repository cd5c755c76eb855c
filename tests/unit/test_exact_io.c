/* shim/exact_io.c: one that reads or writes and is killed again and again, between any two steps
 * and at any time, while its peer and what it has stored must agree on each byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "killed_lives.h"

#include "shim/exact_io.c"

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

static void live_reading(void *memory, int fd, unsigned seed)
{
    struct shared *shared = memory;
    ssize_t n = exact_unsettled(&shared->io, done_serial(shared));

    if (n < 0)
        _exit(20);
    if (n > 0)
        settle_read(shared, n);
    for (;;) {
        n = exact_read(&shared->io, done_serial(shared), fd, shared->landing,
                       1 + lives_draw(&seed, lives_draw(&seed, 4) ? 300 : PIECE_BYTES_MAX));
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

static void live_writing(void *memory, int fd, unsigned seed)
{
    struct shared *shared = memory;
    ssize_t n = exact_unsettled(&shared->io, done_serial(shared));

    if (n < 0)
        _exit(20);
    if (n > 0)
        commit(shared, (size_t)n);
    while (done_bytes(shared) < TOTAL_BYTES) {
        size_t len = 1 + lives_draw(&seed, lives_draw(&seed, 4) ? 300 : PIECE_BYTES_MAX);

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

/* ---- and their peer ---- */

static void all_is_read_once(unsigned kills, unsigned steps_max)
{
    unsigned sum = 0;

    for (unsigned seed = 1; sum < lives_kills_wanted(kills); seed++) {
        struct lives lives;
        struct shared *shared;

        lives_init(&lives, seed, sizeof *shared, live_reading);
        shared = lives.shared;
        lives_run(&lives, steps_max, lives_send);
        assert_int_equal(done_bytes(shared), TOTAL_BYTES);
        for (size_t i = 0; i < TOTAL_BYTES; i++)
            assert_int_equal(shared->bytes[i], lives_byte_at(i));
        sum += lives.kills;
        lives_fini(&lives);
    }
    print_message("%u kills\n", sum);
}

static void all_is_written_once(unsigned kills, unsigned steps_max)
{
    unsigned sum = 0;

    for (unsigned seed = 1; sum < lives_kills_wanted(kills); seed++) {
        struct lives lives;
        struct shared *shared;
        size_t before;

        lives_init(&lives, seed, sizeof *shared, live_writing);
        shared = lives.shared;
        for (size_t i = 0; i < TOTAL_BYTES; i++)
            shared->bytes[i] = lives_byte_at(i);
        lives_run(&lives, steps_max, lives_receive);
        do {
            before = lives.moved;
            lives_receive(&lives);
        } while (lives.moved > before);
        assert_int_equal(lives.moved, TOTAL_BYTES);
        sum += lives.kills;
        lives_fini(&lives);
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
    static struct exact_io io; /* AddressSanitizer's stack is not aligned to a line of the cache */

    (void)state;
    io = (struct exact_io){.serial = 8, .asked = 5, .call.msg_len = 5};
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
