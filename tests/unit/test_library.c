/* Libraries that are loaded when they are needed, and what that leaves behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/library.h"

/* What the kernel maps at once, around the page that is wanted (fault_around_bytes), is less. */
#define AROUND (128 * 1024)

/* Of this program's file: pages that are never written to, and some that are. */
static const char CONSTANT[2 * AROUND] = {[AROUND] = 'c'};
static char written[] = {'w'};
static const char *const RELOCATED[] = {"a", "b"};

struct functions {
    double (*cosine)(double);
    double (*sine)(double);
};

static void one_that_is_there_is_loaded(void **state)
{
    static const struct library_function FUNCTIONS[] = {{"cos", offsetof(struct functions, cosine)},
                                                        {"sin", offsetof(struct functions, sine)}};
    struct functions functions;

    (void)state;
    assert_null(library_load("libm.so.6", FUNCTIONS, 2, &functions));
    assert_true(functions.cosine(0) > 0.99 && functions.sine(0) < 0.01);
}

static void one_that_is_not_is_said(void **state)
{
    static const struct library_function FUNCTIONS[] = {{"cos", 0}};
    void *function;
    const char *why = library_load("libnone.so.1", FUNCTIONS, 1, &function);

    (void)state;
    assert_non_null(why);
    assert_non_null(strstr(why, "libnone.so.1: cannot open shared object file"));
}

static void one_that_lacks_a_function_is_another(void **state)
{
    static const struct library_function FUNCTIONS[] = {
        {"cos", offsetof(struct functions, cosine)},
        {"no_such_function", offsetof(struct functions, sine)}};
    struct functions functions;

    (void)state;
    assert_string_equal(library_load("libm.so.6", FUNCTIONS, 2, &functions), "it is another one");
}

/* proc_pid_pagemap(5): bit 63. */
static bool is_mapped(const void *at)
{
    const uintptr_t page = (uintptr_t)at / (uintptr_t)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/pagemap", "rbe");
    uint64_t entry;

    assert_non_null(file);
    assert_int_equal(fseek(file, (long)(page * sizeof entry), SEEK_SET), 0);
    assert_int_equal(fread(&entry, sizeof entry, 1, file), 1);
    fclose(file);
    return entry >> 63;
}

static void what_nobody_writes_to_is_let_go_of(void **state)
{
    const volatile char *constant = &CONSTANT[AROUND];

    (void)state;
    written[0] = 'x';
    assert_int_equal(*constant, 'c');
    assert_true(is_mapped(&CONSTANT[AROUND]));
    library_let_go();
    assert_false(is_mapped(&CONSTANT[AROUND]));
    assert_int_equal(*constant, 'c');
    assert_int_equal(written[0], 'x');
    assert_string_equal(RELOCATED[1], "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_there_is_loaded),
        cmocka_unit_test(one_that_is_not_is_said),
        cmocka_unit_test(one_that_lacks_a_function_is_another),
        cmocka_unit_test(what_nobody_writes_to_is_let_go_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
