/* shim/bridge/own_settings.c: the daemon has read the file later, earlier, or is another
 * release. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "shim/bridge/own_settings.h"
#include "shim/log.h"

static char dir[] = "/dir", other[] = "/other";
static struct settings own;
static Bridge__V1__Settings daemons;

static int set_up(void **state)
{
    (void)state;
    own = (struct settings){.read_ms = 1000};
    own.config.log_level = LOG_LEVEL_INFO;
    own.config.log_format = CONFIG_LOG_PLAIN;
    own.config.bridge =
        (struct config_bridge){.kubelet_plugin_dir = dir, .preferred_timeout_ms = 500};
    bridge__v1__settings__init(&daemons);
    daemons.read_ms = 1001;
    daemons.log_level = LOG_LEVEL_INFO;
    daemons.log_format = BRIDGE__V1__LOG_FORMAT__PLAIN;
    daemons.kubelet_plugin_dir = dir;
    daemons.preferred_timeout_ms = 500;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    log_set_level(LOG_LEVEL_INFO);
    log_set_format(LOG_FORMAT_AUTO);
    return 0;
}

static void degrade(void)
{
    snprintf(own.degraded, sizeof own.degraded, "the file is wrong");
}

/* By an operator, whichever file was read last; one that this release does not know is none. */
static void a_level_that_was_set_counts_until_it_is_not(void **state)
{
    (void)state;
    daemons.read_ms = own.read_ms;
    daemons.log_level_set = LOG_LEVEL_ERROR;
    assert_false(own_settings_take(&own, &daemons));
    assert_int_equal(own.level_set, LOG_LEVEL_ERROR);
    daemons.log_level_set = 5;
    assert_false(own_settings_take(&own, &daemons));
    assert_int_equal(own.level_set, LOG_LEVEL_ERROR);
    daemons.log_level_set = 0;
    assert_false(own_settings_take(&own, &daemons));
    assert_int_equal(own.level_set, 0);
}

static void those_read_later_are_taken(void **state)
{
    (void)state;
    daemons.log_level = LOG_LEVEL_ERROR;
    daemons.log_format = BRIDGE__V1__LOG_FORMAT__JSON;
    daemons.preferred_timeout_ms = 700;
    assert_true(own_settings_take(&own, &daemons));
    assert_int_equal(own.config.log_level, LOG_LEVEL_ERROR);
    assert_int_equal(own.config.log_format, CONFIG_LOG_JSON);
    assert_int_equal(own.config.bridge.preferred_timeout_ms, 700);
    assert_int_equal(own.read_ms, 1001);
    daemons.log_level = LOG_LEVEL_INFO; /* of the same time */
    assert_false(own_settings_take(&own, &daemons));
    assert_int_equal(own.config.log_level, LOG_LEVEL_ERROR);
}

/* Of a daemon that was started with a wrong file: it has none to tell of, but what was set
 * counts. */
static void of_a_daemon_without_a_file_the_level_that_was_set_counts(void **state)
{
    (void)state;
    bridge__v1__settings__init(&daemons);
    daemons.log_level_set = LOG_LEVEL_ERROR;
    assert_false(own_settings_take(&own, &daemons));
    assert_int_equal(own.level_set, LOG_LEVEL_ERROR);
    assert_int_equal(own.config.bridge.preferred_timeout_ms, 500);
    assert_int_equal(own.read_ms, 1000);
}

static void those_read_earlier_are_not(void **state)
{
    (void)state;
    degrade();
    daemons.read_ms = 1000;
    daemons.log_level = LOG_LEVEL_DEBUG;
    assert_false(own_settings_take(&own, &daemons));
    assert_int_equal(own.config.log_level, LOG_LEVEL_INFO);
    assert_string_equal(own.degraded, "the file is wrong");
}

static void the_same_ones_are_no_news(void **state)
{
    (void)state;
    assert_false(own_settings_take(&own, &daemons));
    assert_int_equal(own.read_ms, 1001);
}

static void one_that_was_degraded_is_so_no_more(void **state)
{
    (void)state;
    degrade();
    assert_true(own_settings_take(&own, &daemons));
    assert_string_equal(own.degraded, "");
}

static void unless_something_else_differs(void **state)
{
    (void)state;
    degrade();
    daemons.kubelet_plugin_dir = other;
    assert_false(own_settings_take(&own, &daemons));
    assert_string_equal(own.degraded, "the file is wrong");
    daemons.preferred_timeout_ms = 700;
    daemons.read_ms++;
    assert_true(own_settings_take(&own, &daemons)); /* that much counts */
    assert_string_equal(own.degraded, "the file is wrong");
}

static void what_this_release_does_not_know_leaves_what_was(void **state)
{
    static const int levels[] = {0, 2, 5, 8, -1, 1 << 30};

    (void)state;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        daemons.read_ms++;
        daemons.log_level = levels[i];
        daemons.log_format = (Bridge__V1__LogFormat)(i % 2 ? -1 : 5);
        daemons.preferred_timeout_ms = i % 2 ? 0 : 10001;
        assert_false(own_settings_take(&own, &daemons));
        assert_int_equal(own.config.log_level, LOG_LEVEL_INFO);
        assert_int_equal(own.config.log_format, CONFIG_LOG_PLAIN);
        assert_int_equal(own.config.bridge.preferred_timeout_ms, 500);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(those_read_later_are_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_a_daemon_without_a_file_the_level_that_was_set_counts,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(those_read_earlier_are_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_level_that_was_set_counts_until_it_is_not, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_same_ones_are_no_news, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_was_degraded_is_so_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unless_something_else_differs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_this_release_does_not_know_leaves_what_was, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
