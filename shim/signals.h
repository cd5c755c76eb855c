/*
 * The signals of both processes: SIGTERM and SIGINT ask for the end; SIGHUP, with which many a
 * daemon reads its settings anew, does nothing but say so.
 */
#ifndef SHIM_SIGNALS_H
#define SHIM_SIGNALS_H

#include <uv.h>

struct signals {
    uv_signal_t handles[3];
    void (*asked)(void *user, int number);
    void *user;
};

/* Calls `asked` for each signal that asks for the end, until signals_close(). `signals` is the
 * loop's until that has run its close callbacks. */
void signals_start(struct signals *signals, uv_loop_t *loop, void (*asked)(void *user, int number),
                   void *user);
void signals_close(struct signals *signals);

#endif
