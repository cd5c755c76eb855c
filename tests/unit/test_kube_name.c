/* The forms of names that Kubernetes has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cri-proto/kube_name.h"

/* As many letters, for as long as no other call is made. */
static char *letters(size_t n)
{
    static char text[KUBE_QUALIFIED_BYTES_MAX + 8];

    assert_true(n < sizeof text);
    memset(text, 'a', n);
    text[n] = '\0';
    return text;
}

/* Lists end with NULL. */
static void assert_all(bool (*rule)(const char *), const char *const *good, const char *const *bad)
{
    for (; *good; good++) {
        if (!rule(*good))
            fail_msg("\"%s\" is one", *good);
    }
    for (; *bad; bad++) {
        if (rule(*bad))
            fail_msg("\"%s\" is none", *bad);
    }
}

static void a_label_of_dns(void **state)
{
    static const char *const good[] = {"a", "0", "a-b", "kube-system", "a--b", NULL};
    static const char *const bad[] = {"", "-", "-a", "a-", "A", "a.b", "a_b", "\xc3\xa4", NULL};

    (void)state;
    assert_all(kube_name_is_dns_label, good, bad);
    assert_true(kube_name_is_dns_label(letters(63)));
    assert_false(kube_name_is_dns_label(letters(64)));
}

static bool is_subdomain(const char *text)
{
    return kube_name_is_dns_subdomain(text, strlen(text));
}

static void a_subdomain_is_words_with_dots_between(void **state)
{
    static const char *const good[] = {"a", "gpu.example.com", "a-b.c", "1.2", NULL};
    static const char *const bad[] = {"",     ".",    ".a",   "a.",  "a..b", "a-.b",
                                      "a.-b", "-a.b", "a.b-", "A.b", "a/b",  NULL};

    (void)state;
    assert_all(is_subdomain, good, bad);
    assert_true(is_subdomain(letters(253))); /* a word alone has no limit of its own */
    assert_false(is_subdomain(letters(254)));
    assert_true(kube_name_is_dns_subdomain("a.b/c", 3));
    assert_false(kube_name_is_dns_subdomain("a.b/c", 2));
}

static void a_driver_is_a_short_subdomain(void **state)
{
    static const char *const good[] = {"gpu.example.com", "gpu", NULL};
    static const char *const bad[] = {"", "vendor.com/gpu", "GPU", "a..b", NULL};

    (void)state;
    assert_all(kube_name_is_driver, good, bad);
    assert_true(kube_name_is_driver(letters(63)));
    assert_false(kube_name_is_driver(letters(64)));
}

static void a_qualified_name(void **state)
{
    static const char *const good[] = {"a", "A", "example.com/broken", "x-y.io/A_b.c-1", "0", NULL};
    static const char *const bad[] = {"",         "-a",    "a-",      "a b",  "/a",   "a/",
                                      "A/b",      "a/b/c", "a..b/c",  ".a/b", "a./b", "a:b",
                                      "\xc3\xa4", "a=b",   "-a.io/b", NULL};
    char *longest;

    (void)state;
    assert_all(kube_name_is_qualified, good, bad);
    longest = letters(KUBE_QUALIFIED_BYTES_MAX + 1);
    longest[253] = '/';
    assert_false(kube_name_is_qualified(longest)); /* 64 behind the slash */
    longest[KUBE_QUALIFIED_BYTES_MAX] = '\0';
    assert_true(kube_name_is_qualified(longest));
}

static void a_labels_value_may_be_empty(void **state)
{
    static const char *const good[] = {"", "a_b", "A.b-c", "1", NULL};
    static const char *const bad[] = {"a b", "_", "a_", ".a", "a/b", NULL};

    (void)state;
    assert_all(kube_name_is_label_value, good, bad);
    assert_true(kube_name_is_label_value(letters(63)));
    assert_false(kube_name_is_label_value(letters(64)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_label_of_dns),
        cmocka_unit_test(a_subdomain_is_words_with_dots_between),
        cmocka_unit_test(a_driver_is_a_short_subdomain),
        cmocka_unit_test(a_qualified_name),
        cmocka_unit_test(a_labels_value_may_be_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
