/* shim/kubelet/displaced.c: when to register anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/kubelet/displaced.h"

#define BEGIN_MS 5000

static void one_look_is_not_enough(void **state)
{
    struct displaced displaced = {0};

    (void)state;
    assert_int_equal(displaced_next_ms(&displaced), UINT64_MAX);
    assert_false(displaced_step(&displaced, DISPLACED_NO, BEGIN_MS - 1));
    assert_false(displaced_step(&displaced, DISPLACED_YES, BEGIN_MS));
    assert_int_equal(displaced_next_ms(&displaced), BEGIN_MS + DISPLACED_PAUSE_MS_MIN);
    assert_false(displaced_step(&displaced, DISPLACED_YES, BEGIN_MS + DISPLACED_PAUSE_MS_MIN - 1));
    assert_true(displaced_step(&displaced, DISPLACED_YES, BEGIN_MS + DISPLACED_PAUSE_MS_MIN));
}

static void what_passes_by_itself_is_let_alone(void **state)
{
    struct displaced displaced = {0};

    (void)state;
    assert_false(displaced_step(&displaced, DISPLACED_YES, BEGIN_MS));
    assert_false(displaced_step(&displaced, DISPLACED_NO, BEGIN_MS + 1));
    assert_int_equal(displaced_next_ms(&displaced), UINT64_MAX);
    assert_false(displaced_step(&displaced, DISPLACED_YES, BEGIN_MS + DISPLACED_PAUSE_MS_MIN));
    assert_false(displaced_step(&displaced, DISPLACED_YES, BEGIN_MS + DISPLACED_PAUSE_MS_MIN + 1));
}

static void what_does_not_help_is_done_ever_more_seldom(void **state)
{
    struct displaced displaced = {0};
    uint64_t now_ms = BEGIN_MS, pause_ms = DISPLACED_PAUSE_MS_MIN;

    (void)state;
    displaced_step(&displaced, DISPLACED_YES, now_ms);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(displaced_next_ms(&displaced), now_ms + pause_ms);
        now_ms += pause_ms;
        assert_true(displaced_step(&displaced, DISPLACED_YES, now_ms));
        /* Until the bridge has registered, and the kubelet stored it. */
        assert_false(displaced_step(&displaced, DISPLACED_UNKNOWN, now_ms + pause_ms));
        assert_false(displaced_step(&displaced, DISPLACED_YES, now_ms));
        pause_ms = pause_ms * 2 > DISPLACED_PAUSE_MS_MAX ? DISPLACED_PAUSE_MS_MAX : pause_ms * 2;
    }
    assert_int_equal(pause_ms, DISPLACED_PAUSE_MS_MAX);
    assert_false(displaced_step(&displaced, DISPLACED_NO, now_ms));
    assert_false(displaced_step(&displaced, DISPLACED_YES, now_ms));
    assert_int_equal(displaced_next_ms(&displaced), now_ms + DISPLACED_PAUSE_MS_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_look_is_not_enough),
        cmocka_unit_test(what_passes_by_itself_is_let_alone),
        cmocka_unit_test(what_does_not_help_is_done_ever_more_seldom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
