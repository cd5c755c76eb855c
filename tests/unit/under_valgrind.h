/*
 * Whether a test runs under valgrind, of which what needs the kernel's own EMFILE is not asked: its
 * accept(2) takes a connection then, and closes it.
 */
#ifndef TESTS_UNIT_UNDER_VALGRIND_H
#define TESTS_UNIT_UNDER_VALGRIND_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "vgpreload");
}

#endif
