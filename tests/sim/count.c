#include "tests/sim/count.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t counts[COUNTS_LEN];

static const char *const WORDS[] = {
#define X(name, words) [COUNT_##name] = words,
    COUNTS(X)
#undef X
};

void count_add(enum count count)
{
    counts[count]++;
}

void counts_print(void)
{
    for (size_t i = 0; i < COUNTS_LEN; i++)
        printf("%12" PRIu64 "  %s\n", counts[i], WORDS[i]);
}

size_t counts_missing(void)
{
    size_t missing = 0;

    for (size_t i = 0; i < COUNTS_LEN; i++)
        missing += counts[i] == 0;
    return missing;
}
