/*
 * Keeps a socket served: tries when it is started; tries again what failed, after pauses that grow;
 * and looks every second whether what it made is still there, since a directory may be emptied,
 * removed and made anew under a running daemon.
 *
 * What fails is logged once until it fails in another way, and so is its end.
 */
#ifndef SHIM_RPC_KEEPER_H
#define SHIM_RPC_KEEPER_H

#include <uv.h>

#define KEEPER_LOOK_MS 1000
#define KEEPER_AGAIN_MS_MIN 100
#define KEEPER_AGAIN_MS_MAX 5000

struct keeper;

/* Of the owner: sees to it that the socket is served. 0: it is, as before; 1: it is now, and was
 * not (any more); or a negative errno. */
typedef int keeper_serve(void *user);

/* `what` begins the log's lines, e.g. "listen = \"/run/x.sock\""; copied. Calls `serve` once before
 * return and then from the loop. */
struct keeper *keeper_start(uv_loop_t *loop, const char *what, keeper_serve *serve, void *user);

/* Why the last try failed, and since when none has worked (boot_now_ms()); NULL: it did not. */
const char *keeper_trouble(const struct keeper *keeper, uint64_t *since_ms);

/* `serve` is not called any more; frees it in a later turn of the loop. Accepts NULL. */
void keeper_stop(struct keeper *keeper);

#endif
