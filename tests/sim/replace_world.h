/*
 * A small world beside the large one, of devices that are lost and replaced: a plugin whose devices
 * go, are unhealthy, and come back; pods that the kubelet gives devices to, and others that ask by
 * annotation, whose containers end and are made again; a kubelet that takes lists late, writes its
 * checkpoint later, and may have an Allocate under way meanwhile; a shim that is killed between any
 * two steps, now and then without its checkpoint. Then all troubles end, and who has lost devices
 * must have others; and once all pods have ended everything is free again.
 *
 * In an eighth of these worlds the plugin may give CDI devices and nothing else, and the runtime
 * says now this and now that of what it makes of them: `replace_cdi.c`.
 *
 * `replace_world.c` is what happens, `replace_shim.c` the core with its ports and the plugin,
 * `replace_kubelet.c` what the kubelet is shown, gives away and writes down, `replace_pod.c` pods
 * and their containers, `replace_judge.c` the properties. The bridge and the feed are played by
 * their contract: a list counts as taken when the kubelet's file, written and read since it was
 * sent, has its healthy devices (devicemgr_kubelet_took()).
 */
#ifndef TESTS_SIM_REPLACE_WORLD_H
#define TESTS_SIM_REPLACE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/devicemgr.h"
#include "devicemgr/dra.h"
#include "tests/sim/count.h"
#include "tests/sim/property.h"
#include "tests/sim/rng.h"
#include "tests/sim/rows.h"

struct world;

#define RW_RESOURCE "vendor.com/gpu"
#define RW_DEVICES 6
#define RW_ALL ((1u << RW_DEVICES) - 1)
#define RW_PODS 4
#define RW_CONTAINERS 2 /* an init container, and the one that is made again and again */
#define RW_CHECKS 64
#define RW_CALLS 16
#define RW_AFTER_MS 10000
#define RW_MASK_MS 120000

/* Devices are sets, a bit for each. */

enum rw_state {
    RW_NOTHING,
    RW_ASKED,
    RW_COMES, /* the runtime makes it */
    RW_RUNS,
    RW_EXITED,
};

struct rw_container {
    enum rw_state state;
    unsigned id, attempt;
    uint64_t create; /* 0: the shim waits for no answer */
    uint64_t asked_ms, comes_ms, retry_ms;
    uint64_t ended_ms;         /* when the last one did, or it was asked for the first time */
    unsigned has;              /* by its options */
    unsigned says, says_asked; /* by its annotations */
    unsigned had;              /* what the next one is to have, unless that is lost; 0: any */
    bool unsure;               /* it may be others: what was chosen since may have been given up */
    bool known;                /* the shim must know that it has it */
    bool called;               /* since it was asked for, the plugin was asked for some devices */
    bool lost;                 /* the rows were, since the last one was made */
};

struct rw_pod {
    bool there; /* until its sandbox has ended, and the kubelet has forgotten it */
    bool over;  /* its sandbox has ended */
    unsigned uid;
    bool token, init; /* the kubelet gave it devices; it has an init container first */
    unsigned want;    /* how many */
    unsigned given;   /* by the kubelet: what its tokens say */
    bool in_flight;   /* an Allocate of the kubelet's is under way for it */
    bool in_books;    /* the kubelet has it, or the Allocate is under way */
    bool read;        /* the shim was told so, */
    uint64_t read_ms; /* since then */
    size_t at;        /* which container is to be made, or was last */
    struct rw_container containers[RW_CONTAINERS];
    uint64_t disturbed_ms[RW_DEVICES];  /* when the device was last not to be had, or another's */
    uint64_t of_another_ms[RW_DEVICES]; /* when it was last another's */
};

struct rw_entry {
    unsigned uid, given;
    bool init;
};

/* The kubelet's checkpoint. */
struct rw_file {
    unsigned healthy;
    uint64_t version; /* of the list that it had taken */
    struct rw_entry entries[RW_PODS];
    size_t len;
};

struct replace_world {
    struct world *w; /* for what is broken */
    struct rng rng;
    struct devicemgr *core;
    uint64_t now_ms, number;
    bool calm;
    unsigned last_uid, last_container;

    /* the plugin */
    bool up;
    unsigned listed, healthy;    /* what it would list */
    unsigned said, said_healthy; /* to this shim, last */
    uint64_t dialled, endpoint;  /* 0: not */
    bool has_listed;
    /* Of each device: since when the plugin, which serves, has not had it well, 0: it has; and when
     * that was last so for long enough. */
    uint64_t bad_since_ms[RW_DEVICES], lost_ms[RW_DEVICES];
    uint64_t calls[RW_CALLS];
    unsigned call_ids[RW_CALLS];

    /* the kubelet, and what it is shown */
    unsigned shown, shown_healthy, shown_held;
    uint64_t shown_version;
    unsigned kubelet_healthy;
    unsigned kubelet_owed;    /* shown as healthy for what its file said that it had given away */
    uint64_t kubelet_version; /* 0: it has started, and has taken no list yet */
    uint64_t kubelet_started_ms;
    struct rw_file file, read;

    struct rw_pod pods[RW_PODS];
    uint64_t checks[RW_CHECKS];
    unsigned check_ids[RW_CHECKS];
    bool list_wanted, listing;
    struct rw_pod snapshot[RW_PODS];
    uint64_t listed_from_ms, started_ms;
    bool unlisted;       /* rows were lost, and the runtime was not listed late enough since */
    bool runtime_listed; /* since the shim was started */
    unsigned ended;      /* what the kubelet gave to pods that ended before that, kept till then */

    struct row *rows, *pending;
    uint64_t commit;

    bool by_cdi;
    struct rng cdi_rng;
    enum devicemgr_cdi cdi; /* what the shim was told */
};

/* Runs the one of the world's seed, whose own run is over and has held. False: world's `broken`
 * says why. */
bool replace_world_run(struct world *w);

/* Printed with --verbose. */
void replace_note(const struct replace_world *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- replace_shim.c ---- */

void replace_shim_start(struct replace_world *r);
/* `lost`: its checkpoint is, too. Another starts. */
void replace_shim_kill(struct replace_world *r, bool lost);
void replace_shim_end(struct replace_world *r);
void replace_shim_run(struct replace_world *r);
void replace_shim_pass(struct replace_world *r, uint64_t ms);
void replace_shim_commit_ends(struct replace_world *r, bool fails);
bool replace_shim_has_row(const struct replace_world *r, const struct rw_pod *pod,
                          size_t container);
void replace_plugin_lists(struct replace_world *r);
/* It dies, or comes back. */
void replace_plugin_turns(struct replace_world *r);
/* What it was asked is answered, and what was dialled is there. */
void replace_plugin_proceeds(struct replace_world *r);
bool replace_plugin_serves(const struct replace_world *r);
/* "d0", ...; and those that a text names in quotes. */
const char *replace_id(size_t device);
unsigned replace_named(const char *text);

/* ---- replace_cdi.c ---- */

void replace_cdi_begins(struct replace_world *r);
/* The shim is told what it was told last. */
void replace_cdi_tells(struct replace_world *r);
/* The runtime may say something else by now. */
void replace_cdi_turns(struct replace_world *r);
/* It reads them from now on. */
void replace_cdi_settles(struct replace_world *r);
/* Of devices that are named in `value`: as CDI devices, or as a variable. */
void replace_cdi_gives(struct replace_world *r, V1beta1__ContainerAllocateResponse *options,
                       const char *value);
void replace_cdi_judges(struct replace_world *r, const struct devicemgr_verdict *verdict);

/* ---- replace_kubelet.c ---- */

/* What the shim shows now is looked at: whether that is another list. */
void replace_kubelet_looks(struct replace_world *r);
void replace_kubelet_takes_list(struct replace_world *r);
void replace_kubelet_writes(struct replace_world *r);
/* The shim reads its file. */
void replace_kubelet_is_read(struct replace_world *r);
/* Who waits for a list to be taken hears of it. */
void replace_kubelet_took(struct replace_world *r);
void replace_kubelet_admits(struct replace_world *r);
void replace_kubelet_allocated(struct replace_world *r);
void replace_kubelet_forgets(struct replace_world *r, struct rw_pod *pod);
void replace_kubelet_restarts(struct replace_world *r);

/* ---- replace_pod.c ---- */

bool replace_container_lives(const struct rw_container *container);
void replace_container_name(size_t container, char name[8]);
void replace_pod_begins(struct replace_world *r, struct rw_pod *pod);
/* Its sandbox ends, with its containers. */
void replace_pod_ends(struct replace_world *r, struct rw_pod *pod);
/* The container that is to be made next is asked for, if there is one. */
void replace_pod_asks(struct replace_world *r, struct rw_pod *pod);
void replace_pod_cancels(struct replace_world *r, struct rw_pod *pod);
void replace_pod_exits(struct replace_world *r, struct rw_pod *pod, bool told);
void replace_verdict(struct replace_world *r, uint64_t create,
                     const struct devicemgr_verdict *verdict);
uint64_t replace_pods_next_ms(const struct replace_world *r);
void replace_pods_due(struct replace_world *r);
void replace_pods_shim_ended(struct replace_world *r);
void replace_pods_shim_started(struct replace_world *r);
void replace_check(struct replace_world *r, uint64_t check, const char *container_id);
void replace_checks_answered(struct replace_world *r);
void replace_list_begins(struct replace_world *r);
void replace_list_ends(struct replace_world *r);

/* ---- replace_judge.c ---- */

unsigned replace_count(unsigned set);
void replace_judge(struct replace_world *r);
/* What is not to be had just now, or another's. */
void replace_judge_disturbed(struct replace_world *r);
/* A create has ended otherwise: the shim may have given up what the container had before. */
bool replace_judge_unsure(const struct rw_pod *pod, const struct rw_container *container);
void replace_judge_forward(struct replace_world *r, struct rw_pod *pod,
                           struct rw_container *container);
void replace_judge_refused(struct replace_world *r, const struct rw_pod *pod,
                           const struct rw_container *container, const char *message);
/* A kubelet that has started takes its first list. */
void replace_judge_first_list(struct replace_world *r);
/* All troubles have ended some time ago. */
void replace_judge_end(struct replace_world *r);
/* And so have all pods. */
void replace_judge_empty(struct replace_world *r);

#endif
