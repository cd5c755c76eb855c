/*
 * A device plugin of the simulated node, one per resource but the built-in one; and the built-in
 * devices, which change in the same ways.
 */
#ifndef TESTS_SIM_PLUGIN_H
#define TESTS_SIM_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/plugin_call.h"
#include "tests/sim/resources.h"
#include "tests/sim/rng.h"

struct world;

#define CONNECTIONS_MAX 16
#define PLUGIN_CALLS_MAX 64
/* The port gives up on a silent socket by then. */
#define DIAL_MS_MAX 10000

/* A connection the core asked for. */
struct connection {
    uint64_t number; /* 0: free slot */
    size_t resource;
    unsigned socket;   /* which of the plugin's names it dials */
    uint64_t instance; /* of the plugin it reached; 0: none yet */
    bool registered;   /* for a Register call */
    bool options;      /* given to the core */
    bool listed;
    unsigned healthy; /* of the last list given to the core */
    unsigned devices; /* in it */
    size_t capacity;  /* all that were in it */
    bool pre_start;
    bool preferred;
    uint64_t prestarted_ms[1u << DEVICES_MAX]; /* when PreStartContainer of these was answered */
};

struct plugin {
    size_t resource;
    uint64_t instance; /* counts its starts */
    bool up;
    bool hung;
    bool moved;      /* it serves the shim; else the kubelet itself (move.h) */
    unsigned socket; /* which of its names it listens on */
    bool pre_start;
    bool preferred;
    unsigned ever; /* masks: those that ever were, existing, listed, healthy */
    unsigned devices;
    unsigned listed;
    unsigned healthy;
    bool odd;            /* lists odd ids as well */
    size_t crowd;        /* and so many more */
    unsigned version;    /* of a built-in device's host path */
    unsigned trouble;    /* percent of calls that go wrong */
    uint64_t registered; /* times the core knows of, in this life of the shim */
};

struct plugin_net {
    struct connection connections[CONNECTIONS_MAX];
    struct plugin_call calls[PLUGIN_CALLS_MAX];
    struct answer *answers;
    size_t answers_len;
    uint64_t failed_ms[RESOURCES_LEN]; /* when a call on the plugin last failed; 0: none did */
    uint64_t late_ms[RESOURCES_LEN];   /* or was not answered in time */
    uint64_t last_registration;
    uint64_t open_registrations[PLUGIN_CALLS_MAX]; /* 0: free slot */
    size_t registering; /* the resource of the Register call being told; RESOURCES_LEN: none */
};

void plugins_init(struct world *w);
void plugins_fini(struct world *w);
/* The shim died: connections and calls are gone. */
void plugins_shim_gone(struct world *w);
/* A new shim serves the registration socket. */
void plugins_shim_back(struct world *w);

void plugin_start(struct world *w, struct plugin *p);
void plugin_die(struct world *w, struct plugin *p);
/* Everything well again: up, all devices listed and healthy, and registered. */
void plugins_heal(struct world *w);
/* One of its devices is gone for good; at least one stays. */
void plugins_vanish(struct world *w, size_t resource);
/* Something goes wrong with it. */
void plugins_trouble(struct world *w, size_t resource);

/* The ports. */
void plugin_open(struct world *w, uint64_t number, const char *resource, const char *socket,
                 uint32_t uid);
void plugin_close(struct world *w, uint64_t number);
void plugin_register_done(struct world *w, uint64_t registration, int code, const char *message);

/* NULL: it is closed. */
struct connection *plugin_find_connection(struct world *w, uint64_t number);
/* Whether one is open that has its options, and may have a list yet. */
bool plugin_connected(const struct world *w, size_t resource);
/* The connection on which a resource's devices are usable, as far as the core was told; NULL:
 * none. */
const struct connection *plugin_usable(const struct world *w, size_t resource);
size_t plugin_registrations_open(const struct world *w);

#endif
