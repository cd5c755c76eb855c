/*
 * The world around a device manager under test: virtual time, ports that write down what they were
 * asked, a disk that keeps what was committed.
 *
 * What a port was asked is one line of text, without numbers; the latest number of each kind is in
 * the world. A test takes the lines in their order with expect(); log lines are kept apart.
 */
#ifndef TESTS_UNIT_DEVICEMGR_WORLD_H
#define TESTS_UNIT_DEVICEMGR_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "devicemgr/devicemgr.h"

#define GPU "vendor.com/gpu"
#define NIC "other.com/nic"

#define GRACE_MS 300000
#define HOLD_MS 5000
#define ALLOCATE_TIMEOUT_MS 10000
#define PRESTART_TIMEOUT_MS 30000
#define CLAIM_CALL_MS 45000

/* What a driver answered, as "gpu-0 q/gpu-1": devices of pool "p", and of "q". Static. */
const char *world_response(const void *response, size_t bytes);

struct world_line {
    char *text;
    struct world_line *next;
};

struct world_row {
    struct devicemgr_record record; /* owned */
    struct world_row *next;
};

struct world {
    char about[256]; /* of the last line: "resource namespace/pod container"; "-": none */
    struct devicemgr *mgr;
    struct devicemgr_settings settings;
    const char *pod_namespace; /* of creates to come; NULL: "ns" */
    const char *tolerations;   /* the annotation of pods that are told of from now on; NULL: none */
    struct devicemgr_resource_settings own; /* of one resource */
    uint64_t now_ms;
    uint64_t deadline_ms;     /* of creates; UINT64_MAX */
    uint32_t sandbox_attempt; /* of the sandbox that creates are in */

    struct world_line *lines; /* oldest first */
    struct world_line *logs;
    struct world_line *events;

    uint32_t uid;      /* who registers plugins */
    uint64_t endpoint; /* the latest numbers */
    uint64_t call;     /* on a plugin, or a driver */
    uint64_t instance; /* of the driver that it is on */
    uint64_t check;
    uint64_t passed; /* a create with claims only, once these were stored */
    bool slow;       /* the runtime has not answered to it by then */
    uint64_t stop;   /* of a container or a sandbox */
    uint64_t order;  /* to evict a pod */
    bool looks;      /* the port claim_look is written down, too */
    uint64_t commit;
    size_t commits; /* how many there were */

    struct world_row *disk;
    struct world_row *pending; /* rows of the commit under way */
};

/* cmocka fixtures: *state is a struct world with a manager that has seen an empty runtime list. */
int world_setup(void **state);
int world_teardown(void **state);

/* Builds the manager anew with w->settings and an empty disk, the runtime's list not read. */
void world_fresh(struct world *w);
/* As world_fresh(); the runtime lists nothing. */
void world_fresh_listed(struct world *w);
/* As world_fresh_listed(), with settings of its own for one resource. */
void world_fresh_with(struct world *w, const struct devicemgr_resource_settings *own);
/* The general settings, for world_fresh_with() to differ from. */
struct devicemgr_resource_settings world_settings_of(const char *resource);
/* The shim is killed and started: a new manager from what is on disk. The runtime's list is not
 * read yet. */
void world_restart(struct world *w);
/* The same in two steps: the rows are not read yet; they are. */
void world_reborn(struct world *w);
void world_restored(struct world *w);
/* Puts a row on disk. */
void world_store(struct world *w, enum devicemgr_record_kind kind, const char *k0, const char *k1,
                 const char *k2, const void *value, size_t bytes);
/* Whether a row is on disk; key parts joined by ' '. */
bool world_stored(const struct world *w, const char *kind_and_key);

/* The next port call is this; a '*' at the end of `line` stands for anything. */
void expect(struct world *w, const char *line);
/* The next port call, which must be `head` at its start, has all these texts in it (end: NULL). */
void expect_with(struct world *w, const char *head, ...) __attribute__((sentinel));
void expect_nothing(struct world *w);
/* Forgets what the ports were asked so far, and the events. */
void ignore_all(struct world *w);
/* The next event (port `event`) begins with this: "again lost RESOURCE [ids] ns/pod/container word:
 * text", "-" where there is none. */
void expect_event(struct world *w, const char *line);
void expect_no_event(struct world *w);
/* How many log lines have `part` in them; all are forgotten. */
size_t logged(struct world *w, const char *part);
void forget_logs(struct world *w);

/* Time passes; ticks that are due in between happen at their time. */
void pass(struct world *w, uint64_t ms);

/* ---- plugins; "g0 g1! g2@1 g3@0@1": g1 is unhealthy, g2 on NUMA node 1, g3 on two ---- */
void plugin_register(struct world *w, uint64_t registration, const char *resource,
                     const char *socket);
void plugin_options(struct world *w, uint64_t endpoint, bool pre_start, bool wants_preferred);
void plugin_list(struct world *w, uint64_t endpoint, const char *devices);
void plugin_lost(struct world *w, uint64_t endpoint, const char *reason);
/* A lost endpoint's stop time has come to be stored (STOP_STORE_MS), and is; nothing else
 * happened. */
void plugin_stop_stored(struct world *w, const char *resource);
/* Register, options, list; nothing of it is left to expect. The endpoint's number. */
uint64_t plugin_up(struct world *w, const char *resource, const char *socket, const char *devices,
                   bool pre_start, bool wants_preferred);
/* plugin_up() of GPU and of NIC, which want nothing more than that. */
uint64_t gpus_up(struct world *w, const char *devices);
uint64_t nics_up(struct world *w, const char *devices);
/* The endpoint opened last is there: options, list. What it leads to is left to expect. */
void plugin_back(struct world *w, const char *devices);
/* Answers w->call; "A=1 /dev/x note:k=v cdi:n": envs, device nodes, annotations, CDI devices;
 * " | ", and more for a second container. */
void allocated(struct world *w, const char *options);
/* And that is committed. */
void allocated_stored(struct world *w, const char *options);
void allocate_failed(struct world *w, int code, const char *message);
/* "g0,g1"; "g0|g1": with g1 for a second container, likewise. */
void preferred(struct world *w, const char *ids);
void prestarted(struct world *w, int code, const char *message);

/* ---- store ---- */
void committed(struct world *w);
/* The next port call is this commit, which is stored. */
void expect_stored(struct world *w, const char *line);
void commit_failed(struct world *w, const char *error);

/* ---- pods and containers: pod "u1" is ns/u1, its sandbox is named by the test ---- */
void sandbox_ran(struct world *w, const char *uid, const char *sandbox, uint32_t attempt);
void sandbox_stopping(struct world *w, const char *sandbox);
void sandbox_stopped(struct world *w, const char *sandbox);
void sandbox_removed(struct world *w, const char *sandbox);
void container_checked(struct world *w, bool running);
void container_removed(struct world *w, const char *id);

/* In sandbox "s-UID". `tokens`: "vendor.com/gpu:g0,g1 other.com/nic:n0" or NULL; `request`: the
 * pod's annotation or NULL. */
bool create(struct world *w, uint64_t number, const char *uid, const char *container,
            const char *tokens, const char *request);
/* In this sandbox, whosever it is. */
bool create_in(struct world *w, uint64_t number, const char *sandbox, const char *uid,
               const char *container, const char *tokens, const char *request);
/* devicemgr_create() of a container with claims, and what follows at once. Whether something is in
 * its way but that the claims are to be stored with it; for that it waits, and is made as soon as
 * it passes (`passed`), if not `slow`. */
bool create_claimed(struct world *w, uint64_t number, const struct devicemgr_create *request);
/* One of container "main" with tokens, one with a request; the manager takes them up. */
void create_token(struct world *w, uint64_t number, const char *uid, const char *tokens);
void create_request(struct world *w, uint64_t number, const char *uid, const char *container,
                    const char *request);
void create_answered(struct world *w, uint64_t number, const char *container_id);
void create_cancelled(struct world *w, uint64_t number);
/* The way of a container with a token that needs Allocate, up to its verdict. */
void container_forwarded(struct world *w, uint64_t number, const char *uid, const char *container,
                         const char *tokens);
/* The whole way; container id "c-UID-CONTAINER". */
void container_made(struct world *w, uint64_t number, const char *uid, const char *container,
                    const char *tokens);
/* gpus_up(), and container_made() for "main" of pod u1 with g0, number 11. The endpoint's
 * number. */
uint64_t u1_has_g0(struct world *w, const char *devices);
/* container_made() for one that asks with a request and gets these ids; and from their Allocate
 * on. */
void container_chosen(struct world *w, uint64_t number, const char *uid, const char *container,
                      const char *request, const char *ids);
void container_allocated(struct world *w, uint64_t number, const char *uid, const char *container,
                         const char *ids);

/* The whole of the kubelet's checkpoint, "u1=vendor.com/gpu:g0,g1 u2/other=...", of container
 * "main" unless it says so, "g0@1" on a NUMA node; read just now, or from `read_ms` on. */
void kubelet_holds(struct world *w, const char *text);
/* It was given the list of sandboxes. */
void kubelet_lists(struct world *w);
void kubelet_holds_read(struct world *w, uint64_t read_ms, const char *text);

/* What the runtime lists: "u1/main" running, "u1/main!" exited, "u1" a pod without containers,
 * "~u1/main" the same in a sandbox that is not ready, "u1/main=vendor.com/gpu:g0" with a token;
 * sandbox "s-UID", container "c-UID-CONTAINER". */
void runtime_listed(struct world *w, const char *list);

/* Set up: a plugin serves g0 and g1, and pod u1's container "main" runs with g0. */
int u1_runs_setup(void **state);
/* Then the shim is killed and started; the plugin serves on. */
void restart_serving(struct world *w);

#endif
