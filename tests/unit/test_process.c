/* shim/process.c: on processes of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/process.h"
#include "tests/unit/named_process.h"

static bool is(pid_t pid, const char *name)
{
    char *names[] = {(char *)"other", (char *)name};

    return process_is_one_of(pid, names, 2);
}

static void a_process_is_known_by_its_name(void **state)
{
    pid_t pid = named_process("kubelet");

    (void)state;
    assert_true(is(pid, "kubelet"));
    assert_false(is(pid, "kube"));
    assert_false(is(pid, "kubelets"));
    assert_false(is(pid, ""));
    assert_false(process_is_one_of(pid, NULL, 0));
    named_process_kill(pid);
    assert_false(is(pid, "kubelet"));
}

static void a_long_name_is_known_by_what_the_kernel_keeps(void **state)
{
    pid_t pid = named_process("a-kubelet-with-a-long-name");

    (void)state;
    assert_true(is(pid, "a-kubelet-with-a-long-name"));
    assert_true(is(pid, "a-kubelet-with-"));
    assert_false(is(pid, "a-kubelet-with"));
    named_process_kill(pid);
}

static void a_name_is_made_fit_for_a_line(void **state)
{
    static const char *const NAMES[][2] = {{"k3s-server", "k3s-server"},
                                           {"a-kubelet-with-a-long-name", "a-kubelet-with-"},
                                           {"two\nlines\n", "two?lines?"},
                                           {"\x1b[31m\xff", "?[31m?"},
                                           {"", ""}};
    char name[PROCESS_NAME_BYTES_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        pid_t pid = named_process(NAMES[i][0]);

        process_name(pid, name);
        assert_string_equal(name, NAMES[i][1]);
        assert_true(is(pid, NAMES[i][0]));
        named_process_kill(pid);
    }
    process_name(0, name);
    assert_string_equal(name, "?");
}

static void nobody_has_no_name(void **state)
{
    uint64_t started = 42;

    (void)state;
    assert_false(is(0, "kubelet"));
    assert_false(is(-1, "kubelet"));
    assert_int_equal(process_started(0, &started), -1);
    assert_int_equal(process_started(-1, &started), -1);
    assert_int_equal(started, 42);
}

/* Whatever the name looks like. */
static void the_start_is_when_it_was_made(void **state)
{
    static const char *const NAMES[] = {"kubelet", "x) R 1 2 3", "a b c d", ")", "(((", ""};
    long tick = sysconf(_SC_CLK_TCK);

    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        struct timespec before, after;
        uint64_t started = 0, again = 0;
        pid_t pid;

        clock_gettime(CLOCK_BOOTTIME, &before);
        pid = named_process(NAMES[i]);
        clock_gettime(CLOCK_BOOTTIME, &after);
        assert_int_equal(process_started(pid, &started), 0);
        assert_in_range(started, (uint64_t)(before.tv_sec * tick),
                        (uint64_t)((after.tv_sec + 1) * tick));
        assert_int_equal(process_started(pid, &again), 0);
        assert_int_equal(started, again);
        named_process_kill(pid);
        assert_int_equal(process_started(pid, &started), -1);
    }
}

/* The next descriptor is one too many. Returns the limit before. */
static struct rlimit no_descriptors(void)
{
    struct rlimit before, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)dup(STDERR_FILENO); /* the lowest that is free */
    assert_int_equal(close((int)none.rlim_cur), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    return before;
}

/* Who has waited for a descriptor may have got the last. */
static void it_is_known_without_a_descriptor_left(void **state)
{
    pid_t pid = named_process("kubelet");
    struct rlimit before;
    uint64_t started;

    (void)state;
    process_keep_spare();
    before = no_descriptors();
    for (int i = 0; i < 2; i++) {
        assert_true(is(pid, "kubelet"));
        assert_int_equal(process_started(pid, &started), 0);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    named_process_kill(pid);
}

static void a_spare_that_was_lost_is_had_again(void **state)
{
    pid_t pid = named_process("kubelet");
    struct rlimit before, none;

    (void)state;
    process_keep_spare();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0; /* as if another thread took what was let go of */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_false(is(pid, "kubelet"));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(is(pid, "kubelet"));
    before = no_descriptors();
    assert_true(is(pid, "kubelet"));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    named_process_kill(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_known_by_its_name),
        cmocka_unit_test(a_long_name_is_known_by_what_the_kernel_keeps),
        cmocka_unit_test(a_name_is_made_fit_for_a_line),
        cmocka_unit_test(nobody_has_no_name),
        cmocka_unit_test(the_start_is_when_it_was_made),
        cmocka_unit_test(it_is_known_without_a_descriptor_left),
        cmocka_unit_test(a_spare_that_was_lost_is_had_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
