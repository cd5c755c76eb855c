/*
 * A process that is killed as it asks the kernel to change a file: at each of these calls, one
 * after the other, before it is carried out.
 */
#ifndef TESTS_UNIT_KILLED_CALLS_H
#define TESTS_UNIT_KILLED_CALLS_H

#include <stdbool.h>

/* Runs `work` in a process of its own, which is killed at the n-th such call, from 1. False: it has
 * had none that late, and has ended by itself; the test fails unless `work` gave 0. */
bool killed_at_call(unsigned n, int (*work)(void *user), void *user);

#endif
