/*
 * What the kubelet is shown, read after each event and checked against what the plugins listed and
 * what is held. It stays as it is while the shim is dead: the bridge goes on showing it.
 */
#ifndef TESTS_SIM_SHOWN_H
#define TESTS_SIM_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/resources.h"

struct connection;
struct world;

struct shown_resource {
    bool there;
    uint64_t version;
    uint64_t mask_end_ms; /* on the core's clock */
    uint64_t hash;        /* of the whole list */
    unsigned listed;      /* masks */
    unsigned healthy;
    unsigned held;
    size_t others; /* ids besides the known ones */
};

struct shown {
    uint64_t version;
    bool fresh; /* read from the shim that lives */
    struct shown_resource resources[RESOURCES_LEN];
    unsigned base[RESOURCES_LEN];      /* healthy when the plugin was last usable, in this life */
    uint64_t usable_ms[RESOURCES_LEN]; /* when it last was so; 0: not in this life */
    uint64_t
        served_ms[RESOURCES_LEN];   /* the same, or what its row said at the start of this life */
    unsigned stored[RESOURCES_LEN]; /* what the row listed then */
    unsigned last[RESOURCES_LEN]; /* devices of the last list that the shim has, or has a row of */
    size_t last_len[RESOURCES_LEN];  /* all that were in it */
    bool served[RESOURCES_LEN];      /* at the last event */
    uint64_t lost_ms[RESOURCES_LEN]; /* when a connection was, first since; 0: none was */
    uint64_t away_ms[RESOURCES_LEN]; /* since when it is not, or the shim lives */
    uint64_t started_ms;             /* since when the shim lives, or a kubelet has started */
    uint64_t pods_ms; /* after a reboot: since when the kubelet has been told of its pods, or then
                       * at the latest; 0: no pod of before the reboot is waited for */
};

/* The plugin has listed. */
void shown_listed(struct world *w, const struct connection *connection);
/* A connection of the resource's plugin is lost. */
void shown_connection_lost(struct world *w, const struct connection *connection);
void shown_shim_started(struct world *w);
/* The shim starts with the rows the store has. */
void shown_rows(struct world *w);
/* The shim has heard of a sandbox that is ready. */
void shown_pods_told(struct world *w);
/* Since when the resource is away, as far as its grace period and the mask go; 0: there is none. */
uint64_t shown_since_ms(const struct world *w, size_t resource);
/* After each event. */
void shown_check(struct world *w);
/* Faults are over: what is shown is what is there. `idle`: and nobody holds anything. */
void shown_check_rest(struct world *w, bool idle);

#endif
