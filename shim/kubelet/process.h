/*
 * Which process is at the other end: its name, and what tells it from a later one of the same pid.
 */
#ifndef SHIM_KUBELET_PROCESS_H
#define SHIM_KUBELET_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* When the process started, in clock ticks since boot (proc(5), /proc/PID/stat, field 22). 0, or
 * -1: there is no such process. */
int process_started(pid_t pid, uint64_t *started) __attribute__((warn_unused_result));

/* Whether its comm (/proc/PID/comm) is one of these names; the kernel keeps 15 bytes of one. A pid
 * of 0 is of another pid namespace (SO_PEERCRED), and nobody. */
bool process_is_one_of(pid_t pid, char *const *names, size_t names_len);

#endif
