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
#include "tests/sim/decision.h"
#include "tests/sim/dra.h"
#include "tests/sim/kubelet.h"
#include "tests/sim/lister.h"
#include "tests/sim/operator.h"
#include "tests/sim/plugin.h"
#include "tests/sim/publisher.h"
#include "tests/sim/releaser.h"
#include "tests/sim/rng.h"
#include "tests/sim/runtime.h"
#include "tests/sim/shim.h"
#include "tests/sim/shown.h"
#include "tests/sim/store.h"
#include "tests/sim/timeline.h"

#define JOURNAL_LINES 400
#define JOURNAL_LINE_BYTES 240

/* What is to be played. */
struct play {
    uint64_t seed;
    uint64_t faults_ms; /* then the faults stop */
    bool recording;     /* what happens is kept, to be printed; costs time */
    bool verbose;       /* it is printed at once */
    bool unasked;       /* nobody asks why */
    bool settled;       /* the settings stay as they were */
    bool unsteered;     /* there is no operator */
    bool decisions;     /* those on creates are kept; the shim is killed between its runs only, as
                         * what was done of one when it was killed depends on the order in it */
};

#define DRAWN_MAX 256

/* Streams that were made at this time. */
struct drawn {
    uint64_t ms;
    size_t len;
    uint64_t more; /* for which there was no room */
    uint64_t keys[DRAWN_MAX];
};

struct world {
    struct play play;
    struct drawn drawn;
    bool faults;   /* still going on */
    unsigned heat; /* how often, in percent: rises while they do */
    uint64_t now_ms;
    uint64_t steps;
    struct decisions decisions;
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
    struct operator_sim operator;
    struct releaser releaser;
    struct dra dra;
    char broken[512]; /* the first broken invariant; "": none */
    char journal[JOURNAL_LINES][JOURNAL_LINE_BYTES];
    uint64_t journal_len; /* lines ever written */
};

/* Runs one seed to its end. False: `broken` says why. */
bool world_run(struct world *w, const struct play *play);
void world_fini(struct world *w);
/* The last lines of the journal. */
void world_print_journal(const struct world *w);

/* A stream for what happens now: `what` it is, and about whom. Those are the world's own numbers,
 * or devices; never what the core or the order of its actions chose. Another one when the same
 * happens at the same time again. */
struct rng world_draw(struct world *w, enum draw what, uint64_t a, uint64_t b);
/* `fire(w, a, b)` happens after `delay_ms`. Of those at one time the order comes from the
 * stream. */
void world_after(struct world *w, const struct rng *about, uint64_t delay_ms,
                 void (*fire)(struct world *w, uint64_t a, uint64_t b), uint64_t a, uint64_t b);
void world_note(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
