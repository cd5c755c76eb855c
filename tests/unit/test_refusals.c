/* shim/relay/refusals.c: what of repeated refusals is logged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "shim/log.h"
#include "shim/relay/refusals.h"

#define UNAVAILABLE 14
#define EXHAUSTED 8
#define FIRST 1000

/* Each key's container is another pod's. */
static struct refusals_name name_of(uint64_t key)
{
    static char pod[64];

    snprintf(pod, sizeof pod, "shop/cart-%d", (int)key);
    return (struct refusals_name){.pod = pod, .container = "main"};
}

struct fixture {
    struct refusals *refusals;
    int saved, log;
    off_t at;
    char text[4096];
};

static int set_up(void **state)
{
    char name[] = "/tmp/test-refusals-XXXXXX";
    struct fixture *f = calloc(1, sizeof *f);

    f->log = mkstemp(name);
    if (f->log < 0 || unlink(name) < 0)
        return -1;
    f->saved = dup(STDERR_FILENO);
    dup2(f->log, STDERR_FILENO);
    log_set_format(LOG_FORMAT_PLAIN);
    f->refusals = refusals_new();
    *state = f;
    return f->refusals ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    dup2(f->saved, STDERR_FILENO);
    close(f->saved);
    close(f->log);
    refusals_free(f->refusals);
    free(f);
    return 0;
}

/* One line, from its first "CreateContainer" on, has come since the last look; NULL: none. */
static void expect(struct fixture *f, const char *line)
{
    ssize_t n = pread(f->log, f->text, sizeof f->text - 1, f->at);
    char *begin;

    assert_true(n >= 0);
    f->at += n;
    f->text[n] = '\0';
    if (!line) {
        assert_string_equal(f->text, "");
        return;
    }
    begin = strstr(f->text, "CreateContainer");
    assert_non_null(begin);
    assert_ptr_equal(strchr(f->text, '\n'), f->text + n - 1);
    f->text[n - 1] = '\0';
    assert_string_equal(begin, line);
}

static void add(struct fixture *f, uint64_t key, uint64_t now_ms, const char *message)
{
    refusals_add(f->refusals, key, name_of(key), now_ms, UNAVAILABLE, message);
}

static void the_same_one_is_said_once(void **state)
{
    struct fixture *f = *state;

    add(f, 1, FIRST, "v.com/gpu: away for 12s, 4m48s left (2 devices)");
    expect(
        f,
        "CreateContainer refused (UNAVAILABLE): v.com/gpu: away for 12s, 4m48s left (2 devices)");
    add(f, 1, FIRST, "v.com/gpu: away for 1m3s, 1s left (33 devices)");
    add(f, 1, FIRST, "v.com/gpu: away for 4ms, 0.5s left (3 devices)");
    expect(f, NULL);
    add(f, 2, FIRST, "v.com/gpu: away for 12s, 4m48s left (2 devices)");
    expect(
        f,
        "CreateContainer refused (UNAVAILABLE): v.com/gpu: away for 12s, 4m48s left (2 devices)");
}

static void a_change_is_said_with_the_count_of_what_was(void **state)
{
    static const char *const devices[] = {"held: 0", "held: g0", "held: g1", "held: 0-1",
                                          "held: 0x"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        char line[128];

        add(f, 1, FIRST, devices[i]);
        snprintf(line, sizeof line, "CreateContainer refused (UNAVAILABLE): %s", devices[i]);
        expect(f, line);
    }
    refusals_add(f->refusals, 1, name_of(1), FIRST, EXHAUSTED, "held: 0x");
    expect(f, "CreateContainer refused (RESOURCE_EXHAUSTED): held: 0x");
    refusals_add(f->refusals, 1, name_of(1), FIRST, EXHAUSTED, "held: 0x");
    refusals_add(f->refusals, 1, name_of(1), FIRST, EXHAUSTED, "held: 0x");
    expect(f, NULL);
    add(f, 1, FIRST, "other");
    f->text[0] = '\0';
    assert_true(pread(f->log, f->text, sizeof f->text - 1, f->at) > 0);
    assert_non_null(strstr(f->text, "was refused 2 times more (RESOURCE_EXHAUSTED): held: 0x\n"));
    assert_non_null(strstr(f->text, "refused (UNAVAILABLE): other\n"));
}

static void each_line_says_whose_it_is(void **state)
{
    static const char who[] = " pod=\"shop/cart-1\" container=\"main\" ";
    struct fixture *f = *state;
    char *said;

    log_set_format(LOG_FORMAT_LOGFMT);
    add(f, 1, FIRST, "held: g0");
    add(f, 1, FIRST, "held: g0");
    add(f, 1, FIRST, "held: g1");
    refusals_end(f->refusals, 1, name_of(1));
    add(f, 1, FIRST, "held: g2");
    add(f, 1, FIRST, "held: g2");
    refusals_end(f->refusals, 1, name_of(1));
    assert_true(pread(f->log, f->text, sizeof f->text - 1, 0) > 0);
    said = f->text;
    for (int i = 0; i < 5; i++) {
        char *end = strchr(said, '\n');

        assert_non_null(end);
        *end = '\0';
        assert_non_null(strstr(said, who));
        assert_non_null(strstr(said, i == 4 ? " kind=\"refusals-over\" " : " kind=\"refused\" "));
        said = end + 1;
    }
    assert_string_equal(said, "");
}

static void one_that_goes_on_is_said_now_and_then(void **state)
{
    struct fixture *f = *state;

    add(f, 1, FIRST, "x");
    expect(f, "CreateContainer refused (UNAVAILABLE): x");
    add(f, 1, FIRST + REFUSALS_TELL_MS - 1, "x");
    expect(f, NULL);
    add(f, 1, FIRST + REFUSALS_TELL_MS, "x");
    expect(f, "CreateContainer refused (UNAVAILABLE, 3 times by now): x");
    add(f, 1, FIRST + 2 * REFUSALS_TELL_MS - 1, "x");
    expect(f, NULL);
}

static void the_end_tells_the_count(void **state)
{
    struct fixture *f = *state;

    refusals_end(f->refusals, 1, name_of(1));
    add(f, 1, FIRST, "x 1");
    expect(f, "CreateContainer refused (UNAVAILABLE): x 1");
    refusals_end(f->refusals, 1, name_of(1)); /* all was said */
    expect(f, NULL);
    add(f, 1, FIRST, "x 2");
    expect(f, "CreateContainer refused (UNAVAILABLE): x 2");
    add(f, 1, FIRST, "x 3");
    refusals_end(f->refusals, 1, name_of(1));
    expect(f, "CreateContainer goes on; it was refused 2 times (UNAVAILABLE), the last time: x 3");
    refusals_end(f->refusals, 1, name_of(1));
    expect(f, NULL);
}

static void it_remembers_so_many(void **state)
{
    struct fixture *f = *state;

    add(f, 1, FIRST, "first");
    add(f, 1, FIRST, "first");
    add(f, 2, FIRST, "second");
    add(f, 1, FIRST, "first"); /* the second is the oldest now */
    for (uint64_t key = 3; key < 2 + REFUSALS_MAX; key++)
        add(f, key, FIRST, "more");
    f->at = lseek(f->log, 0, SEEK_END);
    add(f, 1, FIRST, "first");
    expect(f, NULL);
    add(f, 2, FIRST, "second"); /* takes the place of 3, of which all was said */
    expect(f, "CreateContainer refused (UNAVAILABLE): second");
}

static void containers_have_keys(void **state)
{
    (void)state;
    assert_true(refusals_key("a", "b") == refusals_key("a", "b"));
    assert_true(refusals_key("a", "bc") != refusals_key("ab", "c"));
}

static void without_memory_each_is_said(void **state)
{
    struct fixture *f = *state;
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        alloc_fail_at(n);
        alloc_fail_enable(true);
        add(f, n, FIRST, "x");
        alloc_fail_enable(false);
        failed = alloc_failed();
        expect(f, "CreateContainer refused (UNAVAILABLE): x");
    }
    alloc_fail_at(0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_same_one_is_said_once),
        TEST(a_change_is_said_with_the_count_of_what_was),
        TEST(one_that_goes_on_is_said_now_and_then),
        TEST(each_line_says_whose_it_is),
        TEST(the_end_tells_the_count),
        TEST(it_remembers_so_many),
        TEST(containers_have_keys),
        TEST(without_memory_each_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
