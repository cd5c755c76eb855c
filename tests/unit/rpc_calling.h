/*
 * A client of ours, against our own server (rpc_served.h) and against raw bytes.
 */
#ifndef TESTS_UNIT_RPC_CALLING_H
#define TESTS_UNIT_RPC_CALLING_H

#include "tests/unit/rpc_served.h"

/* What comes of a call. */
struct result {
    bool over;
    bool got;
    int code;
    char text[256];
    unsigned messages;
    size_t devices; /* of the last message */
    bool cancel_in_message;
    bool close_in_message;
    bool close_in_done;
    void (*in_message)(struct result *result); /* NULL: nothing else */
    struct rpc_channel *channel;
};

/* For rpc_channel_call(); its user is a struct result. */
extern const struct rpc_call_ops call_ops;

/* What is told of a channel. */
struct link_events {
    bool connected;
    bool lost;
    char reason[256];
    bool close_in_lost;
};

/* For rpc_channel_open(); its user is a struct link_events. */
extern const struct rpc_channel_ops channel_ops;

/* To the world's path. */
struct rpc_channel *open_channel(struct world *world, struct link_events *events);

enum answers { UNARY, STREAM };

struct rpc_call *start(struct rpc_channel *channel, const char *path, enum answers answers,
                       uint64_t deadline_ms, struct result *result);

/* ---- against our own server ---- */

/* A server of ours and a channel to it; a test may close either. */
struct pair {
    struct world *world;
    struct served served;
    struct link_events events;
    struct rpc_channel *channel;
};

/* cmocka fixtures: *state is a struct pair. */
int pair_setup(void **state);
int pair_teardown(void **state);
void close_channel(struct pair *p);

/* Calls and waits for the end, whose code it returns. */
int call(struct pair *p, const char *path, struct result *result);

/* ---- against a raw server ---- */

#define END NGHTTP2_FLAG_END_STREAM

/* Fields, name and value in turn, up to NULL: of an answer that is gRPC, and of its good end. */
extern const char *const headers_ok[];
extern const char *const trailers_ok[];

/* A raw server and a channel to it. */
struct raw_pair {
    struct world *world;
    struct bytes greeting; /* empty SETTINGS, if the test does not choose others */
    struct bytes answer;
    struct raw raw;
    struct link_events events;
    struct rpc_channel *channel;
    struct result result;
};

/* cmocka fixtures: *state is a struct raw_pair, which is not open yet. */
int raw_setup(void **state);
int raw_teardown(void **state);

void open_raw(struct raw_pair *p);
void close_raw(struct raw_pair *p);
/* One call on the open pair, which gets `answer`; the pair is closed then. The call's code. */
int run_opened(struct raw_pair *p, enum answers answers);
/* Opens it before. */
int run(struct raw_pair *p, enum answers answers);

#define PAIR_TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)
#define RAW_TEST(f) cmocka_unit_test_setup_teardown(f, raw_setup, raw_teardown)
#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

#endif
