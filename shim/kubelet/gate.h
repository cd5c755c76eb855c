/*
 * The gate on a new kubelet's first relist (design §6, kubelet-facts §9).
 *
 * A kubelet admits no pod before its first PLEG relist has been answered, and nothing else holds it
 * until its device plugins are back. That relist is the ListContainers with a present, empty filter
 * (bytes 0a 00); it is held until the kubelet has taken, and digested, what the bridge shows it, or
 * until a time limit: then all goes on as without a gate.
 *
 * Kubelets are told apart as processes, so that it does not matter how often one connects: a
 * process is armed by its Version{version: ""}, the first call of a kubelet's life, and disarmed
 * by the first answered relist, or once its calls were let go. What is armed outlives the daemon,
 * in a file beside the feed's socket.
 */
#ifndef SHIM_KUBELET_GATE_H
#define SHIM_KUBELET_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "config/config.h"
#include "shim/kubelet/taken.h"

/* The file, in the directory of bridge.socket. */
#define GATE_FILE "gate"
/* Kubelets known at once: a node has one, and the few that came before it are dropped as they are
 * found dead. The oldest goes when one more comes. */
#define GATE_PROCESSES_MAX 16
/* Calls held at once, of all kubelets: one has some five of them at its start (kubelet-facts §9).
 * One more passes. */
#define GATE_HOLDS_MAX 256
/* A held call goes on so long before its client gives up, for the runtime to answer it. */
#define GATE_MARGIN_MS 1000

struct gate;

struct gate_ops {
    /* Whether that kubelet has taken what it is shown (feed_taken()). */
    void (*taken)(void *user, pid_t kubelet, struct taken *out);
    /* A held call goes on; from the loop, never from inside a gate_ call. Once for each hold that
     * is not cancelled. */
    void (*release)(void *user, uint64_t hold);
};

/*
 * Reads the file of what was armed before. `config`, `ops` and `user` are borrowed until the gate
 * has stopped. NULL: there is to be no gate (bridge.enabled, bridge.gate).
 */
struct gate *gate_start(uv_loop_t *loop, const struct config *config, const struct gate_ops *ops,
                        void *user);
/* What ops.taken() says may have changed. */
void gate_changed(struct gate *gate);
/* Frees, then runs `done` from the loop; what is held is its owner's to end. Whoever is armed stays
 * so, in the file. */
void gate_stop(struct gate *gate, void (*done)(void *user), void *user);

/* Whether the process is a kubelet (its comm is one of bridge.kubelet_processes) and there is a
 * gate at all: then its Version and ListContainers calls are to be shown. */
bool gate_watches(const struct gate *gate, pid_t pid);
/* Whether it is armed. */
bool gate_armed(const struct gate *gate, pid_t pid);
/* It has called Version{version: ""}: arms it. */
void gate_announced(struct gate *gate, pid_t pid);
/* It asks for the list with the empty filter. True: hold the call, release() will come for `hold`
 * (the caller's number), before `deadline_ms` on the clock of manager_now_ms(). False: let it
 * pass. */
bool gate_hold(struct gate *gate, pid_t pid, uint64_t deadline_ms, uint64_t hold)
    __attribute__((warn_unused_result));
/* A held call is over without release(). */
void gate_cancelled(struct gate *gate, uint64_t hold);
/* The runtime has answered such a list to it: disarms. */
void gate_answered(struct gate *gate, pid_t pid);

#endif
