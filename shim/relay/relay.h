/*
 * The relay: the socket the kubelet talks to, and the connections made through it.
 */
#ifndef SHIM_RELAY_RELAY_H
#define SHIM_RELAY_RELAY_H

#include <uv.h>

#include "shim/relay/calls.h"

struct relay;

/*
 * Listens at `listen_path` (0600; see rpc/listen.h for what becomes of a file that is there), or on
 * `fd` if that is not negative (a listening socket from the service manager, then owned by the
 * relay), and relays to `runtime_path`. 0 and *out, or a negative errno. The paths and `calls` are
 * borrowed until the relay has stopped.
 */
int relay_start(uv_loop_t *loop, const char *listen_path, int fd, const char *runtime_path,
                struct calls *calls, struct relay **out) __attribute__((warn_unused_result));

/*
 * Closes the socket, asks every client to close when its calls are over, closes those that have not
 * after `drain_ms`, then runs `done` from the loop; the relay is gone then. The socket file is
 * removed, unless the socket came from the service manager: then connections wait in it for the
 * next process.
 */
void relay_stop(struct relay *relay, uint64_t drain_ms, void (*done)(void *user), void *user);

/* While it stops: closes what is left now. */
void relay_stop_now(struct relay *relay);

#endif
