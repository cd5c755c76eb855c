/*
 * Which settings are not as they are without a file, for who reports on a process.
 */
#ifndef CONFIG_DIFFERENCES_H
#define CONFIG_DIFFERENCES_H

#include "config/config.h"

/* Longest value that is told; a longer one is cut. */
#define DIFFERENCE_BYTES_MAX 256

struct config_difference {
    char key[64];                       /* "plugins.hold"; "[[device]]" */
    char value[DIFFERENCE_BYTES_MAX];   /* as in the file, without quotes; of tables, how many */
    char initial[DIFFERENCE_BYTES_MAX]; /* its default; empty: none */
};

/* Calls `each` for every such setting, in the order of the schema, before it returns; what it is
 * given is borrowed until `each` returns. A socket that is beside `listen` by default is as by
 * default there. */
void config_differences(const struct config *config,
                        void (*each)(void *user, const struct config_difference *difference),
                        void *user);

#endif
