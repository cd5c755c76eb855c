/*
 * Names on stdout, which may hold anything.
 */
#ifndef SHIM_PUT_NAME_H
#define SHIM_PUT_NAME_H

#include <stdio.h>

#include "shim/printable.h"

static inline void put_name(const char *name)
{
    for (; *name; name++)
        putchar(printable(*name));
}

#endif
