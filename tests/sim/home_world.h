/*
 * A world beside some of the large ones, of claims whose drivers have two homes: they register with
 * the shim, with the kubelet itself, or with both at once while they are moved over, and back. The
 * kubelet asks at either place, and has books of its own; pods share claims, and are deleted by
 * force, after which the cluster gives their devices to others while their containers run; drivers
 * die over calls that they may have done, or answer too late, in a third of the worlds very often;
 * the agent is away; a store fails, CDI's files are lost, and a shim is killed at any time.
 *
 * It is one of its own since the large world's drivers know one home only, so that what they have
 * is what the shim has made of it. Here the kubelet changes it beside the shim.
 *
 * Three stretches: all of that happens; then no troubles happen any more, each driver is at one
 * home, and every pod must run; then all pods are deleted, and nothing may be left anywhere.
 *
 * `home_world.c` is what happens, `home_shim.c` the core with its ports, `home_driver.c` what
 * drivers have, `home_place.c` where they are, `home_kubelet.c` the kubelet's calls, by both
 * ways, `home_pod.c` its pods, and the runtime, `home_cluster.c` devices of claims, and the
 * agent, `home_use.c` who has a device, as the shim must and may know it, `home_anew.c` what was
 * unprepared under them, `home_batch.c` what is asked for in one request, `home_names.c` what the
 * kubelet names, `home_parts.c` devices that are parts of one, `home_judge.c` the properties.
 */
#ifndef TESTS_SIM_HOME_WORLD_H
#define TESTS_SIM_HOME_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/devicemgr.h"
#include "devicemgr/dra.h"
#include "tests/sim/property.h"
#include "tests/sim/rng.h"
#include "tests/sim/rows.h"
#include "tests/sim/world.h"

#define HW_DRIVERS 2
/* Of each driver, in three pools: two of this node's own, one that other nodes share. */
#define HW_POOLS 3
#define HW_POOL_DEVICES 2
#define HW_DEVICES (HW_POOLS * HW_POOL_DEVICES)
#define HW_CLAIMS 96 /* that there ever are */
#define HW_PODS 8
#define HW_POD_CLAIMS 2
#define HW_NAMES (HW_POD_CLAIMS * (HW_DEVICES + 1)) /* of one create */
#define HW_USES 128
/* Of some drivers the first ones are parts of one thing, and in one pool: so many, of so many kinds
 * of what that is made of. */
#define HW_PARTS 4
#define HW_PART_KINDS 4
#define HW_OPS 32

/* What is to be found in the kubelet's books before a call is sent, which is not then. */
enum hw_looks {
    HW_SENT, /* nothing any more */
    HW_LOOKS,
    HW_LOOKS_FOR_AN_ANSWER, /* the kubelet asks for the claim, and has it there for that */
};

/* A call of the shim's that a driver has. */
struct hw_op {
    uint64_t call; /* 0: free slot */
    uint64_t instance;
    size_t claim;
    bool prepare;
    uint64_t batch; /* of those of which the driver hears in one call; 0: it is by itself */
    enum hw_looks looks;
    bool seen;    /* it was known then that its driver is with the kubelet, too */
    bool used;    /* a container might run with this very claim then */
    bool decided; /* it is done, or failed */
    bool failed;
    bool late; /* its answer comes too late, or never */
};

struct hw_driver {
    bool stays;    /* it does not move while there are troubles */
    uint64_t here; /* its registration with the shim; 0: none */
    bool connected;
    bool with_kubelet;    /* it has registered with the kubelet itself */
    uint64_t told;        /* as which the shim has taken that; 0: it has not */
    bool told_connected;  /* likewise */
    bool moved;           /* the shim has taken that since it was connected there last */
    bool carried, stored; /* the commit under way has that; the store has */
    bool seen; /* it was told that this one is with the kubelet, at some time; as above: */
    bool seen_carried, seen_stored;
    bool bridged;        /* the kubelet is shown the shim as this driver */
    bool same_names;     /* its CDI names are the device's, whatever claim it is given by */
    bool shares_said;    /* its answers say which devices are shared */
    unsigned freed;      /* which of its devices the cluster has taken back by force last */
    uint64_t trouble_ms; /* when it came or went last, anywhere */
    unsigned fails_percent;
    bool parted;     /* some of its devices are made of the same: */
    bool told_apart; /* what there is of it stands in another slice than the devices */
    unsigned there[HW_PART_KINDS], takes[HW_PARTS][HW_PART_KINDS];
};

enum hw_life {
    HW_NONE,
    HW_WANTED,  /* by some pods */
    HW_LEAVING, /* the last of them is deleted, and its containers have ended */
    HW_GONE,
};

struct hw_claim {
    enum hw_life life;
    size_t driver;
    /* the cluster */
    bool allocated;
    unsigned device;
    bool admin, shared; /* likewise */
    bool looked_for;    /* the shim waits to be told */
    bool told;          /* it was, since it was asked for last, or since its start: */
    bool told_admin, told_shared;
    unsigned told_device;
    bool alone; /* it has its device alone, as the shim was told when it was allocated, since it was
                   asked for last with nobody running with it, or has stored */
    bool told_alone; /* at some time, neither shared nor to look at: the shim may know it since */
    /* the kubelet */
    bool in_books;   /* from before a driver is asked, until it has unprepared it */
    bool prepared;   /* as it remembers, but for its restarts */
    bool has;        /* it was told devices, */
    unsigned given;  /* this one, */
    unsigned books;  /* and before, those too, as a mask: it names them all */
    unsigned ours;   /* of them: the shim knows of its own answers */
    bool by_shim;    /* and by the shim, whose driver was not seen with the kubelet since */
    bool let_go;     /* it has asked to unprepare it though some pod's container runs, or comes */
    bool used_since; /* its driver has unprepared it as a container came: that has it anew */
    bool unsure;     /* it was to unprepare it, or to prepare it anew, and has not said that it has:
                        who comes then, too */
    uint64_t asked;  /* of the shim: 0, nothing */
    bool asks_prepare;
    uint64_t asked_ms;
    uint64_t batch;  /* with what it was asked for, last; */
    bool called;     /* and is with the driver since */
    bool follows;    /* another of that is, and it is not, nor is that being stored: */
    uint64_t behind; /* by another commit than this one it is to be */
    /* what the driver truly has */
    bool taken;
    unsigned taken_device;
    uint64_t taken_ms;
    bool given_up;   /* it has unprepared it, as the shim asked it to, and not prepared it since: */
    bool due_anew;   /* it is to, as a container comes for it, or runs with it; */
    bool tried_anew; /* but was asked to since it is there, and has not */
    bool file_lost;  /* by which the runtime knows its device, as by a reboot */
    bool by_kubelet; /* by a call of the kubelet's own */
    bool answered;   /* it has told the shim of the device that it has */
    bool said;       /* the shim has an answer of it: */
    unsigned said_device;
    bool said_shared;   /* others may have that as well, by that answer */
    bool owed;          /* the kubelet was told by the shim that it has not */
    bool given_back;    /* it has told the shim that it has not, by whose row it is owed yet */
    unsigned lost;      /* calls for it that ended with the driver, since that has answered one */
    bool tried;         /* since the driver is there: it was told so, and failed */
    bool in_use;        /* likewise: or was not, since the kubelet had it in its books, */
    uint64_t read;      /* which were read after what was asked for with a smaller number */
    uint64_t failed_ms; /* when it last failed at anything */
    bool astray; /* the kubelet has unprepared it by itself while nothing says for certain that its
                    driver has moved: nobody can know that here */
    unsigned warned; /* how often the shim has said that another has its device, since its answer */
};

enum hw_state { HW_NOTHING, HW_COMES, HW_RUNS, HW_EXITED };

struct hw_pod {
    bool there;
    unsigned uid;
    size_t claims[HW_POD_CLAIMS];
    size_t claims_len;
    bool deleting;
    unsigned sandbox; /* 0: none */
    unsigned attempt;
    bool ready;
    enum hw_state state; /* of its container */
    uint64_t comes_ms;
    uint64_t create; /* which the shim holds; 0: none */
    bool stores;     /* until it is stored who has its claims then */
    /* Devices of each claim, as masks: which it names, and which of them it is not to have, as
     * the claim had them before. */
    unsigned named[HW_POD_CLAIMS], before[HW_POD_CLAIMS];
    unsigned given[HW_POD_CLAIMS]; /* what the kubelet was told last then */
    uint64_t passed;               /* which the runtime has yet to answer; likewise */
    uint64_t retry_ms;
};

/* A container that was asked for with claims, in a sandbox: as long as the shim may count it. */
struct hw_use {
    unsigned sandbox; /* 0: free slot */
    bool over;        /* the shim knows that it has ended, in this life */
    unsigned uid;
    uint64_t asked_ms;
    size_t claims[HW_POD_CLAIMS];
    unsigned device[HW_POD_CLAIMS];
    unsigned named[HW_POD_CLAIMS]; /* those that it was asked for with, as they go on, as masks */
    bool known[HW_POD_CLAIMS];     /* the shim must know */
    bool passed; /* the runtime was asked for it, which it was not before that was stored */
    size_t claims_len;
};

struct home_world {
    struct world *w; /* for what is broken */
    struct rng rng;
    struct devicemgr *core;
    uint64_t now_ms, started_ms;
    bool calm; /* no troubles any more */
    bool over; /* nor any pods */
    uint64_t number;
    unsigned last_uid, last_sandbox;

    struct hw_driver drivers[HW_DRIVERS];
    struct hw_claim claims[HW_CLAIMS];
    size_t claims_len;
    struct hw_pod pods[HW_PODS], snapshot[HW_PODS];
    struct hw_use uses[HW_USES];
    struct hw_op ops[HW_OPS];
    bool listing, list_wanted;
    uint64_t list_due_ms;    /* one is wanted by then; 0: need not be */
    uint64_t listed_from_ms; /* when the list under way was asked for */

    bool slow;                 /* the runtime takes its time in this world */
    uint64_t earlier_until_ms; /* what an earlier shim has sent to it may be on its way until a list
                                  that is asked for then: UINT64_MAX, as long as something is */
    bool lossy;  /* many answers are lost in this world, the agent is away for long, and claims are
                   allocated anew more often */
    bool joined; /* pods come in this world for claims that are being unprepared */
    bool loses_files;        /* and CDI's files are lost: the runtime makes no container without */
    bool watched, agent;     /* there is one in this world; it is connected */
    bool sliced[HW_DRIVERS]; /* the node's own pool of it has a slice that the shim was told of */
    uint64_t commit;         /* under way; 0: none */
    bool store_fails;        /* the last one failed */
    uint64_t failed_ms, stored_ms; /* when one did; when one ended last */
    struct row *rows, *pending;
};

/* Runs the one of the world's seed, whose own run is over and has held. False: world's `broken`
 * says why. */
bool home_world_run(struct world *w);

/* With the time of this world, where every event is to be printed. */
void home_note(const struct home_world *h, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- home_shim.c ---- */

void home_shim_start(struct home_world *h);
void home_shim_kill(struct home_world *h);
void home_shim_end(struct home_world *h);
/* devicemgr_run(), and what then must be. */
void home_shim_run(struct home_world *h);
void home_shim_commit_ends(struct home_world *h, bool fails);
/* Until then; what is due meanwhile happens at its time. */
void home_shim_pass(struct home_world *h, uint64_t ms);
/* Nothing waits for the store, which has all that there is. */
bool home_shim_is_stored(const struct home_world *h);

/* What the store has of a claim. */
struct hw_row {
    bool there;
    char state[16];
    bool has_device; /* the driver's last answer is in it: */
    unsigned device;
    bool shared;     /* likewise */
    bool sent;       /* a prepare of it was, or may have been */
    bool unanswered; /* likewise since that answer */
    bool alone;
};
struct hw_row home_shim_row(const struct home_world *h, size_t claim);
/* Whether the commit under way has that a prepare of it is sent, or answered. */
bool home_shim_stores(const struct home_world *h, size_t claim);
/* Whether the claim is the shim's to prepare anew: else it is the kubelet's, or was unprepared. It
 * knows no names of one that its driver has not answered it. */
bool home_shim_prepares(const struct home_world *h, size_t claim);
/* Whether it says that a container in the sandbox has it. */
bool home_shim_row_has(const struct home_world *h, size_t claim, unsigned sandbox);
/* Whether the driver's says that it has moved. */
bool home_shim_row_moved(const struct home_world *h, size_t driver);

/* ---- home_driver.c ---- */

const char *home_driver_name(size_t driver);
bool home_driver_can_be_called(const struct hw_driver *d);
const char *home_pool_name(const struct hw_driver *d, unsigned device);
bool home_device_is_local(unsigned device);
/* By which the runtime knows the claim's device. */
void home_cdi_name(const struct home_world *h, size_t claim, unsigned device, char name[48]);
/* What the bytes of an answer say. False: it is no such answer. */
bool home_answer_read(const void *bytes, size_t len, unsigned *device, bool *shared);
/* The next step of a call that it has. */
void home_op_proceeds(struct home_world *h, struct hw_op *op);
/* The calls on this instance (0: all) end without an answer; they may be done. */
void home_ops_end(struct home_world *h, uint64_t instance);
/* `is` says what is called for, and where. */
void home_driver_called(struct home_world *h, const struct hw_op *is);
/* The kubelet itself has it prepare the claim, or unprepare it. Whether it says that it has. */
bool home_driver_does(struct home_world *h, size_t claim, bool prepare);

/* ---- home_place.c ---- */

/* It comes, goes, or registers elsewhere. */
void home_driver_acts(struct home_world *h, size_t driver);
/* As the shim knows, or has stored: its claims are the kubelet's. */
void home_driver_has_moved(struct home_world *h, size_t driver);
/* The shim finds out who is with the kubelet, if it wants to know. */
void home_drivers_are_sought(struct home_world *h);
/* What the kubelet is shown is as it should be. */
void home_driver_is_bridged(struct home_world *h, size_t driver);
/* Its connection of this instance is over. */
void home_driver_dies(struct home_world *h, uint64_t instance);
/* It is at one home from now on. */
void home_driver_heals(struct home_world *h, size_t driver, bool with_kubelet);
void home_drivers_shim_ended(struct home_world *h);

/* ---- home_kubelet.c ---- */

/* "c7": 7. */
size_t home_claim_find(const char *uid);
/* Asks whoever serves their drivers for what is not done yet of these claims: those of one driver
 * in one request. */
void home_ask(struct home_world *h, const size_t *claims, size_t claims_len, bool prepare);
void home_give_up(struct home_world *h, size_t claim);
/* Those that it waits for no longer. */
void home_asked_expire(struct home_world *h);
void home_kubelet_restarts(struct home_world *h);
void home_claim_done(struct home_world *h, uint64_t number,
                     const struct devicemgr_claim_done *done);

/* ---- home_pod.c ---- */

void home_pod_comes(struct home_world *h);
/* The kubelet does the next thing for it. */
void home_pod_proceeds(struct home_world *h, struct hw_pod *pod);
/* Those that have the claim may have a container asked for before its driver goes on. */
void home_pods_come_first(struct home_world *h, size_t claim);
void home_pod_trouble(struct home_world *h, struct hw_pod *pod);
void home_pod_deleted(struct home_world *h, struct hw_pod *pod, bool forced);
/* Containers that are made by now; and when the next one is. */
void home_pods_due(struct home_world *h);
uint64_t home_pods_next_ms(const struct home_world *h);
void home_pod_refused(struct home_world *h, uint64_t create, int code, const char *message);
void home_pod_passes(struct home_world *h, uint64_t create,
                     const struct devicemgr_verdict *verdict);
void home_pods_shim_started(struct home_world *h);
void home_list_begins(struct home_world *h);
void home_list_ends(struct home_world *h);

/* ---- home_cluster.c ---- */

/* A new one, which may be only to look at its device, or to share it. */
void home_claim_begins(struct home_world *h, size_t claim);
/* A device for the claim. False: there is none. */
bool home_allocate(struct home_world *h, size_t claim);
void home_cluster_shim_started(struct home_world *h);
/* The agent comes, goes, or tells what it was asked for. */
void home_agent_acts(struct home_world *h);
/* It is there, if ever, and tells all. */
void home_agent_heals(struct home_world *h);

/* ---- home_use.c ---- */

/* A container of the pod is asked for. */
void home_use_note(struct home_world *h, const struct hw_pod *pod);
/* The runtime has made it, and the shim is told. */
void home_use_made(struct home_world *h, const struct hw_pod *pod);
/* All in it have ended, and the shim is told. */
void home_uses_ended(struct home_world *h, unsigned sandbox);
/* The runtime is asked for it. Whether it is stored that it has all claims of which that is known,
 * so that no restart forgets it. */
bool home_use_passes(struct home_world *h, const struct hw_pod *pod);
/* A list was taken. */
void home_uses_listed(struct home_world *h);
/* What no row says is not known any more. */
void home_uses_shim_started(struct home_world *h);
/* All that is known is what is stored: the shim has started, or could not store more. What it was
 * about to unprepare it may have, and not have prepared anew. */
void home_uses_by_rows(struct home_world *h);
/* Whether a container may use the claim, as far as the shim may know; or one runs that must be
 * known to. */
bool home_may_be_used(const struct home_world *h, size_t claim);
bool home_is_used(const struct home_world *h, size_t claim);
/* Likewise, or was asked for and may come yet. */
bool home_is_known(const struct home_world *h, size_t claim);
/* Whether one may be there that was asked for with this very claim. */
bool home_is_asked_with(const struct home_world *h, size_t claim);
/* What a pod that is to have a container is in the way of. */
enum hw_held {
    HW_FREE,
    HW_SHARED,    /* another pod has a device of it, which is shared, or only looked at */
    HW_OWN,       /* likewise, and it has had that itself */
    HW_UNKNOWN,   /* likewise, and not all is known that would have it refused: to be said */
    HW_AMBIGUOUS, /* likewise, as the driver's names do not tell by which claim */
    HW_HELD,      /* it is to be refused */
};
/* `may`: by what the shim may know; else by what it must. `claim`: whose device it is. */
enum hw_held home_held(const struct home_world *h, const struct hw_pod *pod, bool may,
                       size_t *claim);

/* ---- home_anew.c ---- */

/* A call has ended, however; `took`: it has said that it has prepared the claim. */
void home_anew_ended(struct home_world *h, const struct hw_op *op, bool took);
/* It is asked for all that it is still to prepare anew. */
void home_anew_driver_came(struct home_world *h, size_t driver);
/* After each run. */
void home_anew_judge(struct home_world *h);

/* ---- home_batch.c ---- */

/* A prepare of it is called for. */
void home_batch_called(struct home_world *h, const struct hw_op *op);
/* After each run. */
void home_batches_judge(struct home_world *h);

/* ---- home_names.c ---- */

/* What a create of the pod names: how many. */
size_t home_names(struct home_world *h, struct hw_pod *pod, char names[HW_NAMES][48]);
/* Whether some are not of the claim any more, and nobody can know. */
bool home_names_doubtful(const struct home_world *h, const struct hw_pod *pod);
/* The runtime is asked for it. */
void home_names_go_on(struct home_world *h, struct hw_pod *pod,
                      const struct devicemgr_verdict *verdict);

/* ---- home_parts.c ---- */

/* Which drivers have parts, and of what they are made. */
void home_parts_begin(struct home_world *h);
/* Whether the device cannot be had beside `all` of these, of which at least one of `others` is in
 * its way. Sets of devices are masks. */
bool home_parts_over(const struct hw_driver *d, unsigned device, unsigned all, unsigned others);
/* Whether both are parts, of nothing in common. */
bool home_parts_apart(const struct hw_driver *d, unsigned a, unsigned b);
/* The slices that say so; they are gone. */
void home_parts_tell(struct home_world *h, size_t driver);
void home_parts_gone(struct home_world *h, size_t driver);

/* ---- home_judge.c ---- */

/* Whether its row is in this state. */
bool home_row_is(const struct home_world *h, size_t claim, const char *state);
/* Whether the other one, which is owed, must be gone before the claim is prepared: what failed is
 * in the way of its own pool. */
bool home_is_owed_before(const struct home_world *h, size_t owed, size_t claim);
/* Whether its driver is called for it. */
bool home_has_op(const struct home_world *h, size_t claim);
/* Something is owed to the driver, which goes first. */
bool home_owes(const struct home_world *h, size_t driver);
void home_judge_call(struct home_world *h, const struct hw_op *op);
/* What a call of the shim's makes of the claim, before it does. */
void home_judge_effect(struct home_world *h, const struct hw_op *op);
void home_judge_done(struct home_world *h, size_t claim, const struct devicemgr_claim_done *done);
/* A create passes, or is refused. */
void home_judge_create(struct home_world *h, const struct hw_pod *pod, enum hw_held held,
                       size_t claim);
/* The runtime is asked for it. */
void home_judge_passes(struct home_world *h, const struct hw_pod *pod);
/* With these devices of a claim. */
void home_judge_names(struct home_world *h, const struct hw_pod *pod, size_t index);
/* It has said that another has a device of the claim. */
void home_judge_said(struct home_world *h, size_t claim);
/* After each run of the core. */
void home_judge(struct home_world *h);
/* Every pod runs; nothing is left. */
void home_judge_rest(struct home_world *h);
void home_judge_end(struct home_world *h);

#endif
