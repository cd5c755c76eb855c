/*
 * The real gate on a real loop, with child processes for kubelets; what they have taken is the
 * test's to say.
 */
#ifndef TESTS_UNIT_GATE_FIXTURE_H
#define TESTS_UNIT_GATE_FIXTURE_H

#include "shim/kubelet/gate.h"
#include "tests/unit/named_process.h"
#include "tests/unit/waiting.h"

#define NEVER UINT64_MAX

struct fixture {
    struct world *world;
    struct config config;
    char socket[64], file[64];
    char *names[1];
    struct gate *gate;
    struct taken taken;
    unsigned asked; /* ops.taken */
    unsigned waits;
    const char *told; /* the last word */
    uint64_t released[16];
    size_t released_len;
    uint64_t cancels; /* when it is released: gate_cancelled() of this one; 0: none */
    bool stopped;
    pid_t kubelet;
};

/* cmocka fixtures: *state is a struct fixture, whose gate has started. */
int setup(void **state);
int teardown(void **state);

void start(struct fixture *f);
void stop(struct fixture *f);
/* As at a restart of the daemon. */
void again(struct fixture *f);

/* Whether there is GATE_FILE. */
bool has_file(const struct fixture *f);
/* Nothing was let go, and nothing is about to be. */
void assert_held(struct fixture *f);

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
