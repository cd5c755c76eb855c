/* shim/dra/services.c: which of a driver's services is called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/dra/services.h"

#define CHOOSE(...)                                                                                \
    choose((const char *const[]){__VA_ARGS__},                                                     \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static char words[SERVICES_WORDS_BYTES_MAX];

/* -1: none. */
static int choose(const char *const *services, size_t len)
{
    enum driver_service out;

    words[0] = '\0';
    return services_choose(services, len, &out, words) ? (int)out : -1;
}

static void the_first_that_is_known_in_the_drivers_order(void **state)
{
    (void)state;
    assert_int_equal(CHOOSE("v1.DRAPlugin", "v1beta1.DRAPlugin"), DRIVER_V1);
    assert_int_equal(CHOOSE("v1beta1.DRAPlugin", "v1.DRAPlugin"), DRIVER_V1BETA1);
    assert_int_equal(CHOOSE("v2.DRAPlugin", "v1beta1.DRAPlugin"), DRIVER_V1BETA1);
    assert_int_equal(CHOOSE("v1alpha1.DRAResourceHealth", "v1.DRAPlugin"), DRIVER_V1);
    assert_int_equal(CHOOSE("v1alpha3.NodeService"), DRIVER_ALPHA);
}

static void a_list_that_names_no_service_is_of_the_alphas_time(void **state)
{
    (void)state;
    assert_int_equal(CHOOSE("1.0.0"), DRIVER_ALPHA);
    assert_int_equal(CHOOSE("v1.0.0", "1.1"), DRIVER_ALPHA);
    assert_int_equal(CHOOSE(""), DRIVER_ALPHA);
    assert_int_equal(CHOOSE("1.0.0", "v1.DRAPlugin"), DRIVER_V1);
}

static void none_in_the_kubelets_words(void **state)
{
    char long_name[2000];

    (void)state;
    assert_int_equal(choose(NULL, 0), -1);
    assert_string_equal(words, "empty list of supported gRPC services (aka supported versions)");
    assert_int_equal(CHOOSE("v2.DRAPlugin", "v1alpha1.DRAResourceHealth"), -1);
    assert_string_equal(words, "none of services supported by the plugin ([\"v2.DRAPlugin\" "
                               "\"v1alpha1.DRAResourceHealth\"]) are supported by the kubelet "
                               "([\"v1.DRAPlugin\" \"v1beta1.DRAPlugin\"])");
    assert_int_equal(CHOOSE("v2.D\xff\n"), -1);
    assert_non_null(strstr(words, "[\"v2.D\?\?\"]"));
    memset(long_name, 'X', sizeof long_name - 1);
    memcpy(long_name, "v1.", 3);
    long_name[sizeof long_name - 1] = '\0';
    assert_int_equal(CHOOSE("v2.A", long_name), -1);
    assert_non_null(strstr(words, "plugin ([\"v2.A\"]) are"));
}

static void health_is_what_is_announced(void **state)
{
    static const char *const services[] = {"v1.DRAPlugin", "v1alpha1.DRAResourceHealth"};

    (void)state;
    assert_true(services_have_health(services, 2));
    assert_false(services_have_health(services, 1));
    assert_false(services_have_health(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_is_known_in_the_drivers_order),
        cmocka_unit_test(a_list_that_names_no_service_is_of_the_alphas_time),
        cmocka_unit_test(none_in_the_kubelets_words),
        cmocka_unit_test(health_is_what_is_announced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
