/*
 * systemd-logind, as far as it has to do with the machine's shutdown: what
 * org.freedesktop.login1.Manager says (org.freedesktop.login1(5)), and locks on it.
 *
 * Nothing is believed that a signal carries: each one (a shutdown begins or is cancelled, a lock
 * comes or goes), and each minute, has all of it read anew, and one reading is told at once. So it
 * makes no difference whether a change was seen, or came to pass before this process or this logind
 * started.
 */
#ifndef SHIM_AGENT_LOGIND_H
#define SHIM_AGENT_LOGIND_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "shim/agent/limits.h"

struct logind;

struct logind_said {
    bool known;         /* false: it does not answer; the rest is as it was said last */
    bool shutting_down; /* PreparingForShutdown: also while nothing delays it any more */
    uint64_t limit_ms;  /* InhibitDelayMaxUSec: how long it waits for all locks together */
    bool ours;          /* ListInhibitors: a lock of ours delays a shutdown, */
    bool kubelets;      /* and so does one of a kubelet's */
    char trouble[ERROR_WORDS_BYTES_MAX]; /* why it is not known */
};

struct logind_ops {
    /* It was read, or does not answer any more; borrowed until return. */
    void (*said)(void *user, const struct logind_said *said);
    /* What came of logind_inhibit(), once: the lock, which is the callee's, or -1 and why. */
    void (*inhibited)(void *user, int fd, const char *words);
};

/* Asks for ever, from the loop. `ops` and `user` are borrowed until the end. */
struct logind *logind_start(uv_loop_t *loop, const struct logind_ops *ops, void *user);
/* No callback follows. Not from one. Accepts NULL. */
void logind_stop(struct logind *logind);

/* Reads all anew: what has no signal may have changed. */
void logind_read(struct logind *logind);

/* Asks for a delay lock on the shutdown, one at a time: while said() tells of one that is known.
 * inhibited() follows. One that has begun is not to be delayed any more. */
void logind_inhibit(struct logind *logind);

#endif
