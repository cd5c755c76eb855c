#include "killed_lives.h"

#include <setjmp.h>
#include <stdarg.h>

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Set in a process that is to end at the so-many-th of its steps. */
static unsigned steps_left;

void lives_step(void)
{
    if (steps_left > 0 && --steps_left == 0)
        raise(SIGKILL);
}

unsigned lives_draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % below;
}

uint8_t lives_byte_at(size_t i)
{
    return (uint8_t)((i * 2654435761u) >> 13);
}

unsigned lives_kills_wanted(unsigned kills)
{
    const char *text = getenv("EXACT_IO_KILLS");

    return text ? (unsigned)strtoul(text, NULL, 10) : kills;
}

void lives_init(struct lives *lives, unsigned seed, size_t shared_bytes,
                void (*live)(void *shared, int fd, unsigned seed))
{
    int pair[2], small = 4096;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    if (seed % 2)
        setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    *lives = (struct lives){
        .shared_bytes = shared_bytes, .fd = pair[0], .kept = pair[1], .live = live, .seed = seed};
    lives->shared = mmap(NULL, shared_bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    assert_true(lives->shared != MAP_FAILED);
}

void lives_fini(struct lives *lives)
{
    munmap(lives->shared, lives->shared_bytes);
    if (lives->fd >= 0)
        close(lives->fd);
    close(lives->kept);
}

static pid_t begin_life(struct lives *lives, unsigned steps_max)
{
    unsigned seed = lives_draw(&lives->seed, 1 << 15);
    unsigned steps = steps_max ? 1 + lives_draw(&lives->seed, steps_max) : 0;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    steps_left = steps;
    close(lives->fd); /* or its end would not be seen */
    lives->live(lives->shared, lives->kept, seed);
    _exit(30);
}

/* True: all is moved. */
static bool end_life(struct lives *lives, pid_t pid, bool kills)
{
    int status;

    if (kills)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    lives->kills++;
    return false;
}

void lives_run(struct lives *lives, unsigned steps_max, void (*turn)(struct lives *lives))
{
    for (bool over = false; !over;) {
        pid_t pid = begin_life(lives, steps_max);
        unsigned turns = lives_draw(&lives->seed, 30);

        for (unsigned i = 0; i < turns && lives->fd >= 0; i++) {
            turn(lives);
            if (lives_draw(&lives->seed, 4) == 0)
                poll(NULL, 0, (int)lives_draw(&lives->seed, 2));
        }
        over = end_life(lives, pid, lives->fd >= 0 || lives_draw(&lives->seed, 2));
    }
}

void lives_send(struct lives *lives)
{
    uint8_t bytes[PIECE_BYTES_MAX];
    size_t len = 1 + lives_draw(&lives->seed, sizeof bytes);
    ssize_t n;

    if (len > TOTAL_BYTES - lives->moved)
        len = TOTAL_BYTES - lives->moved;
    for (size_t i = 0; i < len; i++)
        bytes[i] = lives_byte_at(lives->moved + i);
    n = send(lives->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
        lives->moved += (size_t)n;
    if (lives->moved < TOTAL_BYTES)
        return;
    close(lives->fd);
    lives->fd = -1;
}

void lives_receive(struct lives *lives)
{
    uint8_t bytes[PIECE_BYTES_MAX];
    ssize_t n = recv(lives->fd, bytes, 1 + lives_draw(&lives->seed, sizeof bytes), MSG_DONTWAIT);

    for (ssize_t i = 0; i < n; i++)
        assert_int_equal(bytes[i], lives_byte_at(lives->moved++));
}
