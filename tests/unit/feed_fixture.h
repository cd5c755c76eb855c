/*
 * The daemon's feed on a real core, whose resources are built-in devices and a plugin's, and calls
 * on it as a bridge makes them.
 */
#ifndef TESTS_UNIT_FEED_FIXTURE_H
#define TESTS_UNIT_FEED_FIXTURE_H

#include <sys/stat.h>
#include <unistd.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "shim/boot_clock.h"
#include "shim/kubelet/feed.h"
#include "tests/unit/kubelet_files.h"
#include "tests/unit/plugin_fixture.h"

#define GPU "v.com/gpu"
#define NULL_DEVICE "v.com/null"
#define KUBELET 77

struct fixture {
    struct world *world;
    struct config config;
    struct config_device device;
    char state_dir[64], plugin_dir[64], kubelet_dir[64], socket[64], listen[96];
    struct host *host;
    struct feed *feed;
    struct plugin plugin; /* does not serve yet */
    unsigned changed;
    bool stopped;
    struct rpc_channel *channel;
};

/* A call on the feed, and what came of it. */
struct question {
    struct rpc_call *call;
    unsigned messages;
    unsigned resources; /* of the last message of Watch */
    char name[64];      /* the first of them, and of it the first device */
    char id[64];
    uint64_t version;
    bool held;
    bool healthy;
    unsigned nodes;    /* of NUMA, */
    int64_t node;      /* and the first of them */
    uint64_t first_ms; /* when the first message came */
    unsigned ids;      /* of Prefer */
    bool over;
    int code;
    char words[128];
};

/* cmocka fixtures: *state is a struct fixture, of which nothing runs yet. */
int setup(void **state);
int teardown(void **state);

/* ---- the daemon ---- */

/* The core and its host; the feed; a bridge's connection to it; start() is all three. */
void start_manager(struct fixture *f);
void start_feed(struct fixture *f);
void connect_feed(struct fixture *f);
void start(struct fixture *f);
void stop_feed(struct fixture *f);
void stop_daemon(struct fixture *f);

/* ---- calls: all begin with an empty *q, which is borrowed until the end ---- */

void watch(struct fixture *f, struct question *q);
/* And waits for the first message. */
void watch_first(struct fixture *f, struct question *q);
/* And waits for the end. */
void report(struct fixture *f, struct question *q, Bridge__V1__ReportRequest *request);
/* All of one resource taken by KUBELET. */
void report_one(struct fixture *f, struct question *q, const char *name, uint64_t version);
/* Prefer, of g0, g1 and g2; `deadline_ms` 0: none. The second waits for the end, whose code it
 * returns. */
void ask(struct fixture *f, struct question *q, const char *resource, int32_t size,
         uint64_t deadline_ms);
int ask_answered(struct fixture *f, struct question *q, const char *resource, int32_t size,
                 uint64_t deadline_ms);

/* ---- what there is ---- */

/* Makes its directory, too. */
void make_kubelet_file(struct fixture *f, const char *text);
/* It lists so (plugin_list()). */
void start_plugin(struct fixture *f, const char *ids);
/* A plugin is the one thing that is shown, and has listed that. */
void start_with_list(struct fixture *f, const char *ids);
/* Whether those are feed_taken()'s words for KUBELET. */
bool says(struct fixture *f, const char *words);

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
