/*
 * What differs between two configurations, and what of it may change in a process that runs.
 */
#ifndef CONFIG_COMPARE_H
#define CONFIG_COMPARE_H

#include <stdbool.h>

#include "config/config.h"

/* Calls `each` for every key that differs, in the order of schema.c, as "plugins.grace" or
 * "[[device]]"; `live`: it may change without a restart. The name is borrowed until return. */
void config_compare(const struct config *a, const struct config *b,
                    void (*each)(void *user, const char *name, bool live), void *user);

/* Exchanges those that may change without a restart. */
void config_exchange_live(struct config *a, struct config *b);

#endif
