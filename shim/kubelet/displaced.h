/*
 * A resource whose endpoint at the kubelet is not the bridge's any more, though its stream is open
 * (kubelet-facts §1, §2).
 *
 * A plugin that registers with the kubelet itself, for a resource that the bridge shows, takes the
 * endpoint over; once it goes, the endpoint is a stopped one, every pod that asks for the resource
 * fails, and nothing tells the bridge. The kubelet's checkpoint does: it has no healthy device of
 * the resource. Once that has lasted for a while the bridge is to register anew; if that does not
 * help, again after a pause that doubles. While the other plugin serves there are healthy devices,
 * its own: it is left alone.
 *
 * No I/O, and no clock: times are those of manager_now_ms().
 */
#ifndef SHIM_KUBELET_DISPLACED_H
#define SHIM_KUBELET_DISPLACED_H

#include <stdbool.h>
#include <stdint.h>

/* More than the kubelet takes to write its checkpoint for a list, and we to read it. */
#define DISPLACED_PAUSE_MS_MIN 1000
#define DISPLACED_PAUSE_MS_MAX (5 * 60 * 1000)

/* Starts zeroed. */
struct displaced {
    uint64_t pause_ms; /* from since_ms to the next registration; 0: it is not displaced */
    uint64_t since_ms;
};

/* `now`: whether the kubelet has let go of it (taken_is_undone()). True: it is to be registered
 * anew. */
bool displaced_step(struct displaced *displaced, bool now, uint64_t now_ms);

/* When the next step is due if nothing changes; UINT64_MAX: never. */
uint64_t displaced_next_ms(const struct displaced *displaced);

#endif
