/* shim/relay/relists.c on real sessions, with a recording stand-in for the gate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "gate_stand_in.h"
#include "shim/log.h"
#include "shim/process.h"
#include "shim/relay/relists.h"
#include "wire.h"

#define STRANGER 7
#define SESSIONS 3
#define EMPTY_FILTER "\x0a\x00", 2

struct world {
    struct relists *relists;
    struct wire wires[SESSIONS];
    bool opened[SESSIONS];
    struct buffer log;
    struct gate_stand_in gate;
    bool quiet;
};

static struct world *world; /* process_name() has no user pointer of ours */

#define note(...)                                                                                  \
    do {                                                                                           \
        if (!world->quiet)                                                                         \
            h2_say(&world->log, __VA_ARGS__);                                                      \
    } while (0)

void process_name(pid_t pid, char out[PROCESS_NAME_BYTES_MAX])
{
    if (pid < KUBELET)
        note("%s is named\n", pid == STRANGER ? "a stranger" : "nobody");
    strcpy(out, pid == STRANGER ? "stranger" : pid ? "kubelet" : "?");
}

static void on_started(void *user)
{
    assert_ptr_equal(user, world);
    note("started\n");
}

static void on_listed(void *user)
{
    assert_ptr_equal(user, world);
    note("listed\n");
}

static const struct relists_ops RELISTS_OPS = {.started = on_started, .listed = on_listed};

/* ---- the sessions ---- */

static void on_begun(void *owner, struct session *session, pid_t client)
{
    assert_ptr_equal(owner, world);
    relists_session_begun(world->relists, session, client);
}

static void on_gone(void *owner, struct session *session)
{
    assert_ptr_equal(owner, world);
    relists_session_gone(world->relists, session);
}

static struct session_call *asked; /* the last one */

static void on_request(void *owner, struct session *session, struct session_call *call)
{
    assert_ptr_equal(owner, world);
    asked = call;
    relists_request(world->relists, session, call, 4711);
}

static void on_answered(void *owner, struct session_call *call, int status, const uint8_t *message,
                        size_t bytes)
{
    (void)owner, (void)message, (void)bytes;
    relists_answered(world->relists, call, status);
}

static void on_ended(void *owner, struct session_call *call)
{
    (void)owner;
    relists_ended(world->relists, call);
}

static const struct session_owner_ops OWNER_OPS = {on_begun,    on_gone,  on_request,
                                                   on_answered, on_ended, NULL};

/* The connection of a process. */
static struct wire *open_wire(struct world *w, int i, pid_t pid)
{
    struct wire *wire = &w->wires[i];

    w->opened[i] = true;
    wire_init(wire, w->quiet);
    if (w->relists)
        wire_connect(wire, (struct session_owner){&OWNER_OPS, w});
    alloc_fail_enable(w->quiet);
    if (wire->session)
        session_begin(wire->session, pid);
    alloc_fail_enable(false);
    wire_greet(wire);
    return wire;
}

static struct wire *open_armed(struct world *w)
{
    w->gate.armed = true;
    return open_wire(w, 0, KUBELET);
}

static void world_begin(struct world *w)
{
    world = w;
    w->gate = (struct gate_stand_in){.log = w->quiet ? NULL : &w->log, .arms = true, .holds = true};
    alloc_fail_enable(w->quiet);
    w->relists = relists_new();
    alloc_fail_enable(false);
    if (w->relists)
        relists_bind(w->relists, &GATE_STAND_IN, &w->gate, &RELISTS_OPS, w);
}

static void world_end(struct world *w)
{
    for (int i = 0; i < SESSIONS && w->opened[i]; i++) {
        wire_close(&w->wires[i]);
        wire_fini(&w->wires[i]);
    }
    relists_free(w->relists);
    buffer_fini(&w->log);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    world_begin(w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world_end(*state);
    free(*state);
    return 0;
}

static void told(struct world *w, const char *expected)
{
    h2_said(&w->log, expected);
}

/* ---- calls ---- */

static void version(struct wire *wire, uint32_t id, const char *text)
{
    uint8_t message[16] = {0x0a, (uint8_t)strlen(text)};

    memcpy(message + 2, text, strlen(text));
    wire_call(wire, id, "Version", message, *text ? 2 + strlen(text) : 0);
}

static void relist(struct wire *wire, uint32_t id)
{
    wire_call(wire, id, "ListContainers", EMPTY_FILTER);
}

static void relist_streamed(struct wire *wire, uint32_t id)
{
    wire_call(wire, id, "StreamContainers", EMPTY_FILTER);
}

static void answer(struct wire *wire, uint32_t id)
{
    wire_answer(wire, id, "list");
}

static void release(struct world *w, uint64_t hold)
{
    alloc_fail_enable(w->quiet);
    if (w->relists)
        relists_released(w->relists, hold);
    alloc_fail_enable(false);
}

/* Whether what the runtime has been sent since the last look ends a request. */
static bool passed(struct wire *wire)
{
    struct buffer text = {0};
    bool ended;

    wire_look(wire, RUNTIME, &text);
    ended = strstr((const char *)buffer_data(&text), "END\n");
    buffer_fini(&text);
    return ended;
}

#define HOLD "hold 100 until 4711\n"

/* ---- tests ---- */

static void a_new_kubelets_relist_is_held_and_released(void **state)
{
    struct world *w = *state;
    struct wire *k = open_wire(w, 0, KUBELET);

    relist(k, 1); /* not armed */
    assert_true(passed(k));
    version(k, 3, "");
    told(w, "announced 100\nstarted\n");
    assert_true(passed(k));
    version(k, 9, "");
    told(w, "announced 100\n"); /* not for the first time */
    assert_true(passed(k));
    relist(k, 11);
    told(w, HOLD);
    assert_false(passed(k));
    release(w, w->gate.hold);
    assert_true(passed(k));
    release(w, w->gate.hold); /* it is over */
    assert_false(passed(k));
    told(w, "");
    answer(k, 11);
    told(w, "answered 100\n");
    relist(k, 13);
    assert_true(passed(k));
    told(w, "");
    assert_int_equal(session_calls(k->session), 2); /* both Versions: others are not looked at */
}

static void every_connection_of_the_process_is_armed_and_disarmed(void **state)
{
    struct world *w = *state;

    open_wire(w, 0, KUBELET);
    open_wire(w, 1, KUBELET);
    version(&w->wires[0], 1, "");
    relist(&w->wires[1], 1);
    told(w, "announced 100\nstarted\n" HOLD);
    open_wire(w, 2, KUBELET); /* of a time when it is armed already */
    relist(&w->wires[2], 1);
    told(w, HOLD);
    release(w, w->gate.hold);
    answer(&w->wires[2], 1);
    told(w, "answered 100\n");
    for (int i = 0; i < SESSIONS; i++) {
        passed(&w->wires[i]);
        relist(&w->wires[i], 3);
        assert_true(passed(&w->wires[i]));
    }
    told(w, "");
}

static void other_processes_are_not_touched(void **state)
{
    struct world *w = *state;

    w->gate.armed = true;
    open_wire(w, 0, KUBELET + 1); /* a kubelet that is not armed */
    open_wire(w, 1, STRANGER);
    open_wire(w, 2, 0); /* of another pid namespace */
    for (int i = 0; i < SESSIONS; i++) {
        struct wire *wire = &w->wires[i];

        if (i > 0)
            version(wire, 1, "0.1.0");
        relist(wire, 3);
        assert_true(passed(wire));
        relist_streamed(wire, 5);
        assert_true(passed(wire));
        assert_int_equal(session_calls(wire->session), i >= 1); /* the Version */
    }
    told(w, "");
}

static void a_kubelet_that_names_its_version_is_not_new(void **state)
{
    struct world *w = *state;
    struct wire *k = open_wire(w, 0, KUBELET);

    version(k, 1, "0.1.0");
    wire_call(k, 3, "Version", "\x0a\x05x", 3); /* no VersionRequest */
    told(w, "");
    w->gate.arms = false;
    version(k, 5, "");
    told(w, "announced 100\nstarted\n");
    relist(k, 7); /* the gate knows better */
    told(w, "");
    assert_true(passed(k));
}

static void only_the_empty_filter_is_held(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } others[] = {
        {"", 0},                                 /* no filter: the container manager's */
        {"\x0a\x03\x0a\x01x", 5},                /* of one container */
        {"\x0a\x02\x12\x00", 4},                 /* of a state */
        {"\x0a\x03\x1a\x01x", 5},                /* of one pod */
        {"\x0a\x06\x22\x04\x0a\x00\x12\x00", 8}, /* by label */
        {"\x0a\x02\x78\x01", 4},                 /* by something nobody knows */
        {"\x0a\x05", 2},                         /* no request */
        {"\x78\x01", 2},                         /* something nobody knows, and no filter */
    };
    struct world *w = *state;
    struct wire *k = open_armed(w);
    uint32_t id = 1;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++, id += 2) {
        wire_call(k, id, "ListContainers", others[i].bytes, others[i].len);
        assert_true(passed(k));
        answer(k, id);
        told(w, "");
    }
    /* other ways to say the same, and beside the filter something nobody knows */
    wire_call(k, id, "ListContainers", "\x0a\x02\x0a\x00", 4);
    wire_call(k, id + 2, "ListContainers", "\x0a\x00\x0a\x00", 4);
    wire_call(k, id + 4, "ListContainers", "\x78\x01\x0a\x00", 4);
    told(w, HOLD HOLD HOLD);
}

/* The kubelet's feature gate CRIListStreaming. */
/* Its name is none of the settings' any more when the daemon is restarted. */
static void what_the_next_daemon_does_not_take_for_a_kubelet_passes(void **state)
{
    struct world *w = *state;
    struct wire *k = open_armed(w);

    relist(k, 1);
    told(w, HOLD);
    relists_ended(w->relists, asked);
    relists_session_gone(w->relists, k->session);
    told(w, "cancelled last\n");
    session_begin(k->session, STRANGER);
    assert_true(passed(k));
    answer(k, 1);
    assert_int_equal(session_calls(k->session), 0);
    told(w, "");
}

static void what_only_the_next_daemon_takes_for_a_kubelet_passes(void **state)
{
    struct world *w = *state;
    struct wire *k = open_wire(w, 0, STRANGER);
    struct buffer framed = {0};

    version(k, 1, "");
    h2_request(&k->writers[CLIENT], &k->out, 3, "ListContainers");
    wire_feed(k, CLIENT);
    relists_session_gone(w->relists, k->session);
    session_begin(k->session, KUBELET);
    h2_message(&framed, 0, EMPTY_FILTER);
    h2_data(&k->out, 3, buffer_data(&framed), buffer_len(&framed), H2_END_STREAM, -1);
    buffer_fini(&framed);
    wire_feed(k, CLIENT);
    assert_true(passed(k));
    answer(k, 3);
    told(w, "");
}

static void a_streamed_relist_is_held(void **state)
{
    struct world *w = *state;
    struct wire *k = open_wire(w, 0, KUBELET);

    version(k, 1, "");
    wire_call(k, 3, "StreamPodSandboxes", "", 0); /* the container manager's */
    wire_call(k, 5, "StreamContainers", "", 0);
    wire_call(k, 7, "StreamPodSandboxes", EMPTY_FILTER); /* the relist */
    assert_true(passed(k));
    told(w, "announced 100\nstarted\n");
    relist_streamed(k, 9);
    told(w, HOLD);
    assert_false(passed(k));
    release(w, w->gate.hold);
    assert_true(passed(k));
    answer(k, 9);
    told(w, "answered 100\n");
    relist_streamed(k, 11);
    assert_true(passed(k));
}

/* It is asked for the list then, which is still the first relist. */
static void a_runtime_that_knows_no_streams(void **state)
{
    struct world *w = *state;
    struct wire *k = open_armed(w);

    relist_streamed(k, 1);
    told(w, HOLD);
    release(w, w->gate.hold);
    wire_fail(k, 1, "12");
    told(w, "");
    relist(k, 3);
    told(w, HOLD);
    release(w, w->gate.hold);
    answer(k, 3);
    told(w, "answered 100\n");
}

static void a_kubelet_that_knows_all_sandboxes_has_listed(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } others[] = {
        {"\x0a\x03\x0a\x01x", 5},                /* of one sandbox */
        {"\x0a\x02\x12\x00", 4},                 /* of a state */
        {"\x0a\x06\x1a\x04\x0a\x00\x12\x00", 8}, /* by label */
        {"\x0a\x02\x78\x01", 4},                 /* by something nobody knows */
        {"\x0a\x05", 2},                         /* no request */
    };
    struct world *w = *state;
    struct wire *k = open_wire(w, 0, KUBELET);
    uint32_t id = 1;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++, id += 2) {
        wire_call(k, id, "ListPodSandbox", others[i].bytes, others[i].len);
        assert_true(passed(k));
        answer(k, id);
    }
    wire_call(k, id, "ListPodSandbox", "", 0);
    wire_fail(k, id, "14");
    wire_call(k, id + 2, "StreamPodSandboxes", EMPTY_FILTER);
    wire_fail(k, id + 2, "12");
    wire_call(k, id + 4, "ListPodSandbox", "", 0);
    wire_reset(k, CLIENT, id + 4, 8);
    told(w, "");
    wire_call(k, id + 6, "ListPodSandbox", "", 0);
    wire_call(k, id + 8, "ListPodSandbox", EMPTY_FILTER);
    told(w, ""); /* it has no answer yet */
    answer(k, id + 6);
    told(w, "listed\n");
    answer(k, id + 8);
    wire_call(k, id + 10, "ListPodSandbox", "", 0);
    assert_int_equal(session_calls(k->session), 0); /* not looked at any more */
    told(w, "");
    k = open_wire(w, 1, KUBELET); /* it has come again, to another runtime perhaps */
    wire_call(k, 1, "StreamPodSandboxes", EMPTY_FILTER);
    answer(k, 1);
    told(w, "listed\n");
    k = open_wire(w, 2, STRANGER);
    wire_call(k, 1, "ListPodSandbox", "", 0);
    answer(k, 1);
    told(w, "");
}

/* Says so on stderr, once for each name; the last is of another pid namespace. Seen here is that it
 * is looked at until then. */
static void a_stranger_that_relists_is_told_of(void **state)
{
    static const char *const LISTS[][2] = {{"ListPodSandbox", "ListContainers"},
                                           {"StreamPodSandboxes", "StreamContainers"},
                                           {"ListPodSandbox", "ListContainers"}};
    struct world *w = *state;

    for (int i = 0; i < SESSIONS; i++) {
        struct wire *s = open_wire(w, i, i < 2 ? STRANGER : 0);
        uint32_t id = 1;

        wire_call(s, id, "ListPodSandbox", EMPTY_FILTER);
        assert_int_equal(session_calls(s->session), 0); /* it has not announced itself */
        version(s, id += 2, "");
        wire_call(s, id += 2, LISTS[i][1], EMPTY_FILTER); /* half of one is none */
        wire_call(s, id += 2, LISTS[i][0], EMPTY_FILTER);
        wire_call(s, id += 2, LISTS[i][1], EMPTY_FILTER); /* the first */
        wire_call(s, id += 2, LISTS[i][1], EMPTY_FILTER); /* half of one */
        wire_call(s, id += 2, LISTS[i][0], "", 0);
        wire_call(s, id += 2, LISTS[i][1], "", 0); /* the container manager's */
        told(w, "");
        wire_call(s, id += 2, LISTS[i][1], EMPTY_FILTER);
        told(w, i < 2 ? "a stranger is named\n" : "nobody is named\n");
        assert_int_equal(session_calls(s->session), 8);
        wire_call(s, id += 2, LISTS[i][1], EMPTY_FILTER);
        wire_call(s, id += 2, LISTS[i][0], EMPTY_FILTER);
        assert_int_equal(session_calls(s->session), 8); /* not looked at any more */
        for (uint32_t call = 3; call <= id; call += 2)
            answer(s, call);
        assert_int_equal(session_calls(s->session), 0);
    }
    told(w, "");
}

static void what_the_gate_does_not_hold_passes(void **state)
{
    struct world *w = *state;
    struct wire *k = open_armed(w);

    w->gate.holds = false;
    relist(k, 1);
    told(w, HOLD);
    assert_true(passed(k));
    answer(k, 1);
    told(w, "answered 100\n");
}

/* It tells the kubelet nothing, which asks again. */
static void an_error_is_no_answer(void **state)
{
    struct world *w = *state;
    struct wire *k = open_armed(w);

    relist(k, 1);
    release(w, w->gate.hold);
    wire_fail(k, 1, "14");
    relist(k, 3);
    told(w, HOLD HOLD);
}

static void the_gate_that_disarms_by_itself(void **state)
{
    struct world *w = *state;
    struct wire *k = open_armed(w);

    w->gate.armed = false;
    relist(k, 1);
    assert_true(passed(k));
    answer(k, 1);
    relist(k, 3);
    assert_int_equal(session_calls(k->session), 0); /* not looked at any more */
    told(w, "");
}

static void a_held_call_may_end_in_every_way(void **state)
{
    struct world *w = *state;
    struct wire *k = open_armed(w);

    relist(k, 1);
    wire_reset(k, CLIENT, 1, 8);
    told(w, HOLD "cancelled last\n");
    relist(k, 3);
    wire_reset(k, RUNTIME, 3, 8);
    told(w, HOLD "cancelled last\n");
    relist(k, 5); /* a runtime that does not wait for the request */
    wire_fail(k, 5, "0");
    told(w, HOLD "cancelled last\n");
    relist(k, 7);
    relist(k, 9);
    told(w, HOLD HOLD);
    release(w, w->gate.hold); /* the second only */
    assert_true(passed(k));
    wire_close(k);
    told(w, "cancelled another\n");
    release(w, w->gate.hold - 1); /* too late */
}

static void a_daemon_that_stops_holds_nothing(void **state)
{
    static const char REFUSED[] = "grpc-status=14 grpc-message=ListContainers: cri-device-shim "
                                  "stops; ask again\n";
    struct world *w = *state;
    struct wire *k = open_armed(w);
    struct buffer text = {0};

    relist(k, 1);
    relist(k, 3);
    release(w, w->gate.hold); /* has gone on: stays as it is */
    relists_drain(w->relists);
    told(w, HOLD HOLD "cancelled another\n");
    relist(k, 5);
    told(w, "");
    h2_settings(&k->out, -1, 0);
    h2_settings_ack(&k->out);
    h2_settings_ack(&k->out);
    wire_feed(k, RUNTIME);
    wire_look(k, CLIENT, &text);
    assert_non_null(strstr((const char *)buffer_data(&text), "HEADERS 1 END"));
    assert_null(strstr((const char *)buffer_data(&text), "HEADERS 3"));
    assert_non_null(strstr((const char *)buffer_data(&text), "HEADERS 5 END"));
    assert_non_null(strstr((const char *)buffer_data(&text), REFUSED));
    buffer_fini(&text);
    wire_call(k, 7, "ListContainers", "", 0); /* the container manager's passes */
    assert_true(passed(k));
    answer(k, 3);
    told(w, "answered 100\n");
}

static void without_a_gate(void **state)
{
    struct world *w = *state;

    w->gate.armed = true;
    relists_bind(w->relists, NULL, NULL, NULL, NULL);
    open_wire(w, 0, KUBELET);
    version(&w->wires[0], 1, "");
    relist(&w->wires[0], 3);
    assert_true(passed(&w->wires[0]));
    relists_drain(w->relists);
    release(w, 1);
    told(w, "");
}

/* Without memory a call passes, or its connection ends; nothing leaks. */
static void without_memory(void **state)
{
    bool failed = true;

    (void)state;
    log_set_level(LOG_LEVEL_ERROR - 1); /* a connection that is not watched is an error line */
    for (unsigned n = 1; failed; n++) {
        struct world w = {.quiet = true};

        alloc_fail_at(n);
        world_begin(&w);
        open_wire(&w, 0, KUBELET);
        open_wire(&w, 1, KUBELET);
        version(&w.wires[0], 1, "");
        wire_call(&w.wires[0], 3, "ListPodSandbox", "", 0);
        relist(&w.wires[0], 5);
        relist(&w.wires[1], 1);
        release(&w, w.gate.hold);
        answer(&w.wires[1], 1);
        alloc_fail_enable(true);
        if (w.relists)
            relists_drain(w.relists);
        alloc_fail_enable(false);
        failed = alloc_failed();
        world_end(&w);
    }
    alloc_fail_at(0);
    log_set_level(LOG_LEVEL_INFO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_kubelets_relist_is_held_and_released),
        TEST(every_connection_of_the_process_is_armed_and_disarmed),
        TEST(other_processes_are_not_touched),
        TEST(a_kubelet_that_names_its_version_is_not_new),
        TEST(only_the_empty_filter_is_held),
        TEST(what_the_next_daemon_does_not_take_for_a_kubelet_passes),
        TEST(what_only_the_next_daemon_takes_for_a_kubelet_passes),
        TEST(a_streamed_relist_is_held),
        TEST(a_runtime_that_knows_no_streams),
        TEST(a_kubelet_that_knows_all_sandboxes_has_listed),
        TEST(a_stranger_that_relists_is_told_of),
        TEST(what_the_gate_does_not_hold_passes),
        TEST(an_error_is_no_answer),
        TEST(the_gate_that_disarms_by_itself),
        TEST(a_held_call_may_end_in_every_way),
        TEST(a_daemon_that_stops_holds_nothing),
        TEST(without_a_gate),
        cmocka_unit_test(without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
