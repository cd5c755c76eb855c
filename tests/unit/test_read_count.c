/* shim/read_count.c: one that reads and is killed again and again, between any two steps and at any
 * time, while its peer and what it has stored must agree on each byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "killed_lives.h"

/* Small, so that it is raised often. */
#define READ_COUNT_SPAN (UINT32_C(1) << 17)
#include "shim/read_count.c"

/* What outlives each life. */
struct shared {
    uint64_t done; /* bytes */
    uint8_t landing[PIECE_BYTES_MAX];
    uint8_t bytes[TOTAL_BYTES + PIECE_BYTES_MAX];
};

static void settle(struct shared *shared, ssize_t n)
{
    memcpy(shared->bytes + shared->done, shared->landing, (size_t)n);
    POINT("before commit");
    __atomic_store_n(&shared->done, shared->done + (uint64_t)n, __ATOMIC_RELEASE);
    POINT("after commit");
}

static void live(void *memory, int fd, unsigned seed)
{
    struct shared *shared = memory;
    struct read_count count;
    ssize_t n = read_count_resume(&count, fd, shared->done, PIECE_BYTES_MAX);

    if (n < 0)
        _exit(20);
    if (n > 0)
        settle(shared, n);
    for (;;) {
        n = read_count_read(&count, fd, shared->landing,
                            1 + lives_draw(&seed, lives_draw(&seed, 4) ? 300 : PIECE_BYTES_MAX));
        if (n > 0)
            settle(shared, n);
        else if (n == 0)
            _exit(0);
        else if (n == -EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
        else
            _exit(21);
    }
}

static void all_is_read_once(unsigned kills, unsigned steps_max)
{
    unsigned sum = 0;

    for (unsigned seed = 1; sum < lives_kills_wanted(kills); seed++) {
        struct read_count count;
        struct lives lives;
        struct shared *shared;

        lives_init(&lives, seed, sizeof *shared, live);
        shared = lives.shared;
        assert_int_equal(read_count_init(&count, lives.kept), 0);
        lives_run(&lives, steps_max, lives_send);
        assert_int_equal(shared->done, TOTAL_BYTES);
        for (size_t i = 0; i < TOTAL_BYTES; i++)
            assert_int_equal(shared->bytes[i], lives_byte_at(i));
        sum += lives.kills;
        lives_fini(&lives);
    }
    print_message("%u kills\n", sum);
}

static void killed_between_any_two_steps_it_loses_and_doubles_nothing(void **state)
{
    (void)state;
    all_is_read_once(200, 60);
}

static void killed_at_any_time_it_loses_and_doubles_nothing(void **state)
{
    (void)state;
    all_is_read_once(200, 0);
}

static void what_was_read_and_not_settled_is_known(void **state)
{
    struct read_count count, next;
    char bytes[16];
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(read_count_resume(&next, pair[0], 0, 99), -EUCLEAN); /* not counted yet */
    assert_int_equal(read_count_init(&count, pair[0]), 0);
    assert_int_equal(read_count_read(&count, pair[0], bytes, sizeof bytes), -EAGAIN);
    assert_int_equal(read_count_resume(&next, pair[0], 0, 99), 0);
    assert_int_equal(write(pair[1], "hello", 5), 5);
    assert_int_equal(read_count_read(&count, pair[0], bytes, 3), 3);
    assert_int_equal(read_count_resume(&next, pair[0], 0, 3), 3);
    assert_int_equal(read_count_resume(&next, pair[0], 3, 99), 0);
    assert_int_equal(read_count_resume(&next, pair[0], 0, 2), -EUCLEAN);  /* more than one read */
    assert_int_equal(read_count_resume(&next, pair[0], 4, 99), -EUCLEAN); /* less than settled */
    close(pair[1]);
    assert_int_equal(read_count_read(&count, pair[0], bytes, sizeof bytes), 2);
    assert_int_equal(read_count_read(&count, pair[0], bytes, sizeof bytes), 0);
    close(pair[0]);
}

static void another_kind_of_socket_cannot_be_counted(void **state)
{
    struct read_count count;
    int pipes[2];

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_true(read_count_init(&count, pipes[0]) < 0);
    assert_true(read_count_resume(&count, pipes[0], 0, 1) < 0);
    close(pipes[0]);
    close(pipes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_read_and_not_settled_is_known),
        cmocka_unit_test(another_kind_of_socket_cannot_be_counted),
        cmocka_unit_test(killed_between_any_two_steps_it_loses_and_doubles_nothing),
        cmocka_unit_test(killed_at_any_time_it_loses_and_doubles_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
