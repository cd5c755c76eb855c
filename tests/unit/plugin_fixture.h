/*
 * A device plugin of our own making, on the project's gRPC server, whose every answer the test
 * chooses.
 */
#ifndef TESTS_UNIT_PLUGIN_FIXTURE_H
#define TESTS_UNIT_PLUGIN_FIXTURE_H

#include <stdbool.h>
#include <sys/types.h>

#include "shim/rpc/rpc.h"
#include "tests/unit/waiting.h"

struct plugin {
    /* set by the test */
    bool pre_start;
    bool prefers;
    bool without_options; /* GetDevicePluginOptions is UNIMPLEMENTED */
    int options_code;     /* else its status */
    bool hold;            /* calls stay open, the last one in `held` */
    int code;             /* status of the calls that are not held */
    const char *env;      /* Allocate's answer: DEVICE=<env> */

    /* seen */
    struct rpc_server *server;
    struct rpc_incoming *stream; /* ListAndWatch; NULL while none */
    unsigned streams;
    unsigned streams_over; /* given up by the client */
    struct rpc_incoming *held;
    unsigned allocates, prefers_seen, prestarts;
    unsigned cancelled; /* held calls given up by the client */
    char ids[256];      /* of the last call, joined by ',' */
    char path[128];
};

/* Serves on <world's directory>/<name>. What the test set in *plugin stays. */
void plugin_serve(struct plugin *plugin, struct world *world, const char *name);
void plugin_serve_in(struct plugin *plugin, struct world *world, const char *dir, const char *name);
/* Sends a list: ids joined by ',', a '!' in front of one makes it unhealthy. */
void plugin_list(struct plugin *plugin, const char *ids);
void plugin_end_stream(struct plugin *plugin, int code, const char *message);
void plugin_stop(struct plugin *plugin);
/* Calls Register on `path` for it and waits for the answer, whose code is returned. `message` may
 * be NULL. */
int plugin_register(struct world *world, const char *path, const char *socket_name,
                    const char *resource, char *message, size_t message_bytes);
/* Serves in `dir` and registers at its kubelet.sock, which must go well. */
void plugin_come(struct plugin *plugin, struct world *world, const char *dir, const char *name,
                 const char *resource);
/* And lists, see plugin_list(). */
void plugin_come_listing(struct plugin *plugin, struct world *world, const char *dir,
                         const char *name, const char *resource, const char *ids);

/* Removes a directory and the files in it; there may be none. */
void remove_dir(const char *dir);

#endif
