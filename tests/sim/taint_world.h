/*
 * A world beside the large one, of devices that are tainted and of the pods that go for it: by an
 * operator, the settings, plugins that say their devices are unhealthy; with tolerations, graces,
 * disruption budgets, static pods; a kubelet that stops, restarts and deletes pods beside that; a
 * runtime and an API server that are away; a store that is slow or fails, and a shim that is killed
 * at any time.
 *
 * It is one of its own since its judge wants to know to the millisecond who is to go: there are no
 * lost rows, reboots and plugins that lie here, which the large world has, and which let its judges
 * say "perhaps" where this one says "now". And the worlds of the large one stay as they were.
 *
 * Three stretches: all of that happens; then no troubles happen any more, while the taints stay,
 * and everybody who is to go must go; then all taints are taken back, and every pod gets what it
 * asked for.
 *
 * Some pods have devices by claims. Those are tainted by the same, and by ResourceSlices and
 * DeviceTaintRules, of which an agent tells the shim, or there is none; and whom the cluster's own
 * controller deletes is left to it.
 *
 * `taint_world.c` is what happens, `taint_shim.c` the core with its ports, `taint_plugin.c`
 * plugins, `taint_pod.c` the kubelet, `taint_claim.c` its claims and their driver,
 * `taint_runtime.c` the runtime, `taint_cluster.c` the API server, `taint_facts.c` what the cluster
 * has of devices, its controller, and the agent, `taint_operator.c` who taints, `taint_truth.c` who
 * is to go, and when, `taint_judge.c` the properties.
 */
#ifndef TESTS_SIM_TAINT_WORLD_H
#define TESTS_SIM_TAINT_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/devicemgr.h"
#include "tests/sim/property.h"
#include "tests/sim/rng.h"
#include "tests/sim/rows.h"
#include "tests/sim/world.h"

#define TW_NEVER UINT64_MAX
#define TW_RESOURCES 3
/* Behind them, wherever one is meant: the devices of a driver, which pods have by claims. */
#define TW_DRIVER TW_RESOURCES
#define TW_SUBJECTS (TW_RESOURCES + 1)
#define TW_CLAIMS 5
#define TW_POOLS 2
#define TW_POOL_DEVICES 4
#define TW_SLICES (2 * TW_POOLS)
#define TW_RULES 2
#define TW_SLICE_TAINTS_MAX 2
#define TW_RESERVED_MAX 12
#define TW_DEVICES_MAX 8
#define TW_KEYS 2
#define TW_PODS 8
#define TW_TOLERATIONS_MAX 2
#define TW_SETS_MAX 3
#define TW_CALLS 32
#define TW_STOPS 128
#define TW_ASKS 256
#define TW_SLIPPED 64
#define TW_MINUTE_MS 60000
#define TW_FORCE_AFTER_MS 20000
/* How long the shim holds a create that has to wait. */
#define TW_HOLD_MS 5000

enum tw_effect { TW_NONE, TW_NO_SCHEDULE, TW_NO_EXECUTE, TW_EFFECTS };

/* One taint of an operator: as it is for certain, and as it will be if what he has asked for is
 * stored. */
struct tw_version {
    bool on;
    unsigned value;
    uint64_t added_ms, end_ms;
};

struct tw_cell {
    struct tw_version is, next;
    bool pending, carried; /* the commit under way has `next` */
};

/* One of the settings. */
struct tw_set {
    size_t resource;
    int device; /* -1: each */
    unsigned key, value;
    enum tw_effect effect;
    uint64_t added_ms;
};

struct tw_toleration {
    int key; /* -1: each */
    bool exists;
    unsigned value;
    int effect; /* -1: each */
    bool has_seconds;
    int64_t seconds;
};

/* A toleration of a claim's allocation is for one of its devices. */
struct tw_claim_toleration {
    size_t device;
    struct tw_toleration is;
};

struct tw_claim {
    bool there; /* in the cluster */
    unsigned uid;
    unsigned mask;
    bool extended; /* of an extended resource: the cluster's controller does not see it */
    struct tw_claim_toleration tolerations[TW_TOLERATIONS_MAX];
    size_t tolerations_len;
    unsigned reserved[TW_RESERVED_MAX]; /* pods, by uid, also those that are gone */
    size_t reserved_len;
    /* the kubelet's, and the driver's */
    uint64_t unprepare; /* asked for; 0: it is not */
    bool prepared;
    /* the shim's, in this life */
    bool kept;      /* it was asked to prepare it, or has a row that says so */
    bool devices;   /* it knows which they are */
    bool asked;     /* it wants to know what the cluster has of it, and was not told since */
    bool told;      /* it was told */
    bool told_none; /* that there is no such claim, or none that may be seen */
    /* When it was told so first, which is no word yet; 0: it was not. */
    uint64_t refused_ms;
    unsigned told_reserved[TW_RESERVED_MAX];
    size_t told_reserved_len;
};

/* Of a device that the cluster has. */
struct tw_cluster_taint {
    size_t device;
    unsigned key, value;
    enum tw_effect effect;
    uint64_t added_ms;
};

struct tw_slice {
    bool there;
    unsigned uid, version;
    size_t pool;
    int64_t generation;
    struct tw_cluster_taint taints[TW_SLICE_TAINTS_MAX];
    size_t taints_len;
};

enum tw_selected { TW_ANY, TW_OURS, TW_ANOTHER };

struct tw_rule {
    bool there;
    unsigned uid, version;
    enum tw_selected driver;
    int pool, device; /* of a pool; -1: any */
    struct tw_cluster_taint taint;
};

/* What the cluster has, or what was told of it. */
struct tw_facts {
    struct tw_slice slices[TW_SLICES];
    struct tw_rule rules[TW_RULES];
};

/* What a row has of a device that is unhealthy. */
struct tw_kept {
    uint64_t since_ms; /* surely; 0: it may have nothing */
    uint64_t from_ms;  /* not before that; 0: it has nothing */
    bool waits;
};

struct tw_device {
    bool healthy;      /* truly */
    bool said_healthy; /* as the shim was told last, in any life */
    uint64_t since_ms; /* that it was told to be unhealthy, as far as that is known in this life; 0:
                        * it is not yet */
    uint64_t from_ms;  /* when it was last known to be healthy, at the latest */
    bool goes;         /* it has been for long enough while its plugin was connected */
    bool waits;        /* and that is surely known in this life */
    struct tw_kept in_commit, in_store;
    bool recovered; /* it went, and is healthy since, which is not stored yet */
    bool carried;   /* the commit under way has that */
};

struct tw_plugin {
    bool up;
    uint64_t dialled;   /* the endpoint that is being; 0: none */
    uint64_t endpoint;  /* that is connected, and has listed; 0: none */
    uint64_t listed_ms; /* since when it is connected */
    uint64_t lost_ms;   /* when it was there last */
    bool storm;         /* more than a quarter was unhealthy, and some is since */
    bool closed; /* more were for so long, and some is since: no others make pods go for it */
    bool closed_in_commit, closed_in_store;
    unsigned emptied; /* devices whose pods have gone for their health alone since then */
    unsigned acting;  /* those that are NoExecute for it, then and since */
    struct tw_device devices[TW_DEVICES_MAX];
};

/* What somebody wants of a pod: in the core's memory, in the commit under way, and in the store. */
struct tw_want {
    bool is, carried, stored;
};

enum tw_kind {
    TW_TOKEN,   /* the kubelet has chosen its device */
    TW_REQUEST, /* its annotation asks for one */
    TW_CLAIM,   /* it has some by a claim */
};

struct tw_pod {
    bool there;
    unsigned uid;
    enum tw_kind kind;
    bool is_static;
    bool deleting;
    size_t resource;
    bool no_execute; /* its claim had such a device when its container was asked for */
    unsigned mask;   /* what it was given; of a request: since its last container was forwarded */
    unsigned had;    /* ever, or perhaps */
    struct tw_toleration tolerations[TW_TOLERATIONS_MAX];
    size_t tolerations_len;
    uint64_t grace_ms;
    bool in_file; /* the core was told of its device in the kubelet's checkpoint, in this life */
    size_t claim; /* of a claim: which */
    uint64_t prepare; /* it is asked for; 0: it is not */
    bool prepared;    /* so the kubelet has it */
    bool user;        /* the core knows that its container has it */
    uint64_t user_ms; /* since when */
    /* its sandbox */
    unsigned sandbox; /* 0: none */
    unsigned attempt;
    bool ready;
    bool unsettled; /* its row is from an earlier life, which says not what became of its creates */
    bool known;     /* the core knows of it, in this life */
    /* its container, and the one that is to be made */
    unsigned container; /* 0: none */
    bool runs;
    bool listed;           /* a list that was taken has shown that it runs */
    uint64_t create;       /* 0: none is under way */
    uint64_t retry_ms;     /* none is asked for before */
    bool forwarded, given; /* the one under way; one ever was */
    uint64_t first_create; /* since it was made last: what it may have been given by then, it has */
    /* its end */
    struct tw_want evicted, ended;
    struct tw_want
        unsure; /* its sandbox was stopped since: it may be over to the shim, and asked for anew */
    uint64_t asked_carried_ms, asked_stored_ms;
    uint64_t asked_ms; /* when its eviction was asked for */
    uint64_t ended_ms; /* when an operator asked for its end first */
    /* How long the API server was away meanwhile, at least, while it had an order. */
    uint64_t unasked_ms, unasked_carried_ms, unasked_stored_ms;
    uint64_t end_grace_ms; /* the shortest of what he has asked for */
    bool by_health;        /* it was asked for that alone, and was due for nothing else since */
    bool sent;             /* something was, for its end */
    bool accepted;         /* the API server has deleted it */
    uint64_t order;        /* of the API server; 0: none */
    bool forced;           /* without regard to budgets */
    /* An earlier life has asked for it, and it was not due for certain since; or perhaps it was. */
    bool adopted, confirmed;
};

/* A call on a plugin, or a question of the runtime. */
struct tw_call {
    uint64_t number; /* 0: free */
    uint64_t endpoint;
    unsigned mask;
    unsigned container; /* of a check */
    size_t claim;       /* of a driver's */
    bool unprepares;    /* likewise */
};

struct tw_stop {
    uint64_t op; /* 0: free, or over */
    unsigned uid, container;
    uint64_t kills_ms;
};

/* The operator's own request that is not answered. */
struct tw_request {
    uint64_t number; /* 0: none */
    bool dry;
    unsigned ends; /* a pod, by uid; 0: none */
    bool was;      /* that was asked for before */
};

struct taint_world {
    struct world *w; /* for what is broken */
    struct rng rng, agent_rng;
    struct devicemgr *core;
    uint64_t now_ms;
    bool restless;   /* settings and devices' health change instead of what an operator says */
    bool calm;       /* no troubles any more */
    bool untainted;  /* nor any taint */
    uint64_t number; /* the last of any kind that this world has given */
    unsigned last_uid, last_sandbox, last_container;

    struct tw_plugin plugins[TW_RESOURCES];
    struct tw_cell cells[TW_SUBJECTS][TW_DEVICES_MAX][TW_KEYS][TW_EFFECTS];
    struct tw_set sets[TW_SETS_MAX];
    size_t sets_len;
    uint64_t unhealthy_after_ms;
    uint32_t per_minute;
    bool cluster, force;
    struct tw_request request;

    struct tw_pod pods[TW_PODS], snapshot[TW_PODS];
    unsigned slipped[TW_SLIPPED]; /* pods that are gone, which the core may not know in this life */
    size_t slipped_len;
    struct tw_call calls[TW_CALLS], checks[TW_CALLS], driver_calls[TW_CALLS];
    struct tw_stop stops[TW_STOPS];
    bool runtime_away, listing, list_wanted;
    bool listed;      /* the core has taken a list, in this life */
    uint64_t list_ms; /* when the last one was asked for */
    bool api_away;
    uint64_t away_ms; /* when the core was told so last */

    struct tw_claim claims[TW_CLAIMS];
    unsigned last_claim, last_fact;
    uint64_t instance; /* of the driver, connected; 0: it is away */
    struct tw_facts facts, told;
    bool told_all; /* all there is in the cluster, in this life, by the agent that there is */
    bool leaves;   /* that one, just now */
    bool doubted;  /* the one before has told it, in this life, and this one not all of it yet */

    uint64_t commit;    /* under way; 0: none */
    uint64_t tainted;   /* what was numbered before had not seen all taints */
    uint64_t failed_ms; /* when one failed last */
    bool store_fails;
    struct row *rows, *pending;
    uint64_t asked_ms[TW_ASKS];     /* when evictions were asked for */
    size_t asked_len, asked_before; /* in all, and in earlier lives */
};

/* Runs the one of the world's seed, whose own run is over and has held. False: world's `broken`
 * says why. */
bool taint_world_run(struct world *w);

/* With the time of this world, where every event is to be printed. */
void taint_note(const struct taint_world *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- taint_shim.c ---- */

void taint_shim_start(struct taint_world *t);
void taint_shim_kill(struct taint_world *t);
void taint_shim_end(struct taint_world *t);
/* As it is to be now. */
void taint_shim_reload(struct taint_world *t);
/* devicemgr_run(), and what then must be. */
void taint_shim_run(struct taint_world *t);
void taint_shim_commit_ends(struct taint_world *t, bool fails);
/* Until then; what is due meanwhile happens at its time. */
void taint_shim_pass(struct taint_world *t, uint64_t ms);

/* ---- taint_plugin.c ---- */

const char *taint_resource_name(size_t resource);
/* TW_RESOURCES: there is none of that name. */
size_t taint_resource_find(const char *name);
size_t taint_resource_devices(size_t resource);
/* Whoever asks for one of it does so by annotation, and has it alone. */
bool taint_resource_exclusive(size_t resource);
/* Static, "g3", or of the driver "p1/g3". */
const char *taint_device_id(size_t resource, size_t device);
unsigned taint_device_mask(const char *const *ids, size_t len);

void taint_plugins_shim_started(struct taint_world *t);
void taint_plugin_opened(struct taint_world *t, uint64_t endpoint, const char *resource);
void taint_plugin_closed(struct taint_world *t, uint64_t endpoint);
void taint_plugin_called(struct taint_world *t, uint64_t endpoint, uint64_t call, unsigned mask);
void taint_plugin_call_cancelled(struct taint_world *t, uint64_t call);
/* It comes, goes, or lists other devices. */
void taint_plugin_acts(struct taint_world *t, size_t resource);
/* One of the pod's devices is unhealthy, or if any is, none is any more. */
void taint_device_acts(struct taint_world *t, const struct tw_pod *pod);
/* One that is dialled answers, one that has been asked does. */
void taint_plugins_proceed(struct taint_world *t);
/* All are up, and all devices healthy. */
void taint_plugins_heal(struct taint_world *t);
/* The commit under way has the row of this one; the row is stored. */
void taint_plugin_carried(struct taint_world *t, const char *resource);
void taint_plugin_stored(struct taint_world *t, const char *resource);
/* What time alone has made of unhealthy devices. */
void taint_plugins_age(struct taint_world *t);
/* More than a quarter is unhealthy for so long. */
bool taint_plugin_closes(const struct taint_world *t, size_t resource);

/* ---- taint_pod.c ---- */

struct tw_toleration taint_draw_toleration(struct rng *rng);
struct tw_pod *taint_pod_of(struct taint_world *t, const char *uid);
struct tw_pod *taint_pod_by_create(struct taint_world *t, uint64_t create);
struct tw_pod *taint_pod_by_container(struct taint_world *t, unsigned container);
/* The kubelet does the next thing for it. */
void taint_pod_proceeds(struct taint_world *t, struct tw_pod *pod);
void taint_pod_trouble(struct taint_world *t, struct tw_pod *pod);
void taint_pod_deleted(struct taint_world *t, struct tw_pod *pod);
void taint_pod_verdict(struct taint_world *t, struct tw_pod *pod,
                       const struct devicemgr_verdict *verdict);
/* The shim has ended: nobody answers creates any more. */
void taint_pods_shim_ended(struct taint_world *t);
void taint_pods_shim_started(struct taint_world *t);

/* ---- taint_runtime.c ---- */

/* `told`: by an event; else a list is to find it out. */
void taint_container_exits(struct taint_world *t, struct tw_pod *pod, bool told);
void taint_stops_due(struct taint_world *t);
void taint_stop_fails(struct taint_world *t, struct tw_stop *stop);
void taint_checks_answered(struct taint_world *t);
void taint_list_begins(struct taint_world *t);
void taint_list_ends(struct taint_world *t);

/* ---- taint_cluster.c ---- */

void taint_cluster_ordered(struct taint_world *t, uint64_t order,
                           const struct devicemgr_eviction *eviction);
void taint_cluster_cancelled(struct taint_world *t, uint64_t order);
/* It answers one order, or says that its budget is used up. */
void taint_cluster_proceeds(struct taint_world *t, struct tw_pod *pod);
/* The shim is told whether it is there. */
void taint_cluster_reached(struct taint_world *t);
/* So much time passes. */
void taint_cluster_waits(struct taint_world *t, uint64_t ms);

/* ---- taint_claim.c ---- */

/* Static, "example.com/dev=c7-g3". */
const char *taint_claim_cdi(const struct tw_claim *claim, size_t device);
/* One for a new pod, new or shared; TW_CLAIMS: there is none. */
size_t taint_claim_reserve(struct taint_world *t, unsigned pod_uid);
/* Whether the kubelet may go on with the pod: it asks for its claim to be prepared, and waits. */
bool taint_claim_is_prepared(struct taint_world *t, struct tw_pod *pod);
/* Likewise with a pod's removal, for which it is unprepared, if nobody else has it. */
bool taint_claim_is_let_go(struct taint_world *t, struct tw_pod *pod);
/* Claims that nobody has any more are over, and so are reservations of pods that are gone. */
void taint_claims_clean(struct taint_world *t);
void taint_claims_shim_ended(struct taint_world *t);
/* By its rows. */
void taint_claims_shim_started(struct taint_world *t);
/* The driver comes, or goes. */
void taint_driver_comes(struct taint_world *t);
void taint_driver_goes(struct taint_world *t);
/* It answers what it was asked. */
void taint_driver_proceeds(struct taint_world *t);
/* Ports. */
void taint_claim_called(struct taint_world *t, uint64_t call, const char *uid, bool unprepares);
void taint_claim_done(struct taint_world *t, uint64_t number,
                      const struct devicemgr_claim_done *done);
void taint_claim_wanted(struct taint_world *t, const char *uid);
/* A list was taken. */
void taint_claims_listed(struct taint_world *t);

/* ---- taint_facts.c ---- */

/* Slices and rules come, change and go. */
void taint_facts_change(struct taint_world *t);
/* None of them taints anything any more. */
void taint_facts_heal(struct taint_world *t);
/* The agent tells something new; false: there is nothing, or it cannot. */
bool taint_agent_tells(struct taint_world *t);
void taint_agent_shim_started(struct taint_world *t);
/* There is another one, which has all to tell. */
void taint_agent_goes(struct taint_world *t);
/* The cluster's controller deletes it if it is to go for a claim. */
void taint_controller_looks(struct taint_world *t, struct tw_pod *pod);
/* Whether the shim may wait for what the agent has not told yet. */
bool taint_facts_untold(const struct taint_world *t);
/* Calls `each` for every taint that the device has by these, as slices and rules say. */
void taint_facts_each(const struct tw_facts *facts, size_t device,
                      void (*each)(void *user, const struct tw_cluster_taint *taint), void *user);

/* ---- taint_operator.c ---- */

void taint_operator_acts(struct taint_world *t);
void taint_operator_answered(struct taint_world *t, uint64_t number, int code, const char *message);
/* The commit under way has these rows; it is over; the shim has ended. */
void taint_operator_carried(struct taint_world *t, const struct devicemgr_record *records,
                            size_t records_len);
void taint_operator_committed(struct taint_world *t, bool fails);
void taint_operator_shim_ended(struct taint_world *t);
/* Takes back one more of all that he has set. False: there is nothing left, or he waits for an
 * answer. */
bool taint_operator_heals(struct taint_world *t);
/* Other settings. */
void taint_settings_change(struct taint_world *t);
void taint_settings_shim_started(struct taint_world *t);

/* ---- taint_truth.c ---- */

/* When the pod is to go for what taints its devices: TW_NEVER, not at all; 0, at once. For certain,
 * and perhaps; `must` is never earlier. */
uint64_t taint_must_ms(const struct taint_world *t, const struct tw_pod *pod);
uint64_t taint_may_ms(const struct taint_world *t, const struct tw_pod *pod);
/* The same for the devices that it is known to have; of one that asks for some, it may be others as
 * well. */
uint64_t taint_may_by_known_ms(const struct taint_world *t, const struct tw_pod *pod);
/* A NoExecute of its devices waits for the store: until then it stays as it is. */
bool taint_pending(const struct taint_world *t, const struct tw_pod *pod);
/* The same as `may`, but for what comes of health. */
uint64_t taint_may_besides_health_ms(const struct taint_world *t, const struct tw_pod *pod);
/* The same, for the devices that it is known to have. */
uint64_t taint_may_besides_health_by_known_ms(const struct taint_world *t,
                                              const struct tw_pod *pod);
/* The same as `may`, but for what slices and rules say. */
uint64_t taint_may_besides_cluster_ms(const struct taint_world *t, const struct tw_pod *pod);
/* Whether a slice or a rule has it go, now or later, whatever else does. */
bool taint_is_the_clusters_too(const struct taint_world *t, const struct tw_pod *pod);
/* Whether it is to go by nothing that is certain as long as the agent has not told all anew. */
bool taint_is_doubted(const struct taint_world *t, const struct tw_pod *pod);
/* Whether its claim alone tolerates what would make it go. */
bool taint_claim_spares(const struct taint_world *t, const struct tw_pod *pod);
/* As the shim was told of its claim. */
bool taint_is_told_to_have(const struct taint_world *t, const struct tw_pod *pod);
/* When the cluster's controller is to delete it, as the cluster truly is: upstream's rule, which
 * knows claims' tolerations of the very effect only. */
uint64_t taint_controller_ms(const struct taint_world *t, const struct tw_pod *pod);
/* Whether one of these devices has a taint of this effect that the pod does not tolerate now. */
bool taint_must_have(const struct taint_world *t, const struct tw_pod *pod, unsigned mask,
                     enum tw_effect effect);
bool taint_may_have(const struct taint_world *t, const struct tw_pod *pod, unsigned mask,
                    enum tw_effect effect);
/* For so long that it counts, by the word of the connection that there is now. */
bool taint_unhealthy_for_long(const struct taint_world *t, const struct tw_plugin *plugin,
                              const struct tw_device *device);
/* Whether one of these is tainted so by anything but its health; for who tolerates nothing. */
bool taint_must_keep_back(const struct taint_world *t, size_t resource, size_t device);
bool taint_may_keep_back(const struct taint_world *t, size_t resource, size_t device);

/* ---- taint_judge.c ---- */

void taint_judge_asked(struct taint_world *t, struct tw_pod *pod, const char *why);
/* One was asked for. */
void taint_judge_counts(struct taint_world *t);
/* It is not to go any more, as the core says. */
void taint_judge_spared(struct taint_world *t, struct tw_pod *pod);
void taint_judge_stop(struct taint_world *t, const struct tw_pod *pod, uint64_t grace_ms);
void taint_judge_order(struct taint_world *t, const struct tw_pod *pod,
                       const struct devicemgr_eviction *eviction);
void taint_judge_refused(struct taint_world *t, const struct tw_pod *pod, int code,
                         const char *message);
void taint_judge_forwarded(struct taint_world *t, const struct tw_pod *pod, unsigned mask);
/* What the kubelet is shown of taints. */
void taint_judge_shown(struct taint_world *t);
/* Whether it is to be evicted still, as what is known now has it. */
void taint_judge_settle(struct taint_world *t, struct tw_pod *pod);
/* After each run. */
void taint_judge(struct taint_world *t);
/* Nothing has happened for long: everybody who is to go has gone, and all others run. */
void taint_judge_rest(struct taint_world *t);

#endif
