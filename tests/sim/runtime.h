/*
 * The container runtime of the simulated node: what truly runs.
 *
 * Calls reach it through the shim; their effect and their answer come later, apart, and either may
 * be lost; a StopPodSandbox may fail half-way. It restarts (containers go on, answers are lost),
 * its containers crash, and so do the pause processes of its sandboxes, whose containers go on; one
 * may be listed as not ready for a while. In some worlds it is as containerd: what was created
 * only stays so in its lists, whatever ends its sandbox. What else happens behind the shim's back:
 * rival.h.
 */
#ifndef TESTS_SIM_RUNTIME_H
#define TESTS_SIM_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/resources.h"

struct world;

#define SANDBOXES_MAX 64
#define CONTAINERS_MAX 256
#define RUNTIME_CALLS_MAX 64
#define ENDED_MAX 4096
#define BARES_MAX 64

enum container_state {
    CONTAINER_CREATED,
    CONTAINER_RUNNING,
    CONTAINER_EXITED,
};

struct rt_sandbox {
    unsigned id; /* 0: free slot */
    unsigned uid;
    unsigned attempt;
    bool ready;
    uint64_t seen_ms;    /* when it last ceased to be listed as not ready; 0: it was not */
    uint64_t stopped_in; /* the life of the shim that knows that its stop succeeded; 0: none */
    uint64_t told_in;    /* the life of the shim that knows of it; 0: none */
    bool dead_told;      /* what follows is over.c's: the last list showed it as not ready */
    bool stop_asked;     /* its stop was asked for, as far as the shim knows */
    uint64_t remade_ms;  /* it was dead then: until then another must be expected; 0: it was not */
    uint64_t doubted_ms; /* likewise: until then another may be */
    uint64_t row_by_ms;  /* that it was stopped is stored by then; 0: it need not, or was judged */
    bool hidden;         /* listed as not ready, though it is */
    uint64_t kill_ms; /* when the kubelet stops it, not ready and with containers that run; 0: that
                       * was not looked at yet */
    uint64_t open_ms; /* a list asked for before that may have shown it as not ready, or to stop */
    bool doomed;      /* the kubelet stops it, until that succeeds */
    bool stop_told;   /* the kubelet knows it is stopped */
};

struct rt_container {
    unsigned id; /* 0: free slot */
    unsigned sandbox;
    unsigned uid;
    unsigned name; /* index among the pod's containers */
    unsigned attempt;
    enum container_state state;
    bool through_shim;                /* with options */
    bool starting;                    /* the kubelet knows of it, and starts it */
    bool abandoned;                   /* created, and its maker does not know: never started */
    bool stale;                       /* it was created only when its sandbox ended: listed so */
    unsigned held[RESOURCES_LEN];     /* masks of the devices it can use */
    unsigned bare[RESOURCES_LEN];     /* of held: it came without a token (move.h) */
    bool known[RESOURCES_LEN];        /* and the shim must know */
    uint64_t known_ms[RESOURCES_LEN]; /* since when */
    uint64_t made_ms;
    unsigned noted[RESOURCES_LEN]; /* masks in its token annotations */
    uint64_t begun_ms;             /* when its create reached the shim */
    bool damaged;                  /* while rows were missing */
    bool rival;                    /* made by another client of the runtime (rival.h) */
    uint64_t claimant; /* of a pod with claims: its create (dra.h); 0: it is another's */
    uint64_t heard_ms; /* since when a list tells the shim of that one; UINT64_MAX: not yet */
};

enum runtime_call_kind {
    CALL_RUN_SANDBOX,
    CALL_STOP_SANDBOX,
    CALL_REMOVE_SANDBOX,
    CALL_CREATE_CONTAINER,
    CALL_REMOVE_CONTAINER,
};

/* A call under way. */
struct runtime_call {
    uint64_t number; /* 0: free slot */
    enum runtime_call_kind kind;
    unsigned pod;     /* uid */
    unsigned subject; /* sandbox or container id */
    uint64_t create;  /* of a create: the core's number */
    uint64_t incarnation;
    bool foreign;           /* not the kubelet's */
    bool earlier;           /* its connection outlived the shim that passed it on */
    uint64_t slow_until_ms; /* it has no effect before */
    bool outlives;          /* of a create: it has its effect after the shim that passed it on */
    bool effected;
    bool failed;
    struct rt_container made; /* of a create: what to make; then its id */
};

/* A create for devices of which the kubelet alone knew (move.h). */
struct bare_create {
    unsigned uid; /* 0: none */
    unsigned name;
    unsigned ids[RESOURCES_LEN];
    uint64_t sent_ms;
};

struct runtime {
    bool down;
    bool forgot;         /* its sandboxes, at a reboot */
    bool eventless;      /* it does not know GetContainerEvents */
    bool leaves_created; /* what is created only stays so when its sandbox ends */
    bool unseen;         /* something happened behind the shim's back since the last list began */
    uint64_t ended_ms[ENDED_MAX]; /* by uid: when a sandbox or container of the pod last ended */
    struct bare_create bares[BARES_MAX]; /* the last ones; at bares_len % BARES_MAX the oldest */
    size_t bares_len;
    unsigned last_id;
    uint64_t last_call;
    struct rt_sandbox sandboxes[SANDBOXES_MAX];
    struct rt_container containers[CONTAINERS_MAX];
    size_t sandboxes_end, containers_end; /* behind the last slots that were ever used */
    struct runtime_call calls[RUNTIME_CALLS_MAX];
};

void runtime_init(struct world *w);

/* Calls through the shim. False: not now (the runtime is down, or too much under way). */
bool runtime_run_sandbox(struct world *w, unsigned uid, unsigned attempt);
/* Not `by_kubelet`: by another client of the shim; the kubelet does not know of it. */
bool runtime_stop_sandbox(struct world *w, struct rt_sandbox *sandbox, bool by_kubelet);
bool runtime_remove_sandbox(struct world *w, const struct rt_sandbox *sandbox);
bool runtime_remove_container(struct world *w, const struct rt_container *container);
/* A create that the shim forwarded; `made` says what of. */
void runtime_create(struct world *w, uint64_t create, const struct rt_container *made);
/* The client gave the create up. */
void runtime_create_abandoned(struct world *w, uint64_t create);
/* The container the call made is started by the kubelet, who knows of it. */
void runtime_start(struct world *w, unsigned container);
/* All calls lose their answers, since the shim that carried them is gone; but creates whose
 * connections the next one goes on with. */
void runtime_shim_gone(struct world *w);
/* Whether one of the calls is to outlive the shim, whose connections all end then. */
bool runtime_outlives(const struct world *w);
/* It goes on with them; whether there are any. */
bool runtime_shim_resumes(struct world *w);
/* The runtime itself is: some take effect. */
void runtime_lose_calls(struct world *w);

/* The newest sandbox of a pod that is ready; NULL: none. */
struct rt_sandbox *runtime_ready_sandbox(struct world *w, unsigned uid);
struct rt_sandbox *runtime_find_sandbox(struct world *w, unsigned id);
struct rt_container *runtime_find_container(struct world *w, unsigned id);
/* The one with the highest attempt; NULL: none. */
struct rt_container *runtime_newest(struct world *w, unsigned sandbox, unsigned name);
static inline bool runtime_live(const struct rt_container *container)
{
    return container->id && container->state != CONTAINER_EXITED;
}
/* Of one that was created only when its sandbox ended: whether it may be started yet for all that
 * the shim knows, which has not heard that somebody had that stopped, or that another stop has
 * failed, or not listed it since. */
bool runtime_may_be_started(const struct world *w, const struct rt_container *container);
/* Whether that is so of one of the pod's. */
bool runtime_may_start_one(const struct world *w, unsigned uid);
/* When a sandbox or container of the pod ended last; whether it has a sandbox at all. */
uint64_t runtime_ended_ms(const struct world *w, unsigned uid);
bool runtime_known(const struct world *w, unsigned uid);
/* Whether a container of the pod does. */
bool runtime_runs(const struct world *w, unsigned uid);
/* A create for devices that no token names (move.h) is sent now. */
void runtime_note_bare(struct world *w, unsigned uid, unsigned name, const unsigned *ids);
/* Whether a call about this pod is under way. */
bool runtime_busy(const struct world *w, unsigned uid);
/* Whether a StopPodSandbox that the shim lives to hear answered is under way. */
bool runtime_stopping(const struct world *w, unsigned sandbox);
/* Whether a container of which the shim must know runs with one of these without a token. */
bool runtime_runs_bare(const struct world *w, const unsigned *ids);
/* A random one; NULL: there is none. */
struct rt_container *runtime_any_container(struct world *w, bool live);
/* A ready one. */
struct rt_sandbox *runtime_any_sandbox(struct world *w);

/* What happens to them; events tell of it. */
struct rt_sandbox *runtime_add_sandbox(struct world *w, unsigned uid, unsigned attempt);
/* `made` says what; its id and state are set. */
struct rt_container *runtime_add_container(struct world *w, const struct rt_container *made);
void runtime_exit(struct world *w, struct rt_container *container, const char *how);
void runtime_drop_container(struct world *w, struct rt_container *container);
void runtime_end_sandbox(struct world *w, struct rt_sandbox *sandbox);
void runtime_drop_sandbox(struct world *w, struct rt_sandbox *sandbox);

/* ---- faults ---- */
void runtime_restart(struct world *w);
/* `forgets`: it knows no sandbox of before. */
void runtime_reboot(struct world *w, bool forgets);
void runtime_crash_one(struct world *w);
void runtime_orphan(struct world *w, struct rt_sandbox *sandbox);
/* It is listed as not ready for a while. */
void runtime_flicker(struct world *w, struct rt_sandbox *sandbox);

#endif
