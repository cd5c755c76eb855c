/* The rule for extended-resource names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cri-proto/resource_name.h"

#define A63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void names_that_are_valid(void **state)
{
    static const char *const GOOD[] = {"vendor.com/gpu",    "a/b",
                                       "a/B_c.d-e",         "1/1",
                                       "a-b.c-d/x",         ("vendor.com/" A63),
                                       "kubernetes.io.x/y", "xrequests.com/a"};

    (void)state;
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        if (!resource_name_valid(GOOD[i]))
            fail_msg("%s", GOOD[i]);
    }
}

static void names_that_are_not(void **state)
{
    static const char *const BAD[] = {"",
                                      "gpu",
                                      "/",
                                      "/gpu",
                                      "vendor.com/",
                                      "vendor.com/a/b",
                                      "Vendor.com/gpu",
                                      "vendor..com/gpu",
                                      ".vendor/gpu",
                                      "vendor./gpu",
                                      "-a/b",
                                      "a-/b",
                                      "a.-b/c",
                                      "a-.b/c",
                                      "a_b/c",
                                      "a/-b",
                                      "a/b-",
                                      "a/.b",
                                      "a/b c",
                                      "../a",
                                      "./a",
                                      "/b",
                                      "a/b ",
                                      "a/*",
                                      "a/b\n",
                                      "a/\xc3\xa9",
                                      "vendor.com/" A63 "a",
                                      "kubernetes.io/gpu",
                                      "x.kubernetes.io/gpu",
                                      "requests.vendor.com/gpu"};

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        if (resource_name_valid(BAD[i]))
            fail_msg("%s", BAD[i]);
    }
}

static void the_prefix_counts_with_the_quota_prefix(void **state)
{
    char name[260];

    (void)state;
    memset(name, 'a', sizeof name);
    strcpy(name + 244, "/b");
    assert_true(resource_name_valid(name)); /* 9 + 244 = 253 */
    memset(name, 'a', sizeof name);
    strcpy(name + 245, "/b");
    assert_false(resource_name_valid(name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_are_valid),
        cmocka_unit_test(names_that_are_not),
        cmocka_unit_test(the_prefix_counts_with_the_quota_prefix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
