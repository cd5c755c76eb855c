/*
 * Questions to the runtime: does the container of an allocation still run?
 */
#ifndef DEVICEMGR_QUESTIONS_CHECK_H
#define DEVICEMGR_QUESTIONS_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "devicemgr/devicemgr.h"

struct allocation;
struct state;

struct checks {
    struct state *state;
    struct check *by_number;
};

void checks_fini(struct checks *checks);
/* Asks whether the holder's container still runs, for this create. */
void checks_start(struct checks *checks, uint64_t create, struct allocation *holder);
/* How many questions are open. */
size_t checks_len(const struct checks *checks);
/* devicemgr_container_checked(). Which container has ended, by that; the caller frees it. NULL: it
 * has not, or is of no interest any more. */
char *checks_answered(struct checks *checks, uint64_t number, enum devicemgr_checked answer);

#endif
