/*
 * The signals of daemon, bridge and agent: SIGTERM and SIGINT ask for the end, SIGHUP to read the
 * settings again.
 */
#ifndef SHIM_SIGNALS_H
#define SHIM_SIGNALS_H

#include <uv.h>

struct signals {
    uv_signal_t handles[3];
    void (*asked)(void *user, int number);
    void (*reload)(void *user);
    void *user;
};

/* Calls `asked` for each signal that asks for the end, and `reload` for each SIGHUP, until
 * signals_close(). `signals` is the loop's until that has run its close callbacks. */
void signals_start(struct signals *signals, uv_loop_t *loop, void (*asked)(void *user, int number),
                   void (*reload)(void *user), void *user);
void signals_close(struct signals *signals);

#endif
