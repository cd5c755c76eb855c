/*
 * A resource whose endpoint at the kubelet is not the bridge's any more, though its stream is open.
 *
 * A plugin that registers with the kubelet itself, for a resource that the bridge shows, takes the
 * endpoint over; once it goes, or has no healthy device left, every pod that asks for the
 * resource fails, and nothing tells the bridge. The kubelet's checkpoint does: it has no healthy
 * device of the resource. Once that has lasted for a while the bridge is to register anew; if that
 * does not help, again after a pause that doubles. While the other plugin serves there are healthy
 * devices, its own: it is left alone.
 *
 * No I/O, and no clock: times are those of boot_now_ms().
 */
#ifndef SHIM_KUBELET_DISPLACED_H
#define SHIM_KUBELET_DISPLACED_H

#include <stdbool.h>
#include <stdint.h>

/* More than a kubelet that starts takes to write its checkpoint for all lists, and we to read
 * it. */
#define DISPLACED_PAUSE_MS_MIN 5000
#define DISPLACED_PAUSE_MS_MAX (5 * 60 * 1000)

/* Starts zeroed. */
struct displaced {
    uint64_t pause_ms; /* from since_ms to the next registration; 0: it is not displaced */
    uint64_t since_ms;
};

enum displaced_seen {
    DISPLACED_UNKNOWN, /* the bridge has not brought it to the kubelet, or nothing tells */
    DISPLACED_NO,
    DISPLACED_YES,
};

/* True: it is to be registered anew. DISPLACED_UNKNOWN changes nothing: a registration that does
 * not help is not known at once, and the next one is not to come the sooner for it. */
bool displaced_step(struct displaced *displaced, enum displaced_seen seen, uint64_t now_ms);

/* When the next step is due if it stays displaced; UINT64_MAX: it is not. */
uint64_t displaced_next_ms(const struct displaced *displaced);

#endif
