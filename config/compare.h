/*
 * What differs between two configurations, or between one and the defaults, and what of it may
 * change in a process that runs. Names are those of schema_full_name().
 */
#ifndef CONFIG_COMPARE_H
#define CONFIG_COMPARE_H

#include <stdbool.h>

#include "config/config.h"

/* Calls `each` for every key that differs, in the order of schema.c; `live`: it may change without
 * a restart. The name is borrowed until return. */
void config_compare(const struct config *a, const struct config *b,
                    void (*each)(void *user, const char *name, bool live), void *user);

/* Exchanges those that may change without a restart. */
void config_exchange_live(struct config *a, struct config *b);

/* What the setting `name` is, as in the file, without quotes; of a list, with ',' between its
 * elements; of tables, how many, if any. `out` has CONFIG_FILE_BYTES_MAX, which hold any. False:
 * there is none of that name. */
bool config_value(const struct config *config, const char *name, char *out)
    __attribute__((warn_unused_result));

/* Longest value that is told of a difference; a longer one is cut. */
#define DIFFERENCE_BYTES_MAX 256

struct config_difference {
    char key[64];                       /* "plugins.hold"; "[[device]]" */
    char value[DIFFERENCE_BYTES_MAX];   /* as in the file, without quotes; of tables, how many */
    char initial[DIFFERENCE_BYTES_MAX]; /* its default; empty: none */
};

/* Calls `each` for every setting that is not as it is without a file, those of the top level first,
 * before it returns; what it is given is borrowed until `each` returns. A path that is beside
 * another by default is as by default there. */
void config_differences(const struct config *config,
                        void (*each)(void *user, const struct config_difference *difference),
                        void *user);

#endif
