/* shim/metrics/exposition.c: the text that a scrape gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "shim/metrics/exposition.h"

static void assert_text(struct exposition *e, const char *text)
{
    assert_int_equal(e->len, strlen(text));
    assert_memory_equal(e->text, text, e->len);
    free(e->text);
}

static void values_and_labels(void **state)
{
    struct exposition e = {0};

    (void)state;
    exposition_family(&e, "a_total", COUNTER, "What it is.");
    exposition_sample(&e, 0, NULL);
    exposition_sample(&e, 123456789012345.0, "x", "y", NULL);
    exposition_sample(&e, 0.25, "x", "q\"b\\n\nl", "z", "", NULL);
    assert_text(&e, "# HELP cri_device_shim_a_total What it is.\n"
                    "# TYPE cri_device_shim_a_total counter\n"
                    "cri_device_shim_a_total 0\n"
                    "cri_device_shim_a_total{x=\"y\"} 123456789012345\n"
                    "cri_device_shim_a_total{x=\"q\\\"b\\\\n?l\",z=\"\"} 0.250000\n");
}

/* Each bucket has what is at its bound and below. */
static void histograms_add_up(void **state)
{
    static const uint64_t times_us[] = {0, 500, 501, 300000000, 300000001};
    struct histogram h = {0};
    struct exposition e = {0};
    char *text;

    (void)state;
    for (size_t i = 0; i < sizeof times_us / sizeof *times_us; i++)
        histogram_add(&h, times_us[i]);
    exposition_family(&e, "b_seconds", HISTOGRAM, "What it is.");
    exposition_histogram(&e, &h, "m", "n", NULL);
    text = strndup(e.text, e.len);
    assert_non_null(strstr(text, "b_seconds_bucket{m=\"n\",le=\"0.0005\"} 2\n"));
    assert_non_null(strstr(text, "b_seconds_bucket{m=\"n\",le=\"0.001\"} 3\n"));
    assert_non_null(strstr(text, "b_seconds_bucket{m=\"n\",le=\"60\"} 3\n"));
    assert_non_null(strstr(text, "b_seconds_bucket{m=\"n\",le=\"300\"} 4\n"));
    assert_non_null(strstr(text, "b_seconds_bucket{m=\"n\",le=\"+Inf\"} 5\n"));
    assert_non_null(strstr(text, "b_seconds_sum{m=\"n\"} 600.001002\n"));
    assert_non_null(strstr(text, "b_seconds_count{m=\"n\"} 5\n"));
    free(text);
    free(e.text);
}

/* Whatever there is: whole lines, and no more of them than a scrape may take. */
static void it_has_a_bound(void **state)
{
    struct exposition e = {0};
    char value[400];

    (void)state;
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    exposition_family(&e, "c", GAUGE, "What it is.");
    for (int i = 0; i < 1000; i++)
        exposition_sample(&e, i, "x", value, NULL);
    assert_in_range(e.len, METRICS_BYTES_MAX - 1000, METRICS_BYTES_MAX);
    assert_int_equal(e.text[e.len - 1], '\n');
    free(e.text);
}

static void without_memory_lines_are_missing(void **state)
{
    struct exposition e = {0};

    (void)state;
    alloc_fail_at(1);
    alloc_fail_enable(true);
    exposition_family(&e, "d", GAUGE, "What it is.");
    alloc_fail_enable(false);
    assert_true(alloc_failed());
    assert_int_equal(e.len, 0);
    assert_null(e.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_labels),
        cmocka_unit_test(histograms_add_up),
        cmocka_unit_test(it_has_a_bound),
        cmocka_unit_test(without_memory_lines_are_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
