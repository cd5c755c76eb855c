/* shim/bridge/starts.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/bridge/limits.h"
#include "shim/bridge/starts.h"

static char path[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(path, "/tmp/test-starts-XXXXXX");
    close(mkstemp(path));
    return unlink(path);
}

static int tear_down(void **state)
{
    (void)state;
    return access(path, F_OK) == 0 ? unlink(path) : 0;
}

static void the_first_ones_are_free(void **state)
{
    (void)state;
    for (unsigned i = 0; i <= STARTS_FREE; i++)
        assert_int_equal(starts_note(path, 1000 + 50 * i),
                         i < STARTS_FREE ? 0 : STARTS_DELAY_MS_MIN);
}

/* Each dies 10 ms after it has begun to register. */
static void the_pause_doubles_to_a_maximum(void **state)
{
    uint64_t now_ms = 1000, delay_ms = 0, last_ms = 0;

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        delay_ms = starts_note(path, now_ms);
        if (last_ms)
            assert_int_equal(delay_ms,
                             2 * last_ms < STARTS_DELAY_MS_MAX ? 2 * last_ms : STARTS_DELAY_MS_MAX);
        last_ms = delay_ms;
        now_ms += delay_ms + 10;
    }
    assert_int_equal(delay_ms, STARTS_DELAY_MS_MAX);
    /* and one that dies while it waits */
    assert_int_equal(starts_note(path, now_ms), STARTS_DELAY_MS_MAX);
}

static void one_that_lasts_begins_anew(void **state)
{
    uint64_t now_ms = 1000;

    (void)state;
    for (unsigned i = 0; i < STARTS_FREE + 2; i++)
        now_ms += starts_note(path, now_ms) + 10;
    now_ms += STARTS_QUICK_MS;
    assert_int_equal(starts_note(path, now_ms), 0);
    assert_int_equal(starts_note(path, now_ms + 10), 0);
}

static void a_stop_begins_anew(void **state)
{
    uint64_t now_ms = 1000;

    (void)state;
    for (unsigned i = 0; i < STARTS_FREE + 2; i++)
        now_ms += starts_note(path, now_ms) + 10;
    starts_forget(path);
    starts_forget(path);
    assert_int_equal(starts_note(path, now_ms), 0);
}

static void what_makes_no_sense_counts_nothing(void **state)
{
    static const char *const texts[] = {"", "x", "9", "9 99999999999999", "-"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *file = fopen(path, "w");

        fputs(texts[i], file);
        fclose(file);
        assert_int_equal(starts_note(path, 1000), 0);
    }
    assert_int_equal(starts_note("/nonexistent/file", 1000), 0);
}

static void a_symlink_is_not_followed(void **state)
{
    char target[80];

    (void)state;
    snprintf(target, sizeof target, "%s.target", path);
    assert_int_equal(symlink(target, path), 0);
    starts_note(path, 1000);
    assert_int_equal(access(target, F_OK), -1);
    assert_int_equal(unlink(path), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_ones_are_free),
        TEST(the_pause_doubles_to_a_maximum),
        TEST(one_that_lasts_begins_anew),
        TEST(a_stop_begins_anew),
        TEST(what_makes_no_sense_counts_nothing),
        TEST(a_symlink_is_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
