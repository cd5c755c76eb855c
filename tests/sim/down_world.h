/*
 * A world beside the large one, of a machine that goes down, or does not after all: pods of
 * different priorities, with devices and without; who tells of it, once more, too late, or not with
 * all that there is to know; an operator who ends the same pods; a kubelet that makes pods anew in
 * the middle, or ends them itself; devices that are tainted, whose pods are evicted; a runtime that
 * does not answer; a store that is slow or fails; a shim that is killed at any time, and a machine
 * that boots again.
 *
 * Its judge has the whole course of a shutdown in words of its own (`down_plan.c`), and looks at
 * each step of the core for whether the world allows it by now, and once it must be taken, that it
 * is: so it says "now", and seldom "perhaps" (a sandbox that is not ready may be over to the shim,
 * or not).
 *
 * Two stretches: all of that happens; then no troubles happen any more, the shutdown comes to its
 * end, is cancelled, given up, or the machine boots; and every pod gets what it asked for.
 *
 * `down_world.c` is what happens, `down_shim.c` the core with its ports, `down_rows.c` what the
 * rows say, `down_pod.c` the kubelet, `down_taint.c` taints and evictions, `down_runtime.c` the
 * runtime, `down_told.c` who tells, and the operator, `down_plan.c` how far a shutdown has come,
 * `down_time.c` whether an end comes in time for it, `down_judge.c` the other properties.
 */
#ifndef TESTS_SIM_DOWN_WORLD_H
#define TESTS_SIM_DOWN_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/devicemgr.h"
#include "tests/sim/property.h"
#include "tests/sim/rng.h"
#include "tests/sim/rows.h"
#include "tests/sim/world.h"

#define DW_NEVER UINT64_MAX
#define DW_PODS 6
#define DW_GROUPS 4
#define DW_STOPS 64
#define DW_RESOURCE "a.com/gpu"

static inline uint64_t earlier_ms(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

enum dw_asker { DW_OPERATOR, DW_SHUTDOWN, DW_EVICTION, DW_ASKERS };

/* How far it is with what one of them asks for. */
enum dw_ask {
    DW_NOT_ASKED,
    DW_ASKED,
    DW_CARRIED, /* by the commit under way */
    DW_DUE,     /* that one is over, however it went */
};

struct dw_pod {
    bool there;
    unsigned uid;
    bool device;
    bool is_static;
    bool mirrored; /* the cluster knows it */
    int32_t priority;
    uint64_t grace_ms;
    bool deleting;
    /* its sandbox */
    unsigned sandbox; /* 0: none */
    unsigned attempt;
    unsigned failed; /* the one whose stop has failed: it may be stopping still */
    unsigned coming; /* the next one is being run, and the shim has not heard of it yet; 0: none */
    bool ready;
    bool known; /* the core has heard of it, in this life */
    /* its container, and the one that is to be made */
    unsigned container; /* 0: none */
    unsigned earlier;   /* the one before that */
    bool runs;
    bool seen;       /* the core has heard that it runs, in this life */
    uint64_t create; /* 0: none is under way */
    bool forwarded;
    bool decided;      /* it was for the core to say so */
    uint64_t retry_ms; /* none is asked for before */
    /* its end */
    enum dw_ask asks[DW_ASKERS];
    uint64_t end_grace_ms;      /* the shortest that the operator has asked for */
    uint64_t asked_ms;          /* when the shutdown asked first */
    bool loose;                 /* its eviction may be called off: its sandbox was stopped since */
    bool unconfirmed;           /* an earlier shim asked, for a taint: nothing may be sent yet */
    bool perhaps;               /* the shutdown may have asked, or the one before it */
    bool vague;                 /* it may have asked before, or not again, for all that is known */
    bool was_down;              /* nothing of it ran, at least once since somebody asked first */
    uint64_t least_ms, most_ms; /* what the shutdown leaves it, when it asks */
    bool sent;                  /* a stop was, in this life or an earlier one */
    uint64_t due_ms;            /* when that kills; 0: not known, or nothing was sent */
    uint64_t epoch;             /* a list after this one shows what is left of it */
    bool shown;                 /* one has */
    bool must_go_on;            /* its stop was sent, and it has not ended since; in this life */
    unsigned goes_on;           /* a container whose stop outlives the shutdown */
    bool goes_on_making, may_refuse; /* likewise: what was in the making, what follows it */
};

struct dw_stop {
    uint64_t op; /* 0: free, or over */
    unsigned uid, container;
    uint64_t kills_ms;
};

struct dw_box_stop {
    uint64_t op; /* 0: free, or over */
    unsigned sandbox;
};

/* What an operator asks for is not answered. */
struct dw_taint {
    uint64_t number; /* 0: nothing */
    size_t place;    /* whose device */
    bool on;
};

/* ---- how far the shutdown has come ---- */

enum dw_state { DW_NONE, DW_BEGUN, DW_IN_GROUPS, DW_BY_KUBELET, DW_OVER };

/* Of the pod in that place. */
struct dw_part {
    unsigned uid; /* 0: it is none of them */
    bool sure;    /* else perhaps */
    size_t group;
    bool is_to_be_asked; /* once its group's turn comes */
    bool vague;          /* since when it is, is not known */
    bool left;           /* it had no sandbox, at least once since then */
    bool came;           /* it was not sure, and has something that may run since */
};

struct dw_group {
    int32_t priority;
    uint64_t least_ms, most_ms; /* they differ where it is not sure which groups have pods */
};

struct dw_plan {
    enum dw_state state;
    uint64_t since_ms, limit_ms;
    bool by_kubelet, by_priority;
    struct dw_group groups[DW_GROUPS];
    size_t groups_len, group;
    uint64_t group_ms; /* when that one began */
    uint64_t over_ms;
    struct dw_part parts[DW_PODS];
};

/* What was said of the cluster's pods last, to this shim. */
struct dw_known {
    bool is;
    unsigned uids[DW_PODS];
    int32_t priorities[DW_PODS];
};

struct down_world {
    struct world *w; /* for what is broken */
    struct rng rng;
    struct devicemgr *core;
    uint64_t now_ms; /* since the boot */
    bool calm;       /* no troubles any more */
    bool healing;    /* nor any taints */
    unsigned boot;
    uint64_t number; /* the last of any kind that this world has given */
    unsigned last_uid, last_sandbox, last_container;

    struct devicemgr_shutdown_group groups[DW_GROUPS]; /* of the settings */
    size_t groups_len;
    bool off; /* they have none for now */

    struct dw_pod pods[DW_PODS], snapshot[DW_PODS];
    struct dw_stop stops[DW_STOPS];
    struct dw_box_stop boxes[DW_STOPS];
    bool runtime_away, listing, list_wanted;
    bool listed;        /* the core has taken a list, in this life */
    uint64_t epoch;     /* lists that were begun, in this life */
    bool plain_stopped; /* a pod without devices was, by the list that is being taken */
    bool taking_list;

    uint64_t commit; /* under way; 0: none */
    bool store_fails;
    struct row *rows, *pending;

    bool goes_down; /* truly */
    uint64_t since_ms, limit_ms;
    bool kubelet_ends;        /* a kubelet that ends its pods itself */
    uint64_t kubelet_gone_ms; /* when it dies in the middle of that; DW_NEVER: it does not */
    bool kubelet_before;      /* the core was told so when nothing was under way */
    uint64_t told_gone_ms; /* since when the core is told that none is there; DW_NEVER: it is not */
    struct dw_known known;
    uint64_t given_up_ms;
    struct dw_plan plan;
    bool draining;         /* the shim was told to end */
    bool tainted[DW_PODS]; /* that pod's device, whoever has the place */
    struct dw_taint taint;
    bool operator_refused; /* what he asked for last was */
};

/* Runs the one of the world's seed, whose other runs are over and have held. False: world's
 * `broken` says why. */
bool down_world_run(struct world *w);

/* With the time of this world, where every event is to be printed. */
void down_note(const struct down_world *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- down_shim.c ---- */

void down_shim_start(struct down_world *d);
void down_shim_kill(struct down_world *d);
/* It is told to end, and goes on until it is killed. */
void down_shim_drains(struct down_world *d);
void down_shim_end(struct down_world *d);
/* Its settings have groups, or none, from now on. */
void down_shim_reload(struct down_world *d);
/* devicemgr_run(), and what then must be. */
void down_shim_run(struct down_world *d);
void down_shim_commit_ends(struct down_world *d, bool fails);
/* Until then; what is due meanwhile happens at its time. */
void down_shim_pass(struct down_world *d, uint64_t ms);

/* Of 16 bytes. */
void down_boot_id(const struct down_world *d, char *out);

/* ---- down_rows.c ---- */

/* The commit under way has these. */
void down_rows_carried(struct down_world *d, const struct devicemgr_record *records, size_t len);
/* What is stored is what there is: of the shutdown, and of who asks for ends. */
void down_rows_restored(struct down_world *d);
/* If nothing is to be stored, all that there is to know is. */
void down_rows_judge(struct down_world *d);

/* ---- down_pod.c ---- */

/* What a pod is called, and what is written on it and on its container. */
struct dw_texts {
    char uid[16], sandbox[16], container[16], grace[24];
    struct devicemgr_annotation source, own[2];
    size_t own_len;
    char *token_key, *token;
};
/* Of the pod in this place; its annotations point into it. */
void down_texts_init(struct dw_texts *texts, const struct dw_pod *pod, size_t place);
void down_texts_fini(struct dw_texts *texts);

struct dw_pod *down_pod_of(struct down_world *d, const char *uid);
struct dw_pod *down_pod_by_create(struct down_world *d, uint64_t create);
struct dw_pod *down_pod_by_container(struct down_world *d, unsigned container);
/* Its container is that one, or was. */
struct dw_pod *down_pod_that_had(struct down_world *d, unsigned container);
/* The kubelet does the next thing for it. */
void down_pod_proceeds(struct down_world *d, struct dw_pod *pod);
void down_pod_trouble(struct down_world *d, struct dw_pod *pod);
/* It ends a pod's sandbox, as its own shutdown does. */
void down_pod_stops(struct down_world *d, struct dw_pod *pod);
void down_pods_shim_ended(struct down_world *d);
/* The machine has booted: nothing runs, and what there was the runtime knows, or not. */
void down_pods_booted(struct down_world *d, bool forgotten);

/* ---- down_runtime.c ---- */

/* `told`: by an event; else a list is to find it out. */
void down_container_exits(struct down_world *d, struct dw_pod *pod, bool told);
void down_stops_due(struct down_world *d);
/* Sandboxes that are to be stopped are, or that fails. */
void down_boxes_stop(struct down_world *d);
void down_stop_fails(struct down_world *d, struct dw_stop *stop);
void down_list_begins(struct down_world *d);
void down_list_ends(struct down_world *d);

/* ---- down_told.c ---- */

/* The machine is to go down, or does not any more; the shim hears of it by down_told(). */
void down_begins(struct down_world *d);
void down_cancelled(struct down_world *d);
/* How it is. `known`: with the cluster's pods; `whole`: with all else that there is to know. */
void down_told(struct down_world *d, bool known, bool whole);
void down_operator_acts(struct down_world *d, struct dw_pod *pod);
void down_operator_takes_back(struct down_world *d, struct dw_pod *pod);

/* ---- down_taint.c ---- */

void down_taint_acts(struct down_world *d);
/* Takes one more back. */
void down_taint_heals(struct down_world *d);
void down_taint_answered(struct down_world *d, uint64_t number, bool done);
/* By the rows. */
void down_taint_restored(struct down_world *d);
/* The core's word: it is to go for a taint, or not any more. */
void down_taint_asked(struct down_world *d, struct dw_pod *pod);
void down_taint_spared(struct down_world *d, struct dw_pod *pod);
/* A list was taken, and looked at. */
void down_taint_listed(struct down_world *d);
void down_taint_judge(struct down_world *d);

/* ---- down_plan.c ---- */

/* What the core was told. */
void down_plan_begin(struct down_world *d, uint64_t since_ms, uint64_t limit_ms, bool by_kubelet);
void down_plan_end(struct down_world *d);
/* Follows the core as far as the world allows it. */
void down_plan_observe(struct down_world *d);
/* Nothing is left to be done by now. */
void down_plan_judge(struct down_world *d);
/* The shim has started: it is as far as was stored. */
void down_plan_restored(struct down_world *d);
/* Whether the pod is of a group whose turn has come, or perhaps. */
bool down_plan_ends(const struct down_world *d, const struct dw_pod *pod);

/* Any container that it had is. */
bool down_is_being_stopped(const struct down_world *d, const struct dw_pod *pod);

/* ---- down_time.c ---- */

/* Of one that a shutdown has asked for: its end comes by then, or in the least time that there
 * is. */
bool down_surely_comes_in_time(const struct down_world *d, const struct dw_pod *pod,
                               uint64_t end_ms);
bool down_may_come_in_time(const struct down_world *d, const struct dw_pod *pod, uint64_t end_ms);

/* ---- down_judge.c ---- */

/* `asker` asks for its end, for the first time or again: who was carried by the commit under way
 * waits for the next one with it, unless something is done already. */
void down_ask(struct dw_pod *pod, enum dw_asker asker);
bool down_is_wanted(const struct down_world *d, const struct dw_pod *pod);
const struct dw_stop *down_stop_of(const struct down_world *d, unsigned container);
void down_judge_stop(struct down_world *d, struct dw_pod *pod, uint64_t grace_ms);
void down_judge_box_stop(struct down_world *d, unsigned sandbox);
void down_judge_stop_cancelled(struct down_world *d, unsigned container);
void down_judge_refused(struct down_world *d, const struct dw_pod *pod, int code,
                        const char *message);
/* A container goes on, or a sandbox. */
void down_judge_made(struct down_world *d, struct dw_pod *pod);
void down_judge_sandbox_refused(struct down_world *d, const struct dw_pod *pod, int code);
/* A list was taken. */
void down_judge_listed(struct down_world *d);
/* After each run. */
void down_judge(struct down_world *d);
/* Nothing has happened for long: every pod that is not to end runs. */
void down_judge_rest(struct down_world *d);

#endif
