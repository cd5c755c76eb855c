/*
 * Fails the n-th allocation. The library alloc_fail leads malloc, calloc, realloc and strdup of the
 * project's own code, and of the test, here; other libraries are not touched. Beside it
 * alloc_fail_new.cpp does so with all that C++ allocates.
 */
#ifndef TESTS_UNIT_ALLOC_FAIL_H
#define TESTS_UNIT_ALLOC_FAIL_H

#include <stdbool.h>

/* The n-th allocation (1: the next) fails, once. 0: none does. */
void alloc_fail_at(unsigned n);

/* Only while enabled are allocations counted. At start: not. */
void alloc_fail_enable(bool on);

/* Whether it has come to that. */
bool alloc_failed(void);

#endif
