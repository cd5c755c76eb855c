/*
 * Memory for the simulation: what it asks for is there, or it aborts.
 */
#ifndef TESTS_SIM_HEAP_H
#define TESTS_SIM_HEAP_H

#include <stddef.h>

/* Zeroed, for `len` objects of `bytes`; never NULL, also for none. */
void *heap_alloc(size_t len, size_t bytes);
char *heap_strdup(const char *text);
/* Room for one more behind `len` objects of `bytes`. */
void *heap_grow(void *array, size_t len, size_t bytes);

#endif
