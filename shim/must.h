/*
 * Memory that cannot be done without, or whatever else NULL is told of. None left ends the process,
 * as in the core: its service manager starts it again from the checkpoint. Not for what is as large
 * as a peer makes it: that fails alone.
 */
#ifndef SHIM_MUST_H
#define SHIM_MUST_H

#include <stdlib.h>

static inline void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

#endif
