/*
 * The kubelets that the gate knows, each a process, and the calls that it holds of each.
 *
 *     ──Version{""}──▶ ARMED ──first relist──▶ HOLDING ──taken, or time over──▶ OPEN
 *                        └──────────── a relist is answered ──────────────────────▲
 *
 * HOLDING waits for what the gate says (gate.h), also while its calls come and go. OPEN is
 * remembered, so that the process is not armed again; where there is to be no gate it begins there.
 */
#ifndef SHIM_KUBELET_KUBELETS_H
#define SHIM_KUBELET_KUBELETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "shim/file_identity.h"

/* Known at once: a node has one, and the few that came before it are dropped as they are found
 * dead. The oldest goes when one more comes. */
#define KUBELETS_MAX 16
/* None, as a time. */
#define KUBELETS_NEVER UINT64_MAX

struct hold {
    TAILQ_ENTRY(hold) entry;
    uint64_t number;   /* the owner's */
    uint64_t limit_ms; /* its client gives up soon after */
};
TAILQ_HEAD(holds, hold);

enum kubelet_state {
    KUBELET_ARMED,
    KUBELET_HOLDING,
    KUBELET_OPEN,
};

struct kubelet {
    TAILQ_ENTRY(kubelet) entry;
    pid_t pid;
    uint64_t started; /* process.h */
    enum kubelet_state state;
    struct file_identity before; /* kubelet.sock when it announced itself: an earlier kubelet's */
    /* HOLDING */
    uint64_t since_ms;  /* of the first call */
    uint64_t socket_ms; /* since when its kubelet.sock is there; NEVER: it is not */
    uint64_t alone_ms;  /* since when no bridge is there; NEVER: one is */
    struct holds holds;
};

struct kubelets {
    TAILQ_HEAD(kubelet_list, kubelet) list; /* the oldest first */
    size_t len;
    size_t holds_len;      /* released ones, too */
    struct holds released; /* they are to go on */
};

void kubelets_init(struct kubelets *kubelets);
void kubelets_fini(struct kubelets *kubelets);

/* At most KUBELETS_MAX, see kubelets_make_room(). */
struct kubelet *kubelets_add(struct kubelets *kubelets, pid_t pid, uint64_t started,
                             enum kubelet_state state);
/* The process that has the pid now, if it is known. */
struct kubelet *kubelets_find(const struct kubelets *kubelets, pid_t pid);
/* The one that came last and lives; NULL: none does. */
const struct kubelet *kubelets_newest(const struct kubelets *kubelets);
/* For one more: drops the dead ones, and the oldest if that was not enough. False: each holds
 * something. */
bool kubelets_make_room(struct kubelets *kubelets);
/* Whether one is not OPEN. */
bool kubelets_armed(const struct kubelets *kubelets);

/* From ARMED, or not at all. */
void kubelet_begin_holding(struct kubelet *kubelet, uint64_t now_ms);
void kubelets_hold(struct kubelets *kubelets, struct kubelet *kubelet, uint64_t number,
                   uint64_t limit_ms);
/* OPEN: its calls are released, and all that follow are not held. */
void kubelets_open(struct kubelets *kubelets, struct kubelet *kubelet);
/* The next released call; false: there is none. */
bool kubelets_take_released(struct kubelets *kubelets, uint64_t *number);
/* A call is over, held or released. False: it is neither. */
bool kubelets_cancel(struct kubelets *kubelets, uint64_t number);

#endif
