/* shim/bridge/enrolment.c: what it waits for. What it does with a kubelet is
 * test_bridge_endpoint's. */
#include "tests/unit/waiting.h"

#include "shim/bridge/enrolment.h"

struct fixture {
    struct world *world;
    struct registration *registration;
    struct enrolment enrolment;
    unsigned disconnects, closed;
    uint64_t leave_ms;
};

static void ignore(void *user)
{
    (void)user;
}

static const struct registration_ops REGISTRATION_OPS = {ignore, ignore, ignore};

static uint64_t on_disconnect(void *user)
{
    struct fixture *f = user;

    f->disconnects++;
    return f->leave_ms;
}

static const struct enrolment_ops OPS = {on_disconnect, ignore};

static void on_closed(uv_handle_t *handle)
{
    struct fixture *f = handle->data;

    f->closed++;
}

static void start(struct fixture *f, struct world *world)
{
    *f = (struct fixture){.world = world};
    f->registration = registration_new(&world->loop, world->path, &REGISTRATION_OPS, f);
    enrolment_init(&f->enrolment, &world->loop, f->registration, "v.com/gpu", "gpu.sock", &OPS, f);
}

static void end(struct fixture *f)
{
    enrolment_fini(&f->enrolment, on_closed);
    registration_free(f->registration);
    WAIT(f->world, f->closed == 1);
}

static void waits_are(const struct fixture *f, const char *expected)
{
    char text[ENROLMENT_WAITS_TEXT_BYTES_MAX];

    assert_string_equal(enrolment_waits_text(enrolment_waits(&f->enrolment), text), expected);
}

static void what_it_lacks_is_said(void **state)
{
    struct fixture f;

    start(&f, *state);
    waits_are(&f, "a kubelet, a list, the socket");
    enrolment_set_list(&f.enrolment);
    waits_are(&f, "a kubelet, the socket");
    enrolment_set_socket(&f.enrolment, true);
    waits_are(&f, "a kubelet");
    enrolment_set_socket(&f.enrolment, false);
    waits_are(&f, "a kubelet, the socket");
    assert_int_equal(f.disconnects, 0);
    /* With a stream from before there is nothing to register, whatever lacks. */
    enrolment_kubelet_came(&f.enrolment, true);
    assert_int_equal(f.enrolment.state, ENROLMENT_SERVING);
    waits_are(&f, "the stream's end");
    enrolment_stream_ended(&f.enrolment, 0);
    assert_int_equal(f.enrolment.state, ENROLMENT_BACKING_OFF);
    assert_int_equal(f.disconnects, 1);
    waits_are(&f, "time");
    WAIT(f.world, f.enrolment.state == ENROLMENT_WAITING);
    waits_are(&f, "the socket");
    enrolment_kubelet_went(&f.enrolment);
    waits_are(&f, "a kubelet, the socket");
    end(&f);
}

/* After the end of a connection that it had with another process. */
static void the_kubelet_is_left_alone_before_it_is_asked(void **state)
{
    struct fixture f;

    start(&f, *state);
    enrolment_set_list(&f.enrolment);
    enrolment_set_socket(&f.enrolment, true);
    f.leave_ms = 20;
    enrolment_kubelet_came(&f.enrolment, false);
    assert_int_equal(f.enrolment.state, ENROLMENT_BACKING_OFF);
    assert_int_equal(f.disconnects, 1);
    assert_int_equal(uv_timer_get_due_in(&f.enrolment.timer), 20);
    WAIT(f.world, f.disconnects == 2);
    assert_int_equal(f.enrolment.state, ENROLMENT_BACKING_OFF);
    enrolment_kubelet_went(&f.enrolment);
    end(&f);
}

/* It is the kubelet's yet: nobody hangs up on it for the next one. */
static void a_stream_that_is_left_stays(void **state)
{
    struct fixture f;

    start(&f, *state);
    enrolment_set_list(&f.enrolment);
    enrolment_kubelet_came(&f.enrolment, true);
    enrolment_stream_left(&f.enrolment);
    assert_int_equal(f.enrolment.state, ENROLMENT_WAITING);
    waits_are(&f, "the socket");
    enrolment_stream_left(&f.enrolment);
    assert_int_equal(f.enrolment.state, ENROLMENT_WAITING);
    assert_int_equal(f.disconnects, 0);
    end(&f);
}

static void the_text_has_room_for_all(void **state)
{
    char text[ENROLMENT_WAITS_TEXT_BYTES_MAX];

    (void)state;
    assert_string_equal(enrolment_waits_text(~0u, text),
                        "a kubelet, a list, the socket, the answer, "
                        "the stream, the stream's end, time");
    assert_string_equal(enrolment_waits_text(0, text), "nothing");
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(what_it_lacks_is_said),
        WORLD_TEST(the_kubelet_is_left_alone_before_it_is_asked),
        WORLD_TEST(a_stream_that_is_left_stays),
        cmocka_unit_test(the_text_has_room_for_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
