/*
 * The relay: the socket the kubelet talks to, and the connections made through it.
 */
#ifndef SHIM_RELAY_RELAY_H
#define SHIM_RELAY_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "shim/fd_store.h"
#include "shim/relay/calls.h"
#include "shim/relay/connection.h"

struct relay;

struct relay_counts {
    struct tally_counts tally;
    struct connection_counts passed;
    uint64_t accepted; /* connections */
    uint64_t resumed;  /* of a daemon before this one, gone on with */
    uint64_t lost;     /* of those that could not be gone on with */
    unsigned open;     /* now */
    bool runtime_away; /* the last try to reach it failed */
};

/*
 * Relays to `runtime_path` whoever connects: to `listen_path` once relay_listen() has made it, or
 * to `fd` if that is not negative (a listening socket from the service manager, then owned by the
 * relay). A socket that it makes is kept in `store` (NULL: there is none), and gone on with from
 * there. With `tally` calls are counted one by one. The paths, `store` and `calls` are borrowed
 * until the relay has stopped.
 */
struct relay *relay_start(uv_loop_t *loop, const char *listen_path, int fd, struct fd_store *store,
                          const char *runtime_path, struct calls *calls, bool tally);

/* What it has counted, borrowed as long as the relay is there. */
const struct relay_counts *relay_counts(const struct relay *relay);

/*
 * Listens where clients look for it (0600; its directory is made, 0755), for the first time and
 * again when the file was removed, also that of a socket from the service manager, which is then
 * ours until the next start. Of the kind keeper_serve (rpc/keeper.h), `relay` its user; the errors
 * are socket_file_make()'s.
 */
int relay_listen(void *relay) __attribute__((warn_unused_result));

/*
 * Closes the socket, leaves to the next process the connections that it can go on with, asks every
 * other client to close when its calls are over, closes those that have not after `drain_ms`, then
 * runs `done` from the loop; the relay is gone then. The socket file is
 * removed if relay_listen() made it. In one of the service manager's connections wait for the next
 * process.
 */
void relay_stop(struct relay *relay, uint64_t drain_ms, void (*done)(void *user), void *user);

/* While it stops: closes what is left now. */
void relay_stop_now(struct relay *relay);

#endif
