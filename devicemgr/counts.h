/*
 * What is counted, for metrics: looked up when it is asked for. `each` is called before return, and
 * must not send events.
 */
#ifndef DEVICEMGR_COUNTS_H
#define DEVICEMGR_COUNTS_H

#include <stddef.h>
#include <stdint.h>

struct devicemgr;

/* How many creates were refused for it, of every reason there is. Both texts are literals. */
void devicemgr_refusals(const struct devicemgr *mgr,
                        void (*each)(void *user, const char *reason, int code, uint64_t count),
                        void *user);
/* Creates that wait for the world to change. */
size_t devicemgr_creates_held(const struct devicemgr *mgr);
/* Plugins, by what their endpoint does (things/endpoint.h); built-in devices have none. */
struct devicemgr_endpoints {
    size_t connecting, active, grace, gone;
};
void devicemgr_endpoints(const struct devicemgr *mgr, struct devicemgr_endpoints *out);
/* How many devices of each resource containers that may run hold; one that two share counts twice.
 * In no order; the name is borrowed until `each` returns. */
void devicemgr_held(const struct devicemgr *mgr,
                    void (*each)(void *user, const char *resource, size_t devices), void *user);
/* How often containers were given devices in the place of what was lost. */
uint64_t devicemgr_replaced(const struct devicemgr *mgr);
/* Devices of exclusive resources with which several containers run, as the runtime says. What is
 * given here never is: somebody has made a container beside us, or two daemons stood on one
 * node. */
size_t devicemgr_held_twice(const struct devicemgr *mgr);

#endif
