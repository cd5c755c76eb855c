/*
 * What a value of the settings file may be, and its way into struct config.
 */
#ifndef CONFIG_VALUES_H
#define CONFIG_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "config/faults.h"
#include "config/tree.h"

struct schema_key;

/* One file's reading. */
struct reading {
    struct config *config;
    struct faults faults;
    bool out_of_memory;
};

/* ---- rules for texts ---- */

bool value_is_path(const char *text);      /* absolute, shorter than PATH_MAX, no controls */
bool value_is_node_path(const char *text); /* and without '/' at its end; may be a glob */
bool value_is_permissions(const char *text);
bool value_is_namespace(const char *text); /* or "*" */
bool value_is_comm(const char *text);      /* a process's name, proc(5) */
bool value_is_glob(const char *path);

/* "1h30m", "500ms": whole numbers, each unit once, the largest first. */
bool value_duration(const char *text, uint64_t *out_ms);

/* ---- values ---- */

/* Reads `node` as one value of `key` into `slot`, whatever was there, or notes what is wrong;
 * `name` is what it is called then. No tables. */
void value_read(struct reading *r, const struct schema_key *key, const char *name,
                struct tree_node *node, void *slot);

/* Puts the default there, if the key has one. */
void value_default(struct reading *r, const struct schema_key *key, void *slot);

/* Frees what value_read() has put there. */
void value_fini(const struct schema_key *key, void *slot);

/* ---- for who reads tables ---- */

/* The list's length: size_t, as far from the slot as the table says. */
size_t *value_len(const struct schema_key *key, void *slot);

/* Notes a mistake at the node, which is `wrong` from then on. */
#define value_refuse(r, node, expected, ...)                                                       \
    ((node)->wrong = true, faults_add(&(r)->faults, (node)->at, expected, __VA_ARGS__))

/* "NAME is an integer; expected ..." */
void value_wrong_type(struct reading *r, const char *name, struct tree_node *node,
                      const char *expected);

/* Whether a list may have so many elements; else that is noted. */
bool value_check_len(struct reading *r, const char *name, struct tree_node *node, size_t min,
                     size_t max);

/* `n` zeroed objects, one if 0; NULL: noted. Their owner frees them. */
void *value_allocate(struct reading *r, size_t n, size_t bytes);
char *value_copy(struct reading *r, const char *text, size_t len);

#endif
