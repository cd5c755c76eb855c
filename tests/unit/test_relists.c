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
#include "shim/log.h"
#include "shim/relay/relists.h"
#include "wire.h"

#define KUBELET 100
#define SESSIONS 3
#define EMPTY_FILTER "\x0a\x00", 2

struct world {
    struct relists *relists;
    struct wire wires[SESSIONS];
    bool opened[SESSIONS];
    struct buffer log;
    bool armed; /* the stand-in's */
    bool holds; /* what gate_hold() answers */
    bool arms;  /* gate_announced() does */
    uint64_t hold;
    bool quiet;
};

static struct world *world; /* the gate's functions have no user pointer of ours */

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    char line[128];
    va_list args;

    if (world->quiet)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    h2_put(&world->log, line, strlen(line));
}

/* ---- the gate ---- */

bool gate_watches(const struct gate *gate, pid_t pid)
{
    assert_ptr_equal(gate, world);
    assert_true(pid > 0);
    return pid >= KUBELET;
}

bool gate_armed(const struct gate *gate, pid_t pid)
{
    assert_ptr_equal(gate, world);
    return world->armed && pid == KUBELET;
}

void gate_announced(struct gate *gate, pid_t pid)
{
    assert_ptr_equal(gate, world);
    note("announced %d\n", (int)pid);
    world->armed = world->arms;
}

bool gate_hold(struct gate *gate, pid_t pid, uint64_t deadline_ms, uint64_t hold)
{
    assert_ptr_equal(gate, world);
    assert_true(hold > world->hold); /* no number twice */
    world->hold = hold;
    note("hold %d until %lld\n", (int)pid, (long long)deadline_ms);
    return world->holds;
}

void gate_cancelled(struct gate *gate, uint64_t hold)
{
    assert_ptr_equal(gate, world);
    note("cancelled %s\n", hold == world->hold ? "last" : "another");
}

void gate_answered(struct gate *gate, pid_t pid)
{
    assert_ptr_equal(gate, world);
    note("answered %d\n", (int)pid);
    world->armed = false;
}

/* ---- the sessions ---- */

static void on_request(void *user, struct session_call *call)
{
    struct wire *wire = user;

    relists_request(world->relists, wire->session, call, 4711);
}

static void on_answered(void *user, struct session_call *call, int status, const uint8_t *message,
                        size_t bytes)
{
    (void)user, (void)message, (void)bytes;
    relists_answered(world->relists, call, status);
}

static void on_ended(void *user, struct session_call *call)
{
    (void)user;
    relists_ended(world->relists, call);
}

static const struct session_ops OPS = {wire_write, on_request, on_answered, on_ended};

/* The connection of a process. */
static struct wire *open_wire(struct world *w, int i, pid_t pid)
{
    struct wire *wire = &w->wires[i];

    w->opened[i] = true;
    wire_init(wire, w->quiet);
    if (w->relists)
        wire_connect(wire, &OPS);
    alloc_fail_enable(w->quiet);
    if (wire->session)
        relists_session_begun(w->relists, wire->session, pid);
    alloc_fail_enable(false);
    wire_greet(wire);
    return wire;
}

static struct wire *open_armed(struct world *w)
{
    w->armed = true;
    return open_wire(w, 0, KUBELET);
}

static void close_wire(struct wire *wire)
{
    if (wire->session)
        relists_session_gone(world->relists, wire->session);
    wire_close(wire);
}

static void world_begin(struct world *w)
{
    world = w;
    w->arms = w->holds = true;
    alloc_fail_enable(w->quiet);
    w->relists = relists_new();
    alloc_fail_enable(false);
    if (w->relists)
        relists_bind(w->relists, (struct gate *)w);
}

static void world_end(struct world *w)
{
    for (int i = 0; i < SESSIONS && w->opened[i]; i++) {
        close_wire(&w->wires[i]);
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
    h2_put(&w->log, "", 1);
    assert_string_equal((const char *)buffer_data(&w->log), expected);
    buffer_fini(&w->log);
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
    told(w, "announced 100\n");
    assert_true(passed(k));
    relist(k, 5);
    told(w, HOLD);
    assert_false(passed(k));
    release(w, w->hold);
    assert_true(passed(k));
    release(w, w->hold); /* it is over */
    assert_false(passed(k));
    told(w, "");
    answer(k, 5);
    told(w, "answered 100\n");
    relist(k, 7);
    assert_true(passed(k));
    told(w, "");
    assert_int_equal(session_calls(k->session), 1); /* the Version: the others are not looked at */
}

static void every_connection_of_the_process_is_armed_and_disarmed(void **state)
{
    struct world *w = *state;

    open_wire(w, 0, KUBELET);
    open_wire(w, 1, KUBELET);
    version(&w->wires[0], 1, "");
    relist(&w->wires[1], 1);
    told(w, "announced 100\n" HOLD);
    open_wire(w, 2, KUBELET); /* of a time when it is armed already */
    relist(&w->wires[2], 1);
    told(w, HOLD);
    release(w, w->hold);
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

    w->armed = true;
    open_wire(w, 0, KUBELET + 1); /* a kubelet that is not armed */
    open_wire(w, 1, 7);
    open_wire(w, 2, 0); /* of another pid namespace */
    for (int i = 0; i < SESSIONS; i++) {
        struct wire *wire = &w->wires[i];

        if (i > 0)
            version(wire, 1, "");
        relist(wire, 3);
        assert_true(passed(wire));
        assert_int_equal(session_calls(wire->session), 0);
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
    w->arms = false;
    version(k, 5, "");
    told(w, "announced 100\n");
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

static void what_the_gate_does_not_hold_passes(void **state)
{
    struct world *w = *state;
    struct wire *k = open_armed(w);

    w->holds = false;
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
    release(w, w->hold);
    wire_fail(k, 1, "14");
    relist(k, 3);
    told(w, HOLD HOLD);
}

static void the_gate_that_disarms_by_itself(void **state)
{
    struct world *w = *state;
    struct wire *k = open_armed(w);

    w->armed = false;
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
    release(w, w->hold); /* the second only */
    assert_true(passed(k));
    close_wire(k);
    told(w, "cancelled another\n");
    release(w, w->hold - 1); /* too late */
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
    release(w, w->hold); /* has gone on: stays as it is */
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

    w->armed = true;
    relists_bind(w->relists, NULL);
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
        relist(&w.wires[0], 3);
        relist(&w.wires[1], 1);
        release(&w, w.hold);
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
