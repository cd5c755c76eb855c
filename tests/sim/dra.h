/*
 * Dynamic resource allocation in some of the worlds: drivers that die, are rolled over, fail and answer
 * late; a kubelet that prepares claims and unprepares them, some for several pods at once; what the
 * cluster says of both, or does not; and the judge of what comes of it.
 *
 * The judge knows which claim each driver truly has: that changes when the driver does what it was
 * asked for, not when it answers. Two drivers: the first one's devices are this node's alone, the
 * second one's are not.
 */
#ifndef TESTS_SIM_DRA_H
#define TESTS_SIM_DRA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/ports.h"

struct world;

#define DRA_DRIVERS 2
#define DRA_LOCAL_DRIVER "local.example.com"
/* All claims that there ever are. */
#define DRA_CLAIMS_MAX 128
#define DRA_ASKED_MAX 64
#define DRA_OPS_MAX 128

/* What a driver has of a claim. */
struct dra_truth {
    bool prepared;
    unsigned version; /* of what it gave last */
    bool put_off;     /* that it was told so, there was a row left of it */
    bool owed;        /* the kubelet was told that it is unprepared, and it is not */
    bool unknown;     /* its row was lost while it was prepared */
    bool tried;       /* since the driver is there: it was told to unprepare it, and failed */
    uint64_t
        tried_run; /* the run that makes the calls decided on before the driver came once more */
};

enum dra_life {
    DRA_NONE,
    DRA_WANTED,  /* by some pods */
    DRA_LEAVING, /* the last of them is deleted */
    DRA_GONE,
};

/* A claim, as the kubelet has it. */
struct dra_claim {
    enum dra_life life;
    bool done[DRA_DRIVERS]; /* the driver has done what the life is about */
    struct dra_truth truth[DRA_DRIVERS];
};

/* What the kubelet waits for. */
struct dra_asked {
    uint64_t number; /* 0: free slot */
    bool prepare;
    size_t claim;
    size_t driver;
    uint64_t since_ms;
};

/* A call that a driver has. */
struct dra_op {
    uint64_t number; /* the world's; 0: free slot */
    uint64_t call;
    uint64_t instance;
    bool prepare;
    size_t claim;
    size_t driver;
    bool fails;
};

struct dra_driver {
    bool up;
    unsigned fails_percent; /* of what it is asked to unprepare */
    uint64_t step_ms_max;   /* between its troubles */
    uint64_t old,
        instance; /* registered; 0: none. Another is on its way, while it is rolled over */
    bool old_connected, connected;
    uint64_t old_run; /* the run that makes the calls decided on before the newer was connected */
};

struct dra {
    bool there;
    bool over; /* all claims go */
    size_t claims_len;
    struct dra_claim claims[DRA_CLAIMS_MAX];
    struct dra_asked asked[DRA_ASKED_MAX];
    struct dra_op ops[DRA_OPS_MAX];
    struct dra_driver drivers[DRA_DRIVERS];
    uint64_t last_number;
    uint64_t trouble_ms[DRA_DRIVERS]; /* when a driver last came or went */
};

/* In some of the worlds. */
void dra_init(struct world *w);
void dra_shim_started(struct world *w);
void dra_shim_gone(struct world *w);
/* The faults stop, and drivers come back for good; then all claims are to go. Whether they have. */
void dra_heal(struct world *w);
void dra_end(struct world *w);
bool dra_is_done(struct world *w);
/* Nothing is left anywhere. */
void dra_check_nothing_left(struct world *w);

/* ---- the ports ---- */
void dra_registered(struct world *w, uint64_t instance, int code);
void dra_called(struct world *w, bool prepare, uint64_t instance, uint64_t call,
                const struct devicemgr_claim *claim);
void dra_look(struct world *w, const struct devicemgr_claim *claim);
void dra_claim_done(struct world *w, uint64_t number, const struct devicemgr_claim_done *done);

/* ---- between its files ---- */
const char *dra_driver_name(size_t driver);
/* "c7": 7. */
size_t dra_claim_find(const char *uid);
bool dra_driver_there(const struct dra_driver *d);
void dra_drivers_init(struct world *w);

#endif
