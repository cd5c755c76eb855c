/*
 * Containers that run with devices which the kubelet gave them before their plugin was moved over
 * to the shim. They carry no token, so that nobody but the kubelet's checkpoint says what they
 * have; and the kubelet rewrites that without a pod that was deleted by force, before it gives the
 * pod's devices to the next, while the containers may run on.
 *
 * So what the file says is *adopted* as long as it says so: an entry for a container that the
 * runtime's last list shows to run, of a resource that is served here, becomes an allocation like
 * any other that the kubelet made. It has no options, since the kubelet itself puts them into the
 * container's request, and injects nothing: that passes untouched.
 */
#ifndef DEVICEMGR_MACHINES_ADOPT_H
#define DEVICEMGR_MACHINES_ADOPT_H

#include <stdbool.h>

struct devicemgr_container;
struct sandbox;
struct state;

struct adopt {
    struct state *state;
    struct running *runnings; /* containers, by the last list */
};

/* The list that is being read shows it to run. False: so did the one before. */
bool adopt_running(struct adopt *adopt, const struct devicemgr_container *container,
                   const struct sandbox *sandbox);
/* What this list does not show to run does not; what was adopted stays. */
void adopt_forget_unlisted(struct adopt *adopt);
/* What has ended since the last list. */
void adopt_container_ended(struct adopt *adopt, const char *container_id);
void adopt_sandbox_ended(struct adopt *adopt, const char *sandbox_id);
void adopt_fini(struct adopt *adopt);

/* Adopts what is to be: after a list, and a reading of the kubelet's checkpoint. */
void adopt_all(struct adopt *adopt);
/* The resource is served here from now on; what runs is looked at anew if the kubelet gave away
 * some of it. */
void adopt_served(struct adopt *adopt, const char *resource);
/* A create of this container passes: it may run with what the kubelet has given it, but for what
 * the create names. */
void adopt_created(struct state *state, const char *sandbox_id, const char *pod_uid,
                   const char *container);

#endif
