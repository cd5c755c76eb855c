/*
 * Calls on the plugins, how they go, and what was answered.
 */
#ifndef TESTS_SIM_PLUGIN_CALL_H
#define TESTS_SIM_PLUGIN_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

struct connection;
struct world;

enum plugin_call_kind {
    PLUGIN_ALLOCATE,
    PLUGIN_PREFER,
    PLUGIN_PRESTART,
};

struct plugin_call {
    uint64_t number; /* 0: free slot */
    enum plugin_call_kind kind;
    uint64_t connection;
    unsigned ids;
    unsigned must;
    size_t size;
};

/* What a plugin once answered: the container's env tells the serial. */
struct answer {
    size_t resource;
    bool none; /* it was for no container, or for two */
    unsigned ids;
    unsigned boot;
    uint64_t registrations; /* of the resource, in this life of the shim */
    uint64_t incarnation;
    uint64_t hash; /* of the packed options */
};

/* The ports. */
void plugin_call(struct world *w, enum plugin_call_kind kind, uint64_t connection, uint64_t number,
                 unsigned ids, unsigned must, size_t size, uint64_t timeout_ms);
void plugin_call_cancel(struct world *w, uint64_t number);

/* The connection is gone, and its calls with it. */
void plugin_calls_drop(struct world *w, uint64_t connection);
size_t plugin_calls_open(const struct world *w);
/* Of Allocate, on this connection. */
size_t plugin_allocates_open(const struct world *w, uint64_t connection);

#endif
