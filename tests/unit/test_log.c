/* shim/log.c: what reaches stderr, which a pipe takes the place of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "shim/log.h"

struct fixture {
    int saved;
    int read_end;
    char text[8192];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    int ends[2];

    if (pipe(ends) < 0)
        return -1;
    f->saved = dup(STDERR_FILENO);
    f->read_end = ends[0];
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    log_set_level(LOG_LEVEL_INFO);
    dup2(f->saved, STDERR_FILENO);
    close(f->saved);
    close(f->read_end);
    free(f);
    return 0;
}

/* What was written so far; the pipe is closed for writing by it. */
static const char *written(struct fixture *f)
{
    ssize_t n;
    size_t len = 0;

    dup2(f->saved, STDERR_FILENO);
    while ((n = read(f->read_end, f->text + len, sizeof f->text - 1 - len)) > 0)
        len += (size_t)n;
    f->text[len] = '\0';
    return f->text;
}

static void lines_carry_their_priority(void **state)
{
    log_error("one %d", 1);
    log_warning("two");
    log_info("three");
    log_debug("not shown");
    log_set_level(LOG_LEVEL_ERROR);
    log_warning("nor this");
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("four");
    assert_string_equal(written(*state), "<3>one 1\n<4>two\n<6>three\n<7>four\n");
}

static void a_peer_cannot_forge_a_line(void **state)
{
    log_info("%s", "a\n<3>b\r\t\x1b[31m\x7f \xc3\xbc");
    assert_string_equal(written(*state), "<6>a?<3>b???[31m? \xc3\xbc\n");
}

static void a_long_line_is_cut(void **state)
{
    char text[5000];
    const char *line;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    log_info("%s", text);
    log_info("next");
    line = strchr(written(*state), '\n');
    assert_non_null(line);
    assert_in_range(line - ((struct fixture *)*state)->text, 2000, 2048);
    assert_string_equal(line, "\n<6>next\n");
}

static void it_never_allocates(void **state)
{
    alloc_fail_at(1);
    alloc_fail_enable(true);
    log_info("%s %d", "text", 5);
    alloc_fail_enable(false);
    assert_false(alloc_failed());
    assert_string_equal(written(*state), "<6>text 5\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_carry_their_priority),
        TEST(a_peer_cannot_forge_a_line),
        TEST(a_long_line_is_cut),
        TEST(it_never_allocates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
