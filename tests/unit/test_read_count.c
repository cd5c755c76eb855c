/* shim/read_count.c: one that reads and is killed again and again, between any two steps and at any
 * time, while its peer and what it has stored must agree on each byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Set in a process that is to end at the so-many-th of its steps. */
static unsigned steps_left;

static void step_passed(void);
#define POINT(name) step_passed()
/* Small, so that it is raised often. */
#define READ_COUNT_SPAN (UINT32_C(1) << 17)
#include "shim/read_count.c"

static void step_passed(void)
{
    if (steps_left > 0 && --steps_left == 0)
        raise(SIGKILL);
}

#define PIECE_BYTES_MAX 20000
#define TOTAL_BYTES (1 << 20)

/* What outlives each life. */
struct shared {
    uint64_t done; /* bytes */
    uint8_t landing[PIECE_BYTES_MAX];
    uint8_t bytes[TOTAL_BYTES + PIECE_BYTES_MAX];
};

static unsigned draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % below;
}

static uint8_t byte_at(size_t i)
{
    return (uint8_t)((i * 2654435761u) >> 13);
}

static void settle(struct shared *shared, ssize_t n)
{
    memcpy(shared->bytes + shared->done, shared->landing, (size_t)n);
    POINT("before commit");
    __atomic_store_n(&shared->done, shared->done + (uint64_t)n, __ATOMIC_RELEASE);
    POINT("after commit");
}

static void live(struct shared *shared, int fd, unsigned seed)
{
    struct read_count count;
    ssize_t n = read_count_resume(&count, fd, shared->done, PIECE_BYTES_MAX);

    if (n < 0)
        _exit(20);
    if (n > 0)
        settle(shared, n);
    for (;;) {
        n = read_count_read(&count, fd, shared->landing,
                            1 + draw(&seed, draw(&seed, 4) ? 300 : PIECE_BYTES_MAX));
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

struct world {
    struct shared *shared;
    int ours; /* the peer's is `fd`; -1: all is sent */
    int fd;
    unsigned seed, kills;
    size_t sent;
};

static void world_init(struct world *w, unsigned seed)
{
    struct read_count count;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    *w = (struct world){.fd = pair[0], .ours = pair[1], .seed = seed};
    w->shared = mmap(NULL, sizeof *w->shared, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    assert_true(w->shared != MAP_FAILED);
    assert_int_equal(read_count_init(&count, w->ours), 0);
}

static void world_fini(struct world *w)
{
    munmap(w->shared, sizeof *w->shared);
    close(w->ours);
    if (w->fd >= 0)
        close(w->fd);
}

static void send_some(struct world *w)
{
    uint8_t bytes[PIECE_BYTES_MAX];
    size_t len = 1 + draw(&w->seed, sizeof bytes);
    ssize_t n;

    if (len > TOTAL_BYTES - w->sent)
        len = TOTAL_BYTES - w->sent;
    for (size_t i = 0; i < len; i++)
        bytes[i] = byte_at(w->sent + i);
    n = send(w->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
        w->sent += (size_t)n;
    if (w->sent < TOTAL_BYTES)
        return;
    close(w->fd);
    w->fd = -1;
}

/* `steps_max`: it ends by one of its first so many steps; 0: when it is killed. */
static pid_t begin_life(struct world *w, unsigned steps_max)
{
    unsigned seed = draw(&w->seed, 1 << 15);
    unsigned steps = steps_max ? 1 + draw(&w->seed, steps_max) : 0;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    steps_left = steps;
    close(w->fd); /* or its end would not be seen */
    live(w->shared, w->ours, seed);
    _exit(30);
}

/* True: all is read. */
static bool end_life(struct world *w, pid_t pid, bool kills)
{
    int status;

    if (kills)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    w->kills++;
    return false;
}

static void all_is_read_once(unsigned kills, unsigned steps_max)
{
    const char *more = getenv("EXACT_IO_KILLS");
    unsigned wanted = more ? (unsigned)strtoul(more, NULL, 10) : kills, sum = 0;

    for (unsigned seed = 1; sum < wanted; seed++) {
        struct world w;
        bool over = false;

        world_init(&w, seed);
        while (!over) {
            pid_t pid = begin_life(&w, steps_max);

            for (unsigned turns = draw(&w.seed, 30); turns > 0 && w.fd >= 0; turns--) {
                send_some(&w);
                if (draw(&w.seed, 4) == 0)
                    poll(NULL, 0, (int)draw(&w.seed, 2));
            }
            over = end_life(&w, pid, w.fd >= 0 || draw(&w.seed, 2));
        }
        assert_int_equal(w.shared->done, TOTAL_BYTES);
        for (size_t i = 0; i < TOTAL_BYTES; i++)
            assert_int_equal(w.shared->bytes[i], byte_at(i));
        sum += w.kills;
        world_fini(&w);
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
