/*
 * A DRA driver's endpoint in the test's own process, which says and does what a test tells it.
 */
#ifndef TESTS_UNIT_DRIVER_FIXTURE_H
#define TESTS_UNIT_DRIVER_FIXTURE_H

#include "tests/unit/rpc_fixture.h"

struct driver {
    struct rpc_server *server;
    char path[64];
    struct rpc_incoming *held;   /* a call that is not answered */
    struct rpc_incoming *stream; /* of health */
    unsigned prepares, unprepares, streams;
    size_t claims;       /* of the last call */
    const char *service; /* that the last call was on */
    char claim[256];     /* of the last call: "namespace/name uid", with ", " between */
    bool hold, without_health;
    int code;
    const char *error;    /* of each claim, */
    const char *error_of; /* or of this uid only */
    const char *skipped;  /* uid of one that it says nothing of */
    const char *besides;  /* and of one that it was not asked for */
};

/* Serves as `name` in the world's directory. */
void driver_serve(struct driver *driver, struct world *world, const char *name);
/* Its socket is gone, too. One that does not serve is left alone. */
void driver_end(struct driver *driver);

#endif
