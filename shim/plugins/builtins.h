/*
 * The built-in devices: the host's nodes that [[device]] tables name, found with glob(7) and
 * watched with inotify(7).
 *
 * A device's id is its path below the part of `path` that has no glob characters ("/dev/ttyUSB*"
 * gives "ttyUSB0", "/dev/dri/by-path/x" gives "x"): unique, and the same whatever else comes and
 * goes. With count > 1 each node gives that many devices, "-0", "-1"... behind the id. The nodes of
 * `paths` are one device, with the id that the first would have; it is healthy while all are there.
 *
 * The id is the path, so a node that changes its kind or numbers is another device under the same
 * id: the list is told once with that id unhealthy and then as it is, however fast the exchange
 * was. A container that was made before keeps the old numbers, and goes on holding the id until it
 * ends: what it sees under that path is not the new device, but who else wants the id waits for it.
 *
 * Without a descriptor or memory to look for them the devices of a glob are as they were, or not
 * told yet, until there is.
 */
#ifndef SHIM_PLUGINS_BUILTINS_H
#define SHIM_PLUGINS_BUILTINS_H

#include <stddef.h>

#include <uv.h>

#include "config/config.h"
#include "devicemgr/devicemgr.h"

/* Devices of one resource; what is beyond is left out, with a warning. As many as a device list of
 * a plugin is expected to stay cheap with. */
#define BUILTINS_DEVICES_MAX 100000
/* Changes are collected for so long: udev makes a node, then its links, then its owner. */
#define BUILTINS_SETTLE_MS 50
/* Where inotify cannot be had (its limits are per user), or what there is was not seen, look that
 * often. */
#define BUILTINS_POLL_MS 2000

struct builtins;

struct builtins_ops {
    /* The devices of one resource: once from the loop's first turn, or from builtins_look(), if
     * they are seen then, and whenever they changed. Borrowed until return. */
    void (*changed)(void *user, const char *resource,
                    const struct devicemgr_builtin_device *devices, size_t devices_len);
};

/* `devices`, `ops` and `user` are borrowed until the end. */
struct builtins *builtins_start(uv_loop_t *loop, const struct config_device *devices,
                                size_t devices_len, const struct builtins_ops *ops, void *user);

/* Looks at once, for who needs to know them all: changed() comes before return, as above. */
void builtins_look(struct builtins *builtins);

/* Stops, frees, then runs `done` from the loop. */
void builtins_stop(struct builtins *builtins, void (*done)(void *user), void *user);

#endif
