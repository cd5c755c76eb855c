/*
 * From a tree to struct config, as schema.h's table says.
 */
#ifndef CONFIG_READ_H
#define CONFIG_READ_H

#include "config/schema.h"
#include "config/values.h"

/* Fills the struct of a section, zeroed before, with the defaults and then with what `table` has
 * (NULL: nothing). Notes mistakes in `r`; what is wrong keeps its default. */
void read_section(struct reading *r, enum schema_section section, struct tree_node *table,
                  void *base);

/* Frees all that read_section() has made in the struct; accepts a zeroed one. */
void read_fini(enum schema_section section, void *base);

/* A table's value; NULL: there is none. */
struct tree_node *read_find(const struct tree_node *table, const char *key);

#endif
