/* Reasons: one word and one code each; the sentences are read in the tests of who refuses. */
#include <string.h>

#include "devicemgr/books/state.h"
#include "devicemgr/words/reason.h"
#include "devicemgr_world.h"

#define KINDS_LEN REASON_KINDS

static void every_kind_has_a_word_of_its_own(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS_LEN; kind++) {
        assert_non_null(reason_word(kind));
        for (int other = 0; other < kind; other++)
            assert_string_not_equal(reason_word(kind), reason_word(other));
    }
}

/* A hold that is over is refused so that the kubelet's next try may find it otherwise. */
static void what_is_waited_for_is_refused_for_now(void **state)
{
    static const enum reason_kind WAITED_FOR[] = {
        REASON_SANDBOX_NOT_READY, REASON_PLUGIN_AWAY,    REASON_DEVICES_UNHEALTHY,
        REASON_HOLDER_ASKED,      REASON_HOLDER_UNKNOWN, REASON_TOO_FEW_ARE_HEALTHY,
        REASON_HOLDER_CREATED,    REASON_UNLISTED,       REASON_UNLISTED_AGAIN,
    };

    (void)state;
    for (size_t i = 0; i < sizeof WAITED_FOR / sizeof *WAITED_FOR; i++)
        assert_int_equal(reason_code(WAITED_FOR[i]), CODE_UNAVAILABLE);
}

static void what_ends_the_wait_is_said_last(void **state)
{
    char container[] = "main", pod_namespace[] = "ns", pod_name[] = "p";
    const struct demand demand = {
        .container = container, .pod_namespace = pod_namespace, .pod_name = pod_name};
    struct reason reason = {.kind = REASON_UNLISTED, .resource = "vendor.com/gpu"};
    const struct state state_now = {0};
    struct text plain = {0}, drain = {0}, deadline = {0};

    (void)state;
    reason_explain(&state_now, &demand, &reason, &plain);
    assert_string_equal(plain.buf,
                        "container \"main\" of pod \"ns/p\": resource vendor.com/gpu: the "
                        "runtime has not listed its containers yet, so that it is not "
                        "known who holds which device");
    reason.ends = REASON_ENDS_BY_DRAIN;
    reason_explain(&state_now, &demand, &reason, &drain);
    assert_string_equal(drain.buf + plain.len, "; the shim is being stopped");
    reason.ends = REASON_ENDS_BY_DEADLINE;
    reason_explain(&state_now, &demand, &reason, &deadline);
    assert_string_equal(deadline.buf + plain.len, ", and the client's deadline ends");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_a_word_of_its_own),
        cmocka_unit_test(what_is_waited_for_is_refused_for_now),
        cmocka_unit_test(what_ends_the_wait_is_said_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
