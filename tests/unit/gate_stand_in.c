#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gate_stand_in.h"

#define note(gate, ...)                                                                            \
    do {                                                                                           \
        if ((gate)->log)                                                                           \
            h2_say((gate)->log, __VA_ARGS__);                                                      \
    } while (0)

static bool on_watches(void *user, pid_t pid)
{
    (void)user;
    assert_true(pid > 0);
    return pid >= KUBELET;
}

static bool on_armed(void *user, pid_t pid)
{
    const struct gate_stand_in *gate = user;

    return gate->armed && pid == KUBELET;
}

static bool on_announced(void *user, pid_t pid)
{
    struct gate_stand_in *gate = user;
    bool fresh = !gate->announced;

    note(gate, "announced %d\n", (int)pid);
    gate->armed = gate->arms;
    gate->announced = true;
    return fresh;
}

static bool on_hold(void *user, pid_t pid, uint64_t deadline_ms, uint64_t hold)
{
    struct gate_stand_in *gate = user;

    assert_true(hold > gate->hold); /* no number twice */
    gate->hold = hold;
    note(gate, "hold %d until %lld\n", (int)pid, (long long)deadline_ms);
    return gate->holds;
}

static void on_cancelled(void *user, uint64_t hold)
{
    struct gate_stand_in *gate = user;

    note(gate, "cancelled %s\n", hold == gate->hold ? "last" : "another");
}

static void on_answered(void *user, pid_t pid)
{
    struct gate_stand_in *gate = user;

    note(gate, "answered %d\n", (int)pid);
    gate->armed = false;
}

const struct relists_gate GATE_STAND_IN = {.watches = on_watches,
                                           .armed = on_armed,
                                           .announced = on_announced,
                                           .hold = on_hold,
                                           .cancelled = on_cancelled,
                                           .answered = on_answered};
