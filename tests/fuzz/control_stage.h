/*
 * What shim/control/ is played on by fuzz_control.c: a device manager with a resource, a pod that
 * has one of its devices, and orders that the store takes or not; and in place of sockets, files
 * and workers functions of the same names, which the linker takes before those of the daemon.
 */
#ifndef TESTS_FUZZ_CONTROL_STAGE_H
#define TESTS_FUZZ_CONTROL_STAGE_H

#include <stdint.h>

#include "shim/rpc/rpc.h"

/* One stage at a time. */
void control_stage_begin(void);
void control_stage_end(void);

/* The methods that control_start() serves. */
size_t control_stage_methods(void);
/* A call of one of them with these bytes of a request; nothing if they are no such message. */
void control_stage_call(size_t method, const uint8_t *request, size_t len);

/* What else may happen, each if it is due. */
void control_stage_client_gone(void); /* of the oldest call that is open */
void control_stage_committed(const char *error);
void control_stage_listed(void); /* the runtime, by which nothing runs */
void control_stage_pass(uint64_t ms);
void control_stage_level_written(int err);
void control_stage_looked(const char *error); /* at the checkpoint */

#endif
