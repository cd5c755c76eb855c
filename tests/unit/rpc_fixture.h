/*
 * A world for the gRPC tests: a loop, a directory, a guard against hanging, and
 * a peer that speaks raw bytes. Its teardown fails on a handle that is still
 * open, a descriptor or a file left behind; AddressSanitizer sees the bytes.
 */
#ifndef TESTS_UNIT_RPC_FIXTURE_H
#define TESTS_UNIT_RPC_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>
#include <uv.h>

#include "shim/rpc/rpc.h"

#define WORLD_GUARD_MS 120000
#define RAW_BYTES_MAX (256 * 1024)

struct world {
    uv_loop_t loop;
    uv_timer_t guard;
    char dir[32];
    char path[64];
    int fds;
};

/* cmocka fixtures: *state is a struct world. */
int world_setup(void **state);
int world_teardown(void **state);
/* The same for fixtures that have a world: what teardown is to return. */
struct world *world_new(void);
int world_free(struct world *world);

/* Runs the loop until *flag; fails the test if that takes too long. */
void world_wait(struct world *world, const bool *flag);

/* Runs the loop until nothing is left to do at once. */
void world_settle(struct world *world);

/* Bytes of HTTP/2 by hand. */
struct bytes {
    uint8_t data[RAW_BYTES_MAX];
    size_t len;
};

void bytes_add(struct bytes *bytes, const void *data, size_t len);
void bytes_frame(struct bytes *bytes, uint8_t type, uint8_t flags, uint32_t stream_id,
                 const void *payload, size_t len);
/* A HEADERS frame of literals without indexing; `fields` are name and value in
 * turn, up to NULL. */
void bytes_headers(struct bytes *bytes, uint8_t flags, uint32_t stream_id,
                   const char *const *fields);
/* A DATA frame with one gRPC message. */
void bytes_message(struct bytes *bytes, uint8_t flags, uint32_t stream_id, uint8_t compressed,
                   const void *message, size_t len);
/* The client's preface and empty SETTINGS. */
void bytes_preface(struct bytes *bytes);
/* A server's empty SETTINGS, and nothing else: what was in `bytes` is gone. */
void bytes_settings(struct bytes *bytes);

/* A peer that reads and writes raw bytes, on either side. */
struct raw {
    uv_pipe_t listener;
    uv_pipe_t pipe;
    uv_connect_t connect;
    struct bytes got;
    nghttp2_hd_inflater *inflater;
    char fields[16384]; /* of all header blocks that came: "name=value\n" */
    bool listening;
    bool connected;
    bool ended;
    bool write_failed;
    bool request_whole; /* a frame with END_STREAM came on stream 1 */
    bool reset;         /* RST_STREAM came for stream 1 */
    uint32_t reset_code;
    size_t parsed;
    const struct bytes *greeting; /* written at once when connected; borrowed; may be NULL */
    const struct bytes *answer;   /* written when request_whole turns true; may be NULL */
    bool hang_up;                 /* and then hang up */
    size_t step;                  /* writes go out in pieces of that many bytes; 0: whole */
};

void raw_listen(struct raw *raw, struct world *world);
void raw_connect(struct raw *raw, struct world *world);
/* `bytes` borrowed until the peer has it all. */
void raw_write(struct raw *raw, const struct bytes *bytes);
/* The peer's end. */
void raw_hang_up(struct raw *raw);
void raw_close(struct raw *raw);
/* Whether `text` is somewhere in the header fields that came. */
bool raw_got(const struct raw *raw, const char *text);

/* A server that listens at an absolute `path`, in a directory that is there. After a failure there
 * is none, and the loop must run once more to close what was opened. */
int serve_at(uv_loop_t *loop, const char *path, const struct rpc_method *methods,
             size_t methods_len, void *user, struct rpc_server **out)
    __attribute__((warn_unused_result));

/* Ends a call with one message, or with that code and those words; without memory for it
 * RESOURCE_EXHAUSTED. */
void incoming_answer(struct rpc_incoming *call, const ProtobufCMessage *message, int code,
                     const char *words);
/* Its server takes no more calls on that connection, as one that ends gracefully, and keeps it for
 * those that it has. */
void incoming_goes_away(struct rpc_incoming *call);

#endif
