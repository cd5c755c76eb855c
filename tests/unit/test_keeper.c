/* shim/rpc/keeper.c: what fails is tried again, what is gone is made anew. */
#include "shim/boot_clock.h"
#include "shim/rpc/keeper.h"
#include "tests/unit/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct fixture {
    struct world *world;
    struct keeper *keeper;
    int result;
    unsigned tries;
    char text[4096]; /* what was logged */
    int log, saved;
};

static int serve(void *user)
{
    struct fixture *f = user;

    f->tries++;
    return f->result;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    keeper_stop(f->keeper);
    err = world_free(f->world);
    free(f);
    return err;
}

/* stderr goes to a file from here to logged(). */
static void start(struct fixture *f, int result)
{
    char name[] = "/tmp/test-keeper-XXXXXX";

    f->log = mkstemp(name);
    unlink(name);
    f->saved = dup(STDERR_FILENO);
    dup2(f->log, STDERR_FILENO);
    f->result = result;
    f->keeper = keeper_start(&f->world->loop, "a socket", serve, f);
}

static void tries(struct fixture *f, unsigned more)
{
    unsigned end = f->tries + more;

    WAIT(f->world, f->tries >= end);
}

static const char *logged(struct fixture *f)
{
    ssize_t n = pread(f->log, f->text, sizeof f->text - 1, 0);

    dup2(f->saved, STDERR_FILENO);
    close(f->saved);
    close(f->log);
    f->text[n < 0 ? 0 : n] = '\0';
    return f->text;
}

static unsigned count(const char *text, const char *part)
{
    unsigned n = 0;

    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

static void the_first_try_is_at_once(void **state)
{
    struct fixture *f = *state;

    start(f, 1);
    assert_int_equal(f->tries, 1);
    assert_string_equal(logged(f), "");
}

static void a_failure_is_tried_again_and_told_when_it_changes(void **state)
{
    struct fixture *f = *state;
    const char *text;

    start(f, -ENOTEMPTY);
    tries(f, 2);
    f->result = -EADDRINUSE;
    tries(f, 1);
    f->result = 1;
    tries(f, 1);
    text = logged(f);
    assert_int_equal(count(text, "a socket: "), 3);
    assert_int_equal(count(text, "a socket: a directory that is not empty is in its place; "), 1);
    assert_int_equal(count(text, "a socket: another process serves this socket; "), 1);
    assert_int_equal(count(text, "a socket: works now"), 1);
}

static void what_fails_is_a_trouble_since_it_began(void **state)
{
    struct fixture *f = *state;
    uint64_t since_ms = 1, later_ms;

    start(f, -ENOTEMPTY);
    assert_string_equal(keeper_trouble(f->keeper, &since_ms),
                        "a directory that is not empty is in its place");
    assert_in_range(boot_now_ms() - since_ms, 0, 60000);
    f->result = -EADDRINUSE;
    tries(f, 1);
    assert_string_equal(keeper_trouble(f->keeper, &later_ms), "another process serves this socket");
    assert_int_equal(later_ms, since_ms);
    f->result = 1;
    tries(f, 1);
    assert_null(keeper_trouble(f->keeper, &later_ms));
    logged(f);
}

static void what_stands_is_looked_at(void **state)
{
    struct fixture *f = *state;
    const char *text;

    start(f, 1);
    f->result = 0;
    tries(f, 1);
    f->result = 1;
    tries(f, 1);
    text = logged(f);
    assert_int_equal(count(text, "a socket: "), 1);
    assert_int_equal(count(text, "gone; it is made anew"), 1);
}

static void pauses_grow_to_a_maximum(void **state)
{
    struct fixture *f = *state;
    uint64_t begin = uv_hrtime();

    start(f, -EROFS);
    tries(f, 3);
    /* 100 ms, 200 ms, 400 ms. */
    assert_true(uv_hrtime() - begin >= 690 * 1000000ull);
    logged(f);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_try_is_at_once),
        TEST(a_failure_is_tried_again_and_told_when_it_changes),
        TEST(what_fails_is_a_trouble_since_it_began),
        TEST(what_stands_is_looked_at),
        TEST(pauses_grow_to_a_maximum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
