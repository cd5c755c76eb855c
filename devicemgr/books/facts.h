/*
 * What the pods, their sandboxes and the allocations say together.
 */
#ifndef DEVICEMGR_BOOKS_FACTS_H
#define DEVICEMGR_BOOKS_FACTS_H

#include <stdbool.h>

struct devicemgr_container;
struct pod;
struct sandbox;
struct shutdown_pod;
struct state;

/* Whether the pod holds any device: a container of it may run, or a create that waits has one. */
bool facts_pod_holds(const struct state *state, const char *pod_uid);
/* Whether a container of the pod may run with any, in whichever sandbox: it was found, or what
 * became of its create is not known. One that waits here does not count. */
bool facts_pod_runs(const struct state *state, const struct pod *pod);
/* Whether the pod is over: no container of it runs, and none will be made. It is gone, or somebody
 * had its newest sandbox stopped. Not if that was only found dead: after a reboot all are, and the
 * kubelet goes on with their pods. One that was never heard of is not over. */
bool facts_pod_over(const struct state *state, const char *pod_uid);
/* Whether the runtime knew the pod last in an earlier boot. */
bool facts_pod_of_earlier_boot(const struct state *state, const struct pod *pod);
/* Whether it is evicted from here, and so kept from coming back. */
bool facts_pod_evicted(const struct state *state, const char *pod_uid);
/* Whether it is not stopped, and the runtime says that it is ready, as far as it has been heard. */
bool facts_sandbox_ready(const struct sandbox *sandbox);
/* Of one that is ended in a shutdown: nothing of it is waited for any more. */
bool facts_pod_has_left(const struct state *state, const struct shutdown_pod *leaving);
/* Whether RemovePodSandbox has passed for it, or a list of the runtime had it no more. */
bool facts_sandbox_removed(const struct state *state, const char *sandbox_id);
/* Of a listed container that was created only: whether nobody will start it, since its sandbox was
 * stopped, or is dead and not its pod's newest. containerd lists one so for as long as it is there
 * if the machine went down before it was started. */
bool facts_never_starts(const struct state *state, const struct devicemgr_container *container);

#endif
