/*
 * Which process is at the other end: its name, and what tells it from a later one of the same pid.
 */
#ifndef SHIM_PROCESS_H
#define SHIM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Keeps a descriptor, by which the others work when there is none left: who is not known as a
 * kubelet is not held. Where it is lost, as to another thread, each of them tries to have one
 * again. For a process whose loop alone asks; never given back. */
void process_keep_spare(void);

/* When the process started, in clock ticks since boot (proc(5), /proc/PID/stat, field 22). 0, or
 * -1: there is no such process. */
int process_started(pid_t pid, uint64_t *started) __attribute__((warn_unused_result));

#define PROCESS_NAME_BYTES_MAX 16 /* TASK_COMM_LEN of the kernel */

/* Its comm, for people: what is not printable becomes '?'; "?" if there is no such process. */
void process_name(pid_t pid, char out[PROCESS_NAME_BYTES_MAX]);

/* Whether its comm (/proc/PID/comm) is one of these names; the kernel keeps 15 bytes of one. A pid
 * of 0 is of another pid namespace (SO_PEERCRED), and nobody. */
bool process_is_one_of(pid_t pid, char *const *names, size_t names_len);

#endif
