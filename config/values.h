/*
 * What a value of the settings file may be, and its way into struct config: one reader for each
 * type of schema.h. No tables (read.h).
 */
#ifndef CONFIG_VALUES_H
#define CONFIG_VALUES_H

#include "config/faults.h"
#include "config/schema.h"
#include "config/tree.h"

/* One file's reading. */
struct reading {
    struct config *config;
    struct faults faults;
    bool out_of_memory;
};

/* ---- values ---- */

/* Reads `node` as one value of `key` into `slot`, whatever was there, or notes what is wrong;
 * `name` is what it is called then. */
void value_read(struct reading *r, const struct schema_key *key, const char *name,
                struct tree_node *node, void *slot);

/* Puts the default there, if the key has one. */
void value_default(struct reading *r, const struct schema_key *key, void *slot);

bool value_same(const struct schema_key *key, void *a, void *b); /* of tables: not looked into */
void value_exchange(const struct schema_key *key, void *a, void *b);

/* As in the file, without quotes; of names, with ',' between them; of tables, how many, if any. One
 * that is too long is cut. */
void value_print(const struct schema_key *key, void *slot, char *out, size_t size);

/* Frees what value_read() has put there; of tables, the list alone. */
void value_fini(const struct schema_key *key, void *slot);

/* ---- for who reads tables ---- */

/* The list's length: size_t, as far from the slot as the table says. */
size_t *value_len(const struct schema_key *key, void *slot);

/* Notes a mistake at the node, which is `wrong` from then on. */
#define value_refuse(r, node, expected, ...)                                                       \
    ((node)->wrong = true, faults_add(&(r)->faults, (node)->at, expected, __VA_ARGS__))

/* Whether the node is of this type; else that is noted: "NAME is an integer; expected ..." */
bool value_check_type(struct reading *r, const char *name, struct tree_node *node,
                      enum tree_type type, const char *expected);

/* Makes a list of as many zeroed elements as the node has, from `min` to the key's limit, and puts
 * it and its length there. NULL: noted. */
void *value_list(struct reading *r, const struct schema_key *key, struct tree_node *node,
                 size_t min, size_t bytes, void *slot);

/* `n` zeroed objects, one if 0; NULL: noted. Their owner frees them. */
void *value_allocate(struct reading *r, size_t n, size_t bytes);
char *value_text(struct reading *r, const char *text, size_t len);

#endif
