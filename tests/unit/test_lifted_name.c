/* cri-proto/lifted_name.c: names that Kubernetes takes, of ids and resources that it would not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cri-proto/kube_name.h"
#include "cri-proto/lifted_name.h"
#include "devicemgr/things/ids.h"

static const char *device(const char *id)
{
    static char out[LIFTED_NAME_BYTES];

    lifted_name_device(id, out);
    assert_true(kube_name_is_dns_label(out));
    return out;
}

static const char *pool(const char *resource)
{
    static char out[LIFTED_POOL_BYTES];

    lifted_name_pool(resource, out);
    assert_true(kube_name_is_dns_subdomain(strchr(out, '/') + 1, strlen(strchr(out, '/') + 1)));
    return out;
}

static void what_is_a_name_keeps_it(void **state)
{
    char longest[64];

    (void)state;
    memset(longest, 'x', 63);
    longest[63] = '\0';
    assert_string_equal(device("gpu0"), "gpu0");
    assert_string_equal(device("0000-3b-00"), "0000-3b-00");
    assert_string_equal(device(longest), longest);
    assert_string_equal(pool("vendor.com/gpu"), "vendor.com/gpu");
    assert_string_equal(pool("vendor.com/mig-1g.5gb"), "vendor.com/mig-1g.5gb");
}

/* For good: a device that gets another name is another device to whoever has it. */
static void what_is_none_gets_one_for_good(void **state)
{
    (void)state;
    assert_string_equal(device("GPU-8f3a::0"), "gpu-8f3a-0--gey655qiv4dbmubf3am7pfbfgf");
    assert_string_equal(device(""), "device--nmrljrvobbofgbfa35b4stimmd");
    assert_string_equal(device("::"), "device--ncnnwkbgtdivvupdlnffmkcqia");
    assert_string_equal(pool("vendor.com/GPU_a"), "vendor.com/gpu-a--fvb7jq7fghabxhf3du5mizp2rf");
}

/* Of what stays as it is none has what all others have. */
static void none_is_called_as_another(void **state)
{
    static const char *const ALIKE[] = {"gpu-0", "gpu_0", "GPU-0",  "gpu 0", "gpu-0-", "-gpu-0",
                                        "gpu.0", "gpu:0", "gpu--0", "gpu/0", "",       "device"};
    struct ids names = {0};
    char id[64];

    (void)state;
    for (size_t i = 0; i < sizeof ALIKE / sizeof *ALIKE; i++) {
        assert_true(ids_add_new(&names, device(ALIKE[i])));
        strcpy(id, device(ALIKE[i]));
        if (strcmp(id, ALIKE[i]) != 0) /* the name of one is no other's id that stays */
            assert_string_not_equal(device(id), id);
    }
    for (int i = 0; i < 2000; i++) {
        snprintf(id, sizeof id, "GPU-00000000-0000-0000-0000-%012d", i);
        ids_add(&names, device(id));
    }
    ids_sort(&names);
    assert_false(ids_repeat(&names));
    ids_fini(&names);
}

static void a_long_one_has_room(void **state)
{
    char id[4096], resource[253 + 1 + 63 + 1];

    (void)state;
    memset(id, 'A', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    assert_int_equal(strlen(device(id)), 63 - 1); /* a letter might follow a '-' */
    memset(resource, 'a', sizeof resource - 1);
    resource[253] = '/';
    memset(resource + 254, 'A', 63);
    resource[sizeof resource - 1] = '\0';
    assert_int_equal(strlen(pool(resource)), 254 + 63 - 1);
}

static void its_attribute_is_no_longer_than_a_text(void **state)
{
    char out[LIFTED_POOL_BYTES], longer[253 + 1 + 63 + 1];

    (void)state;
    assert_true(lifted_name_attribute("vendor.com/GPU_a", out));
    assert_string_equal(out, "vendor.com/GPU_a");
    memset(longer, 'A', sizeof longer);
    memcpy(longer, "v/", 2);
    longer[2 + 63] = '\0';
    assert_true(lifted_name_attribute(longer, out));
    assert_string_equal(out, pool(longer));
    memcpy(longer, "vv/", 3);
    longer[3 + 63] = '\0';
    assert_false(lifted_name_attribute(longer, out));
}

/* No two are alike. */
static void its_class_is_called_by_both_parts(void **state)
{
    char out[LIFTED_CLASS_BYTES], longest[253 + 1 + 63 + 1];

    (void)state;
    lifted_name_class("vendor.com/gpu", out);
    assert_string_equal(out, "gpu.vendor.com");
    lifted_name_class("vendor.com/GPU_a", out);
    assert_string_equal(out, "gpu-a--fvb7jq7fghabxhf3du5mizp2rf.vendor.com");
    lifted_name_class("vendor.com/mig-1g.5gb", out);
    assert_true(kube_name_is_dns_label(out) && strstr(out, "vendor-com-mig-1g-5gb--"));
    memset(longest, 'a', sizeof longest - 1);
    longest[253] = '/';
    longest[sizeof longest - 1] = '\0';
    lifted_name_class(longest, out);
    assert_true(kube_name_is_dns_label(out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_a_name_keeps_it),
        cmocka_unit_test(what_is_none_gets_one_for_good),
        cmocka_unit_test(none_is_called_as_another),
        cmocka_unit_test(a_long_one_has_room),
        cmocka_unit_test(its_attribute_is_no_longer_than_a_text),
        cmocka_unit_test(its_class_is_called_by_both_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
