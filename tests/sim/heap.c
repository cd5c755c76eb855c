#include "tests/sim/heap.h"

#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

void *heap_alloc(size_t len, size_t bytes)
{
    return must(calloc(len > 0 ? len : 1, bytes > 0 ? bytes : 1));
}

char *heap_strdup(const char *text)
{
    return must(strdup(text));
}

void *heap_grow(void *array, size_t len, size_t bytes)
{
    return must(reallocarray(array, len + 1, bytes));
}
