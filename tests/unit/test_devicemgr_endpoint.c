/* The states of an endpoint, by the picture in endpoint.h. */
#include <stdlib.h>

#include "devicemgr/things/endpoint.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/words/reason.h"
#include "devicemgr_world.h"

static void active(struct endpoint *endpoint, uint64_t now_ms, enum endpoint_origin origin)
{
    endpoint_dial(endpoint, now_ms, 1, origin, "gpu.sock", 0);
    endpoint_set_options(endpoint, false, false);
    endpoint_set_state(endpoint, now_ms, ENDPOINT_ACTIVE);
}

static void a_list_ends_the_stop_and_proves_the_socket(void **state)
{
    struct endpoint endpoint = {0};

    (void)state;
    endpoint_stop(&endpoint, 5, "restart");
    active(&endpoint, 10, ENDPOINT_RESTORED);
    assert_false(endpoint.stopped);
    assert_string_equal(endpoint.socket_good, "gpu.sock");
    assert_int_equal(endpoint_end_ms(&endpoint, 100), UINT64_MAX);
    endpoint_fini(&endpoint);
}

static void the_stop_time_is_the_first(void **state)
{
    struct endpoint endpoint = {0};

    (void)state;
    active(&endpoint, 10, ENDPOINT_REGISTERED);
    endpoint_stop(&endpoint, 20, "first");
    endpoint_stop(&endpoint, 30, "second");
    endpoint_set_state(&endpoint, 30, ENDPOINT_GRACE);
    assert_int_equal(endpoint_end_ms(&endpoint, 100), 120);
    assert_string_equal(endpoint.stop_reason, "first");
    endpoint_dial(&endpoint, 70, 2, ENDPOINT_REGISTERED, endpoint.socket_name, 0);
    assert_int_equal(endpoint_end_ms(&endpoint, 100), 70 + FIRST_LIST_MS); /* its own time */
    endpoint_dial(&endpoint, 70000, 2, ENDPOINT_REGISTERED, endpoint.socket_name, 0);
    assert_int_equal(endpoint_end_ms(&endpoint, 100), 120 + FIRST_LIST_MS); /* once */
    assert_int_equal(endpoint_end_ms(&endpoint, 90000), 100000);
    assert_int_equal(endpoint_end_ms(&endpoint, 90000000), 90000020);
    assert_int_equal(endpoint_unlisted_ms(&endpoint), UINT64_MAX); /* it is stopped already */
    endpoint_set_state(&endpoint, 80, ENDPOINT_GRACE);
    assert_int_equal(endpoint_end_ms(&endpoint, 100), 120); /* and gives none away */
    assert_int_equal(endpoint_end_ms(&endpoint, UINT64_MAX), UINT64_MAX);
    endpoint_set_state(&endpoint, 120, ENDPOINT_GONE);
    assert_int_equal(endpoint_end_ms(&endpoint, 100), UINT64_MAX);
    endpoint_fini(&endpoint);
}

static void one_redial_for_a_loss(void **state)
{
    struct endpoint endpoint = {0};

    (void)state;
    endpoint_dial(&endpoint, 0, 1, ENDPOINT_REGISTERED, "gpu.sock", 0);
    assert_false(endpoint_may_redial(&endpoint, 0)); /* it never worked */
    active(&endpoint, 0, ENDPOINT_REGISTERED);
    assert_true(endpoint_may_redial(&endpoint, 0));
    endpoint_stop(&endpoint, 0, "lost");
    endpoint_dial(&endpoint, 0, 2, ENDPOINT_REDIALLED, "gpu.sock", 0);
    assert_false(endpoint_may_redial(&endpoint, 0));
    endpoint_set_state(&endpoint, 0, ENDPOINT_ACTIVE);
    assert_false(endpoint_may_redial(&endpoint, REDIAL_AGAIN_MS - 1)); /* it flaps */
    assert_true(endpoint_may_redial(&endpoint, REDIAL_AGAIN_MS));
    endpoint_set_state(&endpoint, 0, ENDPOINT_GRACE);
    assert_false(endpoint_may_redial(&endpoint, REDIAL_AGAIN_MS));
    endpoint_fini(&endpoint);
}

static void one_without_a_list_stops_by_its_first_dial(void **state)
{
    struct endpoint endpoint = {0};

    (void)state;
    endpoint_dial(&endpoint, 10, 1, ENDPOINT_REGISTERED, "gpu.sock", 0);
    endpoint_dial(&endpoint, 500, 2, ENDPOINT_REGISTERED, "gpu.sock", 0);
    assert_int_equal(endpoint_unlisted_ms(&endpoint), 10 + FIRST_LIST_MS);
    assert_int_equal(endpoint_end_ms(&endpoint, 100), UINT64_MAX);
    endpoint_set_state(&endpoint, 600, ENDPOINT_ACTIVE);
    assert_int_equal(endpoint_unlisted_ms(&endpoint), UINT64_MAX);
    endpoint_dial(&endpoint, 700, 3, ENDPOINT_REGISTERED, "gpu.sock", 0);
    assert_int_equal(endpoint_unlisted_ms(&endpoint), 700 + FIRST_LIST_MS);
    endpoint_fini(&endpoint);
}

static void dials_have_a_bound_in_time(void **state)
{
    struct endpoint endpoint = {0};
    uint64_t now_ms = 5000, registration = 0;
    char *socket_name;
    uint32_t uid;

    (void)state;
    for (int i = 0; i < DIALS_AT_ONCE; i++) {
        assert_int_equal(endpoint_dial_ms(&endpoint, now_ms), now_ms);
        endpoint_dial(&endpoint, now_ms, 1, ENDPOINT_REGISTERED, "gpu.sock", 0);
    }
    assert_true(endpoint_put_off(&endpoint, 7, "gpu.sock", 0));
    assert_int_equal(endpoint_take_put_off_registration(&endpoint), 7); /* a newer call has come */
    assert_false(endpoint_put_off(&endpoint, 8, "gpu-2.sock", 1234));
    socket_name = endpoint_take_put_off(&endpoint, &registration, &uid);
    assert_string_equal(socket_name, "gpu-2.sock");
    assert_int_equal(uid, 1234);
    assert_int_equal(registration, 8);
    free(socket_name);
    assert_int_equal(endpoint_dial_ms(&endpoint, now_ms), now_ms + DIAL_EVERY_MS);
    now_ms += DIAL_EVERY_MS;
    active(&endpoint, now_ms, ENDPOINT_REGISTERED);
    assert_false(endpoint_may_redial(&endpoint, now_ms)); /* a redial is a dial */
    assert_true(endpoint_may_redial(&endpoint, now_ms + DIAL_EVERY_MS));
    assert_true(endpoint.hasty);
    now_ms += DIALS_AT_ONCE * DIAL_EVERY_MS;
    endpoint_dial(&endpoint, now_ms, 2, ENDPOINT_REGISTERED, "gpu.sock", 0);
    assert_false(endpoint.hasty); /* all is forgotten */
    assert_int_equal(endpoint_dial_ms(&endpoint, now_ms), now_ms);
    endpoint_fini(&endpoint);
}

static void a_connection_may_begin_anew(void **state)
{
    struct endpoint endpoint = {0}, anew;

    (void)state;
    active(&endpoint, 10, ENDPOINT_REGISTERED);
    endpoint_stop(&endpoint, 20, "EOF");
    endpoint_dial(&endpoint, 70, 7, ENDPOINT_REDIALLED, "gpu.sock", 0);
    endpoint_set_options(&endpoint, false, false);
    assert_false(endpoint_may_list(&endpoint, 70)); /* it was not told anything */
    endpoint_dial(&endpoint, 80, 8, ENDPOINT_REGISTERED, "gpu.sock", 1234);
    endpoint_set_registration(&endpoint, 9);
    assert_true(endpoint_may_list(&endpoint, 80)); /* it is not known yet whether it will */
    endpoint_set_options(&endpoint, true, true);
    assert_true(endpoint_may_list(&endpoint, 80 + FIRST_LIST_MS - 1));
    assert_false(endpoint_may_list(&endpoint, 80 + FIRST_LIST_MS));
    endpoint_move(&endpoint, &anew);
    assert_int_equal(endpoint.number, 0);
    assert_int_equal(endpoint_take_registration(&endpoint), 0);
    assert_int_equal(endpoint_take_registration(&anew), 9);
    assert_int_equal(anew.number, 8);
    assert_string_equal(anew.socket_name, "gpu.sock");
    assert_int_equal(anew.uid, 1234);
    assert_null(anew.socket_good);
    assert_true(anew.have_options && anew.pre_start && anew.has_preference);
    assert_int_equal(anew.dials_ms, endpoint.dials_ms);
    assert_int_equal(endpoint_unlisted_ms(&anew), 80 + FIRST_LIST_MS);
    assert_int_equal(endpoint_end_ms(&anew, 100), UINT64_MAX);
    active(&endpoint, 90, ENDPOINT_REGISTERED);
    endpoint_set_options(&endpoint, false, false);
    assert_false(endpoint_may_list(&endpoint, 90)); /* it has */
    endpoint_fini(&endpoint);
    endpoint_fini(&anew);
}

static void it_says_what_it_waits_for(void **state)
{
    struct endpoint endpoint = {0};
    struct text text = {0};

    (void)state;
    endpoint_dial(&endpoint, 1000, 1, ENDPOINT_REGISTERED, "gpu.sock", 0);
    reason_explain_endpoint(&endpoint, 3000, 300000, &text);
    assert_string_equal(text.buf, "plugin endpoint \"gpu.sock\" has been connecting for 2s");
    endpoint_set_options(&endpoint, false, false);
    text = (struct text){0};
    reason_explain_endpoint(&endpoint, 4000, 300000, &text);
    assert_string_equal(text.buf, "plugin endpoint \"gpu.sock\" has sent no device list for 3s");
    endpoint_stop(&endpoint, 4000, "EOF");
    text = (struct text){0};
    reason_explain_endpoint(&endpoint, 5000, 300000, &text);
    assert_string_equal(text.buf,
                        "plugin endpoint \"gpu.sock\" has sent no device list for 4s, stop "
                        "grace period ends in 4m59s, then the resource is removed");
    endpoint_set_state(&endpoint, 4000, ENDPOINT_GRACE);
    text = (struct text){0};
    reason_explain_endpoint(&endpoint, 16000, 300000, &text);
    assert_string_equal(text.buf, "plugin endpoint \"gpu.sock\" stopped 12s ago (EOF), stop grace "
                                  "period ends in 4m48s, then the resource is removed");
    text = (struct text){0};
    reason_explain_endpoint(&endpoint, 999000, 300000, &text);
    assert_non_null(strstr(text.buf, "ends in 0ms"));
    endpoint_fini(&endpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_ends_the_stop_and_proves_the_socket),
        cmocka_unit_test(the_stop_time_is_the_first),
        cmocka_unit_test(one_redial_for_a_loss),
        cmocka_unit_test(one_without_a_list_stops_by_its_first_dial),
        cmocka_unit_test(dials_have_a_bound_in_time),
        cmocka_unit_test(a_connection_may_begin_anew),
        cmocka_unit_test(it_says_what_it_waits_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
