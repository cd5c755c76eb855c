/*
 * What the daemon and the service manager that started it tell each other: sd_notify(3) and
 * sd_listen_fds(3), whose protocols are a datagram and three environment variables.
 *
 * Not libsystemd: for these two calls it maps five more libraries (compression, cryptography) into
 * a daemon of root's and costs 1 MiB of its 6 (measured: VmRSS idle 6.2 MiB with, 5.2 without).
 */
#ifndef SHIM_SERVICE_MANAGER_H
#define SHIM_SERVICE_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sends `state` ("READY=1") to $NOTIFY_SOCKET. 0 when it was sent or nobody listens; a negative
 * errno. The first time that somebody is told takes a descriptor, for the process's life. */
int service_manager_notify(const char *state);
/* The same with `n` descriptors, SERVICE_MANAGER_FDS_MAX at most, which stay the caller's. */
#define SERVICE_MANAGER_FDS_MAX 4
int service_manager_notify_with(const char *state, const int *fds, size_t n);
/* Whether there is somebody to send to. */
bool service_manager_there(void);

/* How long this process may be silent before the manager takes it to hang ($WATCHDOG_USEC,
 * $WATCHDOG_PID), in ms; 0: for ever. */
uint64_t service_manager_watchdog_ms(void);

/* How many descriptors the manager keeps for this service ($FDSTORE); 0: it does not say. */
size_t service_manager_keeps(void);

/* How many descriptors were passed to this process ($LISTEN_PID, $LISTEN_FDS): from this one on. */
#define SERVICE_MANAGER_FD_FIRST 3
size_t service_manager_passed(void);
/* Removes the variables, so that no child takes them for its own. */
void service_manager_forget_passed(void);

#endif
