/*
 * One simulated node, from one seed: the real device manager under virtual time, with plugins, a
 * kubelet, a runtime and a store that misbehave, and a shim that is killed and started again.
 *
 * `now_ms` is the world's time. The core's clock starts anew at a reboot: shim_now_ms(). Equal
 * seeds give equal runs. The first broken invariant ends the run (check.h).
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/bridge.h"
#include "tests/sim/claim.h"
#include "tests/sim/client.h"
#include "tests/sim/count.h"
#include "tests/sim/kubelet.h"
#include "tests/sim/lister.h"
#include "tests/sim/plugin.h"
#include "tests/sim/publisher.h"
#include "tests/sim/rng.h"
#include "tests/sim/runtime.h"
#include "tests/sim/shim.h"
#include "tests/sim/shown.h"
#include "tests/sim/store.h"
#include "tests/sim/timeline.h"

#define JOURNAL_LINES 400
#define JOURNAL_LINE_BYTES 240

struct world {
    uint64_t seed;
    uint64_t steps_max; /* with faults */
    bool verbose;
    bool recording; /* what happens is kept, to be printed */
    bool faults;    /* still going on */
    unsigned heat;  /* how often, in percent: rises while they do */
    struct rng rng;
    uint64_t now_ms;
    uint64_t steps;
    uint64_t rest_ms; /* from the end of the faults until all pods had what they asked for */
    struct timeline timeline;
    struct shim shim;
    struct store store;
    struct plugin plugins[RESOURCES_LEN];
    struct runtime runtime;
    struct lister lister;
    struct kubelet kubelet;
    struct client client;
    struct claims claims;
    struct publisher publisher;
    struct shown shown;
    struct bridge bridge;
    char broken[512]; /* the first broken invariant; "": none */
    char journal[JOURNAL_LINES][JOURNAL_LINE_BYTES];
    uint64_t journal_len; /* lines ever written */
};

/* Runs one seed to its end. False: `broken` says why. `recording` costs time: a seed that fails is
 * run again with it. */
bool world_run(struct world *w, uint64_t seed, uint64_t steps, bool recording, bool verbose);
void world_fini(struct world *w);
/* The last lines of the journal. */
void world_print_journal(const struct world *w);

/* `fire(w, a, b)` happens after `delay_ms`. */
void world_after(struct world *w, uint64_t delay_ms,
                 void (*fire)(struct world *w, uint64_t a, uint64_t b), uint64_t a, uint64_t b);
void world_note(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
