/*
 * Who has a device, and whether a container of theirs may run with it.
 *
 * The container's own allocation of the resource, `wanted->has`, is in nobody's way here.
 */
#ifndef DEVICEMGR_RULES_HOLDERS_H
#define DEVICEMGR_RULES_HOLDERS_H

#include <stdbool.h>

#include "devicemgr/rules/look.h"
#include "devicemgr/rules/wanted.h"

/* Some of those who hold devices. A zeroed struct is nobody. */
struct holders {
    const struct allocation **v;
    size_t len;
};

/* Whether the holder of the device `id` is in the way. GO: no container of it can be running. If
 * the runtime is to be asked about it, it is added to `ask`: unless it is being asked already, or
 * did not answer a moment ago: then at `again_ms`. */
struct look holders_look_at(const struct state *state, const struct demand *demand,
                            const struct allocation *holder, const char *id, struct holders *ask);

/* The same of all others that hold one of the devices: the first that is in the way. */
struct look holders_of_ids(const struct state *state, const struct wanted *wanted,
                           const struct ids *ids, struct holders *ask);

/* Earlier containers of the pod may hand their devices on: whether it is known of each that it does
 * not run any more. GO, or WAIT. */
struct look holders_of_pod(const struct state *state, const struct wanted *wanted,
                           struct holders *ask);

/* Whether a later container of the pod runs with one of the devices that this one has. */
bool holders_handed_on(const struct state *state, const struct wanted *wanted);

/* Whether the kubelet has given one of the devices that this one has to another container. */
bool holders_promised(const struct state *state, const struct wanted *wanted);

/* Whether the device is free for this pod; sets `reused` if an earlier container of it had it. */
bool holders_none(const struct state *state, const struct wanted *wanted, const char *id,
                  bool *reused);

/* Whether the holder has the device in the place of one that it has lost, and a container of it may
 * run. */
bool holders_stand_in(const struct allocation *holder, const char *id);
/* Whether there is one among the others. */
bool holders_displaced(const struct state *state, const struct wanted *wanted, const char *id);

/* Whether both may have the device, each by claims. */
bool holders_share(const struct state *state, const struct allocation *one,
                   const struct allocation *other, const char *id);

/* Whether the holder keeps its devices from other pods: a container of it may run, or be made
 * again. */
bool holders_keeps(const struct state *state, const struct allocation *holder);
/* Whether the kubelet's books keep for the asker's pod what it was given, which has others in the
 * place of that. */
bool holders_keeps_asked(const struct state *state, const struct allocation *asker);
/* Whether nobody has the device so, and the kubelet has not given it away: as far as holders go, a
 * pod that is new could have it. */
bool holders_nobody(const struct state *state, const char *resource, const char *id);

/* Containers that the checkpoint does not know of may run, until the runtime has listed all of
 * them: nothing new is given out before (the kubelet, too, waits for its sources to be ready). With
 * rows of it lost they may be in the making, too, and a later list is waited for. GO or WAIT. */
struct look holders_listed(const struct state *state, const struct wanted *wanted);

#endif
