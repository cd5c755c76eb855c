/*
 * Names on stdout: one may hold anything, and a terminal is not to obey it.
 */
#ifndef SHIM_PUT_NAME_H
#define SHIM_PUT_NAME_H

#include <stdio.h>

static inline void put_name(const char *name)
{
    for (; *name; name++)
        putchar((unsigned char)*name < ' ' || *name == 0x7f ? '?' : *name);
}

#endif
