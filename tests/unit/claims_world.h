/*
 * Drivers and their claims, in the world of devicemgr_world.h.
 */
#ifndef TESTS_UNIT_CLAIMS_WORLD_H
#define TESTS_UNIT_CLAIMS_WORLD_H

#include "devicemgr/dra.h"
#include "devicemgr_world.h"

#define DRIVER "gpu.example.com"
#define OTHER_DRIVER "nic.example.com"

/* cmocka fixture: as world_setup(), and all rows are in. */
int claims_setup(void **state);

void driver_register(struct world *w, uint64_t instance, const char *name, const char *endpoint);
void driver_connected(struct world *w, uint64_t instance);
void driver_lost(struct world *w, uint64_t instance, const char *why);
void driver_deregister(struct world *w, uint64_t instance);
/* Registered at "/x/INSTANCE.sock" and connected; its row is stored, and nothing of it is left to
 * expect. */
void driver_up(struct world *w, uint64_t instance, const char *name);

/* Claim "uid" is ns/UID. */
void prepare_of(struct world *w, uint64_t number, const char *driver, const char *uid);
void unprepare_of(struct world *w, uint64_t number, const char *driver, const char *uid);
/* Of DRIVER. */
void prepare(struct world *w, uint64_t number, const char *uid);
void unprepare(struct world *w, uint64_t number, const char *uid);
/* One of a batch of DRIVER's, without devicemgr_run(). */
void ask_in_batch(struct world *w, uint64_t number, bool prepares, struct devicemgr_batch batch,
                  const char *uid);
void claim_cancelled(struct world *w, uint64_t number);

/* What a driver answers, as bytes (world_response()); how many. A device's CDI names may stand
 * behind it: "gpu-0:c1-gpu-0+common" has "example.com/dev=c1-gpu-0" and "example.com/dev=common";
 * else it is its own. "gpu-0@r": for the claim's request "r". "*gpu-0": shared on purpose;
 * "**gpu-0": another share of it. */
size_t claim_response(const char *devices, uint8_t bytes[1024]);
/* Of w->call. */
void claim_answered(struct world *w, const char *devices);
void claim_unprepared(struct world *w);
void claim_in_use(struct world *w);
void claim_failed(struct world *w, int code, const char *message);

void slice_told(struct world *w, struct devicemgr_slice slice);
/* A slice of this node has this one device of DRIVER. */
void slice_is(struct world *w, const char *pool, const char *device);
/* The claim has this device of DRIVER now, as the cluster says. */
void claim_allocated(struct world *w, const char *uid, const char *pool, const char *device);

/* A claim of DRIVER, which is up: asked for by `number`, and sent. */
void claim_sent(struct world *w, uint64_t number, const char *uid);
/* The whole way of a claim of DRIVER, which is up: asked for by `number`, answered with
 * `response`. */
void claim_prepared(struct world *w, uint64_t number, const char *uid, const char *response);

/* What devicemgr_drivers() says, as "name+ name! name?": connected, registered, known; with "(n)"
 * claims, "(n-m)" of which m are owed, if there are any. */
void expect_drivers(struct world *w, const char *expected);
/* Those of the driver, with blanks between. */
void expect_services(struct world *w, const char *driver, const char *expected);
/* The state in the row on disk; NULL: there is none. Static. */
const char *claim_on_disk(const struct world *w, const char *uid, const char *driver);

#endif
