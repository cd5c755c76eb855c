/*
 * The shim of the simulated node: the real core, its ports, the runtime's list; killed at any port
 * call or between events, and started again from the durable rows.
 */
#ifndef TESTS_SIM_SHIM_H
#define TESTS_SIM_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/devicemgr.h"
#include "tests/sim/plugin.h"
#include "tests/sim/rng.h"
#include "tests/sim/runtime.h"

struct world;

/* What one event may make the core ask of its ports, logs not counted. */
#define PORT_CALLS_MAX 256

struct shim {
    struct devicemgr *core; /* NULL: dead */
    struct devicemgr_settings settings;
    struct devicemgr_resource_settings resources[RESOURCES_LEN]; /* overrides */
    uint64_t calls_ms_max;                                       /* shim_calls_ms_max() */
    uint64_t refreshed_ms; /* when the settings last changed how options are refreshed; 0: never */
    bool run_later;        /* events were told since the core last ran */
    bool late;     /* this run is for several events: what it ends may have ended by itself */
    uint64_t runs; /* of all lives, this one too */
    char boot_id[24];
    unsigned boot;
    uint64_t boot_ms; /* when the core's clock was 0 */
    uint64_t incarnation;
    bool running;        /* inside devicemgr_run() */
    bool dying;          /* killed inside it */
    unsigned crash_in;   /* port calls until it is killed; 0: it is not */
    unsigned port_calls; /* of this run */
    struct plugin_net net;
    uint64_t started_ms;      /* of the world */
    uint64_t told_ms;         /* when it was last told something with its time */
    uint64_t kubelet_ms;      /* when a kubelet had listed, in this life; 0: not yet */
    uint64_t listed_ms;       /* when the runtime was listed first, in this life; 0: not yet */
    bool resumes;             /* dead: the next one goes on with its connections */
    bool earlier;             /* creates of an earlier life are under way */
    uint64_t earlier_ms;      /* when the last of them was over; 0: there was none */
    bool rows_lost;           /* rows were missing when it started */
    bool draining;            /* it was told to end */
    bool builtin_told;        /* the built-in devices were listed */
    bool damaged;             /* rows went missing, and what was rebuilt is not durable yet */
    bool relisted;            /* the runtime was listed since */
    uint64_t relisted_commit; /* the commit under way then, which does not have it; 0: none */
};

void shim_init(struct world *w);
void shim_fini(struct world *w);
/* The time on the core's clock, for what it is told now. */
uint64_t shim_now_ms(struct world *w);
/* Whether this is still the life in which something was begun. */
bool shim_lives(const struct world *w, uint64_t incarnation);
/* Lets the core act on what it was told, soon or at once, and checks what it did. Call the first
 * after every event. */
void shim_run(struct world *w);
void shim_run_now(struct world *w);
/* How options of a resource are refreshed, and whether its devices are exclusive. */
enum devicemgr_refresh shim_refresh(const struct world *w, size_t resource);
bool shim_exclusive(const struct world *w, size_t resource);
uint64_t shim_hold_ms(const struct world *w, size_t resource);
uint64_t shim_grace_ms(const struct world *w, size_t resource);
/* So many on one plugin, of every resource; 0: any number. */
size_t shim_allocates_at_once(const struct world *w);
/* Longest that an Allocate and a PreStartContainer may take, by any settings so far. */
uint64_t shim_calls_ms_max(const struct world *w);
/* Other settings from now on: a reload. */
void shim_set_settings(struct world *w, struct rng *rng);
/* No create of an earlier life is under way any more. */
void shim_earlier_over(struct world *w);
/* Until then one may have an effect; UINT64_MAX: some are under way. */
uint64_t shim_earlier_until_ms(const struct world *w);
/* The core's time has come. */
void shim_tick(struct world *w);
/* When that is, on the world's clock; UINT64_MAX: never. */
uint64_t shim_next_ms(const struct world *w);

void shim_kill(struct world *w, bool reboot);
/* It is told to end, and does so some seconds later. */
void shim_drain(struct world *w);
/* The runtime can be asked again. */
void shim_builtin(struct world *w);
/* Events about things that never were, or are over. */
void shim_confuse(struct world *w);

#endif
