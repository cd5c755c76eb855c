/* shim/rpc/numbered.c: calls by number, to a server of ours. */
#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "shim/rpc/numbered.h"
#include "tests/unit/rpc_served.h"
#include "tests/unit/waiting.h"

#define GONE "nobody is there"
#define NUMBERS 8

/* The calls, a channel that they go through, and what came of each by its number. */
struct fixture {
    struct world *world;
    struct served served;
    struct rpc_channel *channel;
    bool lost;
    struct numbered_calls calls;
    bool starting; /* no end may come */
    bool stopped;
    unsigned ends;
    struct {
        unsigned ends;
        const struct numbered_method *method;
        int code;
        bool noted; /* with a note */
        char note[32];
        char message[128];
        bool response;
    } of[NUMBERS];
    void (*in_end)(struct fixture *f, uint64_t number); /* called inside each; may be NULL */
};

static const struct numbered_method ANSWER = {"/test/Answer", &v1beta1__empty__descriptor};
static const struct numbered_method REFUSE = {"/test/Refuse", &v1beta1__empty__descriptor};
static const struct numbered_method TAKE = {"/test/Take", &v1beta1__empty__descriptor};

static void on_ended(void *user, const struct numbered_end *end)
{
    struct fixture *f = user;

    assert_false(f->starting);
    assert_in_range(end->number, 0, NUMBERS - 1);
    f->ends++;
    f->of[end->number].ends++;
    f->of[end->number].method = end->method;
    f->of[end->number].code = end->code;
    f->of[end->number].noted = end->note;
    f->of[end->number].response =
        end->response && end->response->descriptor == &v1beta1__empty__descriptor;
    snprintf(f->of[end->number].note, sizeof f->of->note, "%s", end->note ? end->note : "");
    snprintf(f->of[end->number].message, sizeof f->of->message, "%s", end->message);
    if (f->in_end)
        f->in_end(f, end->number);
}

static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct fixture *f = user;

    (void)channel, (void)reason;
    f->lost = true;
}

static const struct rpc_channel_ops CHANNEL_OPS = {.lost = on_lost};

static void open_channel(struct fixture *f, struct rpc_channel **out)
{
    assert_int_equal(rpc_channel_open(&f->world->loop, f->world->path, &CHANNEL_OPS, f, out), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    served_open(&f->served, f->world);
    open_channel(f, &f->channel);
    numbered_calls_init(&f->calls, &f->world->loop, on_ended, f, GONE);
    *state = f;
    return 0;
}

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

/* As its owner does: what the channel has goes with it. */
static void close_channel(struct fixture *f)
{
    numbered_calls_cancel_all(&f->calls, f->channel);
    rpc_channel_close(f->channel);
    f->channel = NULL;
}

static void stop(struct fixture *f)
{
    unsigned ends = f->ends;

    close_channel(f);
    numbered_calls_stop(&f->calls, on_stopped, f);
    assert_false(f->stopped);
    WAIT(f->world, f->stopped);
    assert_int_equal(f->ends, ends);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    if (!f->stopped)
        stop(f);
    served_close(&f->served);
    err = world_free(f->world);
    free(f);
    return err;
}

static void start_on(struct fixture *f, struct rpc_channel *channel,
                     const struct numbered_method *method, uint64_t number, const char *note,
                     uint64_t timeout_ms)
{
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    bool before = f->starting;

    request.resource_name = (char *)"v.com/x";
    f->starting = true;
    numbered_calls_start(&f->calls, channel, method, number, note, &request.base, timeout_ms);
    f->starting = before;
}

static void start(struct fixture *f, const struct numbered_method *method, uint64_t number)
{
    start_on(f, f->channel, method, number, NULL, 60000);
}

static void one_ends_with_its_answer(void **state)
{
    struct fixture *f = *state;
    char note[] = "a note";

    start_on(f, f->channel, &ANSWER, 3, note, 60000);
    memset(note, 'x', sizeof note - 1); /* it is copied */
    start(f, &REFUSE, 1);
    assert_int_equal(numbered_calls_len(&f->calls), 2);
    WAIT(f->world, f->ends == 2);
    assert_int_equal(numbered_calls_len(&f->calls), 0);
    assert_ptr_equal(f->of[3].method, &ANSWER);
    assert_int_equal(f->of[3].code, RPC_OK);
    assert_true(f->of[3].response);
    assert_string_equal(f->of[3].note, "a note");
    assert_ptr_equal(f->of[1].method, &REFUSE);
    assert_int_equal(f->of[1].code, RPC_FAILED_PRECONDITION);
    assert_string_equal(f->of[1].message, SERVED_REFUSAL);
    assert_false(f->of[1].response || f->of[1].noted);
    assert_int_equal(f->of[3].ends, 1);
    assert_int_equal(f->of[1].ends, 1);
}

static void one_that_cannot_be_made_ends_from_the_loop(void **state)
{
    struct fixture *f = *state;

    for (uint64_t number = 0; number < 3; number++)
        start_on(f, NULL, &ANSWER, number, "n", 60000);
    assert_int_equal(numbered_calls_len(&f->calls), 3);
    WAIT(f->world, f->ends == 3);
    world_settle(f->world);
    assert_int_equal(f->ends, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(f->of[i].ends, 1);
        assert_int_equal(f->of[i].code, RPC_UNAVAILABLE);
        assert_string_equal(f->of[i].message, GONE);
        assert_string_equal(f->of[i].note, "n");
        assert_false(f->of[i].response);
    }
}

static void a_lost_channel_ends_those_on_it_and_makes_no_more(void **state)
{
    struct fixture *f = *state;

    start(f, &TAKE, 1);
    WAIT(f->world, f->served.called);
    served_close(&f->served);
    WAIT(f->world, f->lost);
    assert_int_equal(f->of[1].code, RPC_UNAVAILABLE);
    assert_string_not_equal(f->of[1].message, GONE);
    start(f, &ANSWER, 2);
    WAIT(f->world, f->ends == 2);
    assert_int_equal(f->of[2].code, RPC_UNAVAILABLE);
    assert_string_equal(f->of[2].message, GONE);
}

/* Starts one, and takes back others: one that waits to be told, and one at the server. */
static void change_others(struct fixture *f, uint64_t number)
{
    if (number != 0)
        return;
    numbered_calls_cancel(&f->calls, 1);
    numbered_calls_cancel(&f->calls, 2);
    numbered_calls_cancel(&f->calls, 0); /* it is over */
    start_on(f, NULL, &ANSWER, 4, NULL, 60000);
    start(f, &ANSWER, 5);
}

static void the_callback_may_do_anything(void **state)
{
    struct fixture *f = *state;

    f->in_end = change_others;
    start(f, &TAKE, 2);
    WAIT(f->world, f->served.called);
    for (uint64_t number = 0; number < 4; number++) {
        if (number != 2)
            start_on(f, NULL, &ANSWER, number, NULL, 60000);
    }
    WAIT(f->world, f->ends == 4);
    WAIT(f->world, f->served.calls == 2 && f->served.cancelled);
    world_settle(f->world);
    assert_int_equal(f->of[0].ends, 1);
    assert_int_equal(f->of[1].ends, 0);
    assert_int_equal(f->of[2].ends, 0);
    assert_int_equal(f->of[3].ends, 1);
    assert_int_equal(f->of[4].ends, 1);
    assert_int_equal(f->of[5].code, RPC_OK);
    assert_int_equal(numbered_calls_len(&f->calls), 0);
}

static void one_taken_back_is_given_up_at_the_server(void **state)
{
    struct fixture *f = *state;

    start(f, &TAKE, 1);
    WAIT(f->world, f->served.called);
    numbered_calls_cancel(&f->calls, 7); /* never heard of */
    assert_int_equal(numbered_calls_len(&f->calls), 1);
    numbered_calls_cancel(&f->calls, 1);
    assert_int_equal(numbered_calls_len(&f->calls), 0);
    WAIT(f->world, f->served.cancelled);
    assert_int_equal(f->ends, 0);
    start(f, &ANSWER, 1); /* its number is free */
    WAIT(f->world, f->ends == 1);
    assert_int_equal(f->of[1].code, RPC_OK);
}

static void one_without_time_is_made_and_ends(void **state)
{
    struct fixture *f = *state;

    start_on(f, f->channel, &TAKE, 1, NULL, 0);
    WAIT(f->world, f->ends == 1);
    assert_int_equal(f->of[1].code, RPC_DEADLINE_EXCEEDED);
}

/* Those of other channels, and those that could not be made, are told as before. */
static void a_channel_is_dropped_with_its_calls_only(void **state)
{
    struct fixture *f = *state;
    struct rpc_channel *other;

    open_channel(f, &other);
    start(f, &TAKE, 1);
    start_on(f, other, &ANSWER, 2, NULL, 60000);
    start_on(f, NULL, &ANSWER, 3, NULL, 60000);
    close_channel(f);
    assert_int_equal(numbered_calls_len(&f->calls), 2);
    WAIT(f->world, f->ends == 2);
    assert_int_equal(f->of[1].ends, 0);
    assert_int_equal(f->of[2].code, RPC_OK);
    assert_int_equal(f->of[3].code, RPC_UNAVAILABLE);
    numbered_calls_cancel_all(&f->calls, other);
    rpc_channel_close(other);
}

/* As after the loss of the one on which it began. */
static void what_is_moved_is_dropped_with_the_other_channel(void **state)
{
    struct fixture *f = *state;
    struct rpc_channel *other;

    open_channel(f, &other);
    start(f, &TAKE, 1);
    start_on(f, other, &TAKE, 2, NULL, 60000);
    numbered_calls_move(&f->calls, other, f->channel);
    numbered_calls_cancel_all(&f->calls, other);
    assert_int_equal(numbered_calls_len(&f->calls), 2);
    numbered_calls_cancel_all(&f->calls, f->channel);
    assert_int_equal(numbered_calls_len(&f->calls), 0);
    rpc_channel_close(other);
}

#define LARGE_BYTES (RPC_MESSAGE_BYTES_MAX - 64)

/* The server's next call has its answer, and goes on. */
static struct rpc_incoming *answer_large(struct fixture *f, char *text)
{
    V1beta1__RegisterRequest answer = V1BETA1__REGISTER_REQUEST__INIT;
    struct rpc_incoming *call;

    f->served.called = false;
    WAIT(f->world, f->served.called);
    call = f->served.call;
    answer.endpoint = text;
    assert_int_equal(rpc_incoming_send(call, &answer.base), 0);
    WAIT(f->world, rpc_incoming_queued(call) == 0);
    world_settle(f->world);
    return call;
}

/* A server that answers and does not say that this was all makes us wait with the answer. */
static void answers_that_wait_for_their_end_have_a_bound(void **state)
{
    static const struct numbered_method TEXT = {"/test/Take",
                                                &v1beta1__register_request__descriptor};
    const unsigned fit = NUMBERED_BYTES_MAX / LARGE_BYTES;
    struct rpc_incoming *calls[NUMBERS];
    struct fixture *f = *state;
    char *text = malloc(LARGE_BYTES + 1);

    memset(text, 'x', LARGE_BYTES);
    text[LARGE_BYTES] = '\0';
    for (unsigned i = 0; i <= fit; i++) {
        start(f, &TEXT, i);
        calls[i] = answer_large(f, text);
    }
    assert_in_range(f->calls.kept_bytes, fit * LARGE_BYTES, NUMBERED_BYTES_MAX);
    for (unsigned i = 0; i <= fit; i++)
        rpc_incoming_finish(calls[i], RPC_OK, NULL);
    WAIT(f->world, f->ends == fit + 1);
    for (unsigned i = 0; i < fit; i++)
        assert_int_equal(f->of[i].code, RPC_OK);
    assert_int_equal(f->of[fit].code, RPC_RESOURCE_EXHAUSTED);
    assert_int_equal(f->calls.kept_bytes, 0);
    start(f, &TEXT, fit + 1); /* there is room again */
    rpc_incoming_finish(answer_large(f, text), RPC_OK, NULL);
    WAIT(f->world, f->ends == fit + 2);
    assert_int_equal(f->of[fit + 1].code, RPC_OK);
    free(text);
}

/* stop() says that no end comes. */
static void nothing_is_told_once_it_stops(void **state)
{
    struct fixture *f = *state;

    start(f, &TAKE, 1);
    start_on(f, NULL, &ANSWER, 2, "n", 60000);
    stop(f);
    assert_int_equal(f->ends, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_ends_with_its_answer),
        TEST(one_that_cannot_be_made_ends_from_the_loop),
        TEST(a_lost_channel_ends_those_on_it_and_makes_no_more),
        TEST(the_callback_may_do_anything),
        TEST(one_taken_back_is_given_up_at_the_server),
        TEST(one_without_time_is_made_and_ends),
        TEST(a_channel_is_dropped_with_its_calls_only),
        TEST(what_is_moved_is_dropped_with_the_other_channel),
        TEST(answers_that_wait_for_their_end_have_a_bound),
        TEST(nothing_is_told_once_it_stops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
