/*
 * The gate on a new kubelet's first relist, and who is a kubelet at all.
 *
 * A kubelet admits no pod before its first PLEG relist has been answered (pkg/kubelet/pleg,
 * generic.go, Healthy), and nothing else holds it until its device plugins are back. That relist is
 * the ListContainers, or StreamContainers, with a present, empty filter (bytes 0a 00); it is held
 * until the kubelet has taken, and digested, what the bridge shows it, or until a time limit: then
 * all goes on as without a gate. Before kubelet.sock is there holding costs nothing, since a
 * kubelet makes it before it admits anything; afterwards each second is one in which pods wait.
 *
 *   the node                                       its calls are held until
 *   ---------------------------------------------  -----------------------------------------------
 *   bridge.enabled or bridge.gate is false         not at all
 *   no resource to show; or all is taken           not at all
 *   kubelet.sock is not there yet, a bridge is     the call's own deadline, less GATE_MARGIN_MS;
 *                                                  one without a deadline: GATE_HOLD_MS_MAX
 *   kubelet.sock is there, whatever the bridge     gate_timeout from when that was seen: while a
 *   does (hangs, fails, is killed, comes late)     call was held, or at the first one
 *   no bridge is connected (stopped, disabled,     gate_timeout from the first call, or from when
 *   crashes, the feed does not work)               the bridge went, whether kubelet.sock comes or
 *                                                  not; forgotten as soon as a bridge is there
 *   a kubelet.sock is there, but it was before     as if there was none: its kubelet is gone, and
 *   the kubelet announced itself                   the new one puts its own in its place
 *   bridge.kubelet_plugin_dir is not the           the call's own deadline: nobody sees the socket;
 *   kubelet's                                      the log says so
 *   the call is given up, or fails, and the        the limits above, which go on meanwhile, but for
 *   kubelet asks again                             that of the call
 *   several kubelets, one after the other or at    each by itself: a process is what counts
 *   once
 *   the daemon is restarted in between             the limits begin anew at the first call it sees:
 *                                                  it knows who is armed, and which kubelet.sock
 *                                                  was there before
 *
 * The limit that comes first opens the gate for the process, for good, with all calls that are
 * held.
 *
 * Kubelets are told apart as processes, so that it does not matter how often one connects: a
 * process is armed by its Version{version: ""}, the first call of a kubelet's life, and disarmed
 * by the first answered relist, or once its calls were let go. What is armed outlives the daemon,
 * in a file beside the feed's socket. A gate that is switched off still knows who is a kubelet.
 */
#ifndef SHIM_KUBELET_GATE_H
#define SHIM_KUBELET_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "config/config.h"
#include "shim/histogram.h"
#include "shim/kubelet/taken.h"

/* The file (armed_file.h), in the directory of bridge.socket. */
#define GATE_FILE "gate"
/* Calls held at once, of all kubelets: one has some five of them at its start.
 * One more passes. */
#define GATE_HOLDS_MAX 256
/* A held call goes on so long before its client gives up, for the runtime to answer it, or to say
 * that it does not know the streamed form, for which the kubelet has no more time either. */
#define GATE_MARGIN_MS 1000
/* What a call without a deadline is held at most: what a kubelet gives its calls by default
 * (runtimeRequestTimeout), so that it is treated like those that there are. */
#define GATE_HOLD_MS_MAX (2 * 60 * 1000)
/* How often is looked for kubelet.sock, and waits() called, while a call is held. */
#define GATE_LOOK_MS 200

struct gate;

/* Of kubelets that were held. */
struct gate_counts {
    struct histogram held;
    uint64_t expired; /* let go by the time limit */
};

struct gate_ops {
    /* Whether that kubelet has taken what it is shown (feed_taken()). */
    void (*taken)(void *user, pid_t kubelet, struct taken *out);
    /* A held call goes on; from the loop, never from inside a gate_ call. Once for each hold that
     * is not cancelled. */
    void (*release)(void *user, uint64_t hold);
    /* A kubelet is kept from admitting its pods, or was until now: every GATE_LOOK_MS at least, and
     * when it is let go. May come from inside gate_hold(). */
    void (*waits)(void *user);
    /* A kubelet has started ("armed", or "off" where there is no gate), or its calls go on
     * ("opened", or "expired": by a limit): in a word, static, and in words. May come from inside a
     * gate_ call; may be NULL. */
    void (*told)(void *user, const char *word, const char *words);
};

/* Reads the file of what was armed before, if there is to be a gate (bridge.enabled, bridge.gate).
 * `config`, `ops` and `user` are borrowed until the gate has stopped. */
struct gate *gate_start(uv_loop_t *loop, const struct config *config, const struct gate_ops *ops,
                        void *user);
/* What ops.taken() says may have changed. */
void gate_changed(struct gate *gate);
struct gate_kubelet {
    pid_t pid;        /* the process that came last and lives; 0: none that is known */
    bool armed;       /* its first relist will wait */
    bool holds;       /* it does */
    uint64_t held_ms; /* for so long */
};
void gate_look(const struct gate *gate, struct gate_kubelet *out);
/* Frees, then runs `done` from the loop; what is held is its owner's to end. Whoever is armed stays
 * so, in the file. */
void gate_stop(struct gate *gate, void (*done)(void *user), void *user);

/* Borrowed as long as the gate is there. */
const struct gate_counts *gate_counts(const struct gate *gate);
/* How many kubelets are held now. */
unsigned gate_holds(const struct gate *gate);

/* Whether the process is a kubelet: its comm is one of bridge.kubelet_processes. */
bool gate_watches(const struct gate *gate, pid_t pid);
/* Whether it is armed. */
bool gate_armed(const struct gate *gate, pid_t pid);
/* It has called Version{version: ""}: arms it, if there is to be a gate. True: it is a kubelet, and
 * its first such call, also of earlier daemons as far as they were to hold it. */
bool gate_announced(struct gate *gate, pid_t pid);
/* It asks for the list with the empty filter. True: hold the call, release() will come for `hold`
 * (the caller's number), before `deadline_ms` on the clock of boot_now_ms(). False: let it
 * pass. */
bool gate_hold(struct gate *gate, pid_t pid, uint64_t deadline_ms, uint64_t hold)
    __attribute__((warn_unused_result));
/* A held call is over without release(). */
void gate_cancelled(struct gate *gate, uint64_t hold);
/* The runtime has answered such a list to it: disarms. */
void gate_answered(struct gate *gate, pid_t pid);

#endif
