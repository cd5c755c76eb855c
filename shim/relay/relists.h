/*
 * What a client's calls say of it as a kubelet: that it has started, that it knows the runtime's
 * sandboxes, and its first relist, which the gate may hold.
 *
 * Which processes are kubelets the gate says. On their connections Version is observed, and
 * lists of sandboxes until one was answered; while the process is armed, ListContainers and
 * StreamContainers are intercepted, on all its connections. One with a present, empty filter is
 * given to the gate, which holds it or not; all else goes on at once.
 *
 * A kubelet with the feature gate CRIListStreaming (alpha in 1.36) asks for streams in the place of
 * lists, with the same requests in the same order, on the same connection; where the runtime
 * answers UNIMPLEMENTED it asks again for the list, within the same deadline, and never again for a
 * stream.
 *
 * Of a process that is no kubelet by its name Version is observed, and after Version{version: ""}
 * its lists, until it is clear that it relists as a kubelet does, which is logged once for each
 * name. So it is with a process of another pid namespace, which has no name here.
 */
#ifndef SHIM_RELAY_RELISTS_H
#define SHIM_RELAY_RELISTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/relay/session.h"

struct relists;

/* Who is a kubelet, and whether its relist has to wait: to be asked of whoever knows, which is the
 * gate. No function of relists.h may be called from inside one of these. */
struct relists_gate {
    /* Whether the process is a kubelet. */
    bool (*watches)(void *user, pid_t pid);
    /* Whether its relists are to be given to hold(). */
    bool (*armed)(void *user, pid_t pid);
    /* It has called Version{version: ""}. True: it is a kubelet, and nobody has seen it before. */
    bool (*announced)(void *user, pid_t pid);
    /* It asks for the list with the empty filter. True: the call is held until relists_released()
     * comes for `hold`, a number that is not used twice. */
    bool (*hold)(void *user, pid_t pid, uint64_t deadline_ms, uint64_t hold);
    /* A held call is over without that. */
    void (*cancelled)(void *user, uint64_t hold);
    /* The runtime has answered such a list to it. */
    void (*answered)(void *user, pid_t pid);
};

struct relists *relists_new(void); /* NULL: out of memory */
/* Every session must be gone. Accepts NULL. */
void relists_free(struct relists *r);

/* From session_feed(); may not call back into the session. */
struct relists_ops {
    /* A kubelet that nobody has seen before has called. */
    void (*started)(void *user);
    /* A kubelet was given the list of all sandboxes; once for each connection. */
    void (*listed)(void *user);
};

/* Before the first session; borrowed until relists_free(). `gate` NULL, as at first: nobody is
 * watched. */
void relists_bind(struct relists *r, const struct relists_gate *gate, void *gate_user,
                  const struct relists_ops *ops, void *user);

/* A connection of process `pid` begins; 0: not known. `session` is borrowed until
 * relists_session_gone(), which may come for any session, and after which only relists_ended()
 * follows for its calls. */
void relists_session_begun(struct relists *r, struct session *session, pid_t pid);
void relists_session_gone(struct relists *r, struct session *session);

/* Calls of CRI_VERSION, and of lists and streams of sandboxes and containers, as in
 * session_owner_ops. `deadline_ms`: when the client will give it up, UINT64_MAX for never. */
void relists_request(struct relists *r, struct session *session, struct session_call *call,
                     uint64_t deadline_ms);
void relists_answered(struct relists *r, struct session_call *call, int status);
void relists_ended(struct relists *r, struct session_call *call);

/* A held call goes on; does nothing for one that is over. */
void relists_released(struct relists *r, uint64_t hold);

/*
 * The daemon stops. What is held, and what would be from now on, is refused UNAVAILABLE: the
 * kubelet relists again a second later, and asks the next daemon, which knows what is armed. Let
 * through, it would open the admission of pods.
 */
void relists_drain(struct relists *r);

#endif
