/*
 * A driver of dynamic resource allocation: by its name, all instances that are registered.
 *
 * An instance is registered, connected or not, and gone once it is deregistered. The driver can be
 * called while one of them is connected: the one that registered last is. It outlives its instances
 * for as long as something is kept of it.
 *
 * One that is away may have *moved*: it has registered with the kubelet itself, and is the
 * kubelet's from then on, until it is connected here again. Its instances there are called for
 * nothing but what is left of it here.
 */
#ifndef DEVICEMGR_THINGS_DRIVER_H
#define DEVICEMGR_THINGS_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/ids.h"
#include "devicemgr/things/mem.h"

/* One socket that it serves at. */
struct driver_instance {
    uint64_t number; /* the caller's */
    char *endpoint;
    struct ids services; /* as it told them */
    bool elsewhere;      /* with the kubelet itself */
    bool connected;
    uint64_t since_ms; /* that it is, or is not */
    struct driver *driver;
    struct driver_instance *prev, *next;
    UT_hash_handle hh;
};

/* Written by driver.c alone, but for `stored`, and `restored` and `was_elsewhere` of a row. */
struct driver {
    char *name;
    struct ids services;               /* as the newest instance has told them */
    struct driver_instance *instances; /* who registered first first */
    struct driver_instance *elsewhere; /* likewise, with the kubelet itself */
    uint64_t connected_ms;             /* some instance is connected: since when */
    uint64_t away_ms;                  /* none is: since when */
    char *why;                         /* likewise; "": not known */
    bool wiped;                        /* likewise; its ResourceSlices are gone since then */
    bool moved;        /* likewise; it was seen with the kubelet itself since then, */
    uint64_t moved_ms; /* and when that was, or when this process began, if that was later */
    bool
        was_elsewhere; /* so it was at some time: it may have claims of which nothing is known here,
                           or the kubelet those of which something is */
    bool restored;     /* it is of before this process, which it has not been connected to yet */
    bool stored;       /* the store may have a row of it; checkpoint.c's */
    UT_hash_handle hh;
};

/* A zeroed struct is an empty table. */
struct drivers {
    struct driver *by_name;
    struct driver_instance *by_number;
    uint64_t wipes;   /* how often the slices of one were removed, since the start */
    uint64_t changes; /* how often something has changed that is told of them */
};

void drivers_fini(struct drivers *table);
size_t drivers_len(const struct drivers *table);
/* NULL: there is none. */
const struct driver *drivers_find(const struct drivers *table, const char *name);
const struct driver_instance *drivers_find_instance(const struct drivers *table, uint64_t number);
/* The same, to be changed. */
struct driver *drivers_edit(struct drivers *table, const char *name);
/* By name, in its natural order; the caller frees the array. */
const struct driver **drivers_sorted(const struct drivers *table, size_t *len);

/* Finds or adds; one that is added is away since now. `services` count, whatever they were. */
struct driver *drivers_ensure(struct drivers *table, uint64_t now_ms, const char *name,
                              const struct ids *services);
/* It has no instance here. */
void drivers_remove(struct drivers *table, struct driver *driver);

/* NULL: none is called so. */
const struct driver_instance *driver_find_endpoint(const struct driver *driver,
                                                   const char *endpoint);
/* Of one that is away. */
void driver_set_wiped(struct driver *driver, bool wiped);
void driver_set_moved(struct driver *driver, uint64_t now_ms);
/* The one to call; NULL: it is away. */
const struct driver_instance *driver_usable(const struct driver *driver);
/* The same; of one that has moved, the one that can be called for what is left of it. NULL: none
 * can. */
const struct driver_instance *driver_callable(const struct driver *driver);

/* Not connected yet. There is none of this number. */
void drivers_add_instance(struct drivers *table, struct driver *driver, uint64_t now_ms,
                          uint64_t number, const char *endpoint, const struct ids *services);
/* The same of one with the kubelet itself. */
void drivers_add_elsewhere(struct drivers *table, struct driver *driver, uint64_t now_ms,
                           uint64_t number, const char *endpoint, const struct ids *services);
void drivers_set_connected(struct drivers *table, uint64_t number, uint64_t now_ms);
/* It is not connected any more, if it was. */
void drivers_set_lost(struct drivers *table, uint64_t number, uint64_t now_ms, const char *why);
/* Of one that is away. */
void drivers_set_why(struct drivers *table, struct driver *driver, const char *why);
/* It is not connected. */
void drivers_remove_instance(struct drivers *table, uint64_t number);

#endif
