/*
 * A plugin's registration socket, which says and does what a test tells it.
 */
#ifndef TESTS_UNIT_REGISTERING_H
#define TESTS_UNIT_REGISTERING_H

#include "tests/unit/rpc_fixture.h"

#define REGISTERING_VERSIONS_MAX 4

struct registering {
    const char *type, *name, *endpoint;
    const char *versions[REGISTERING_VERSIONS_MAX];
    size_t versions_len;
    size_t padding;  /* bytes of a version more */
    int info_code;   /* what GetInfo ends with */
    int notify_code; /* and NotifyRegistrationStatus */
    bool mute;       /* GetInfo is not answered */

    struct rpc_server *server;
    struct rpc_incoming *held; /* a GetInfo that was not answered */
    char path[128];
    unsigned asked, notified;
    bool registered;  /* what it was notified of last, */
    char error[2048]; /* with these words */
};

/* Serves at `path`. */
void registering_serve(struct registering *plugin, struct world *world, const char *path);
/* Its socket is gone, too. One that is not served is left alone. */
void registering_close(struct registering *plugin);

#endif
