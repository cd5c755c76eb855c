/*
 * From a tree to struct config, as schema.h's table says: values.c has one reader for each type,
 * read.c reads the tables, check.c what no single value shows.
 */
#ifndef CONFIG_READ_H
#define CONFIG_READ_H

#include "config/faults.h"
#include "config/schema.h"
#include "config/tree.h"

/* One file's reading. */
struct reading {
    struct config *config;
    struct faults faults;
    bool out_of_memory;
};

/* ---- tables ---- */

/* Fills the struct of a section, zeroed before, with the defaults and then with what `table` has
 * (NULL: nothing). Notes mistakes in `r`; what is wrong keeps its default. */
void read_section(struct reading *r, enum schema_section section, struct tree_node *table,
                  void *base);

/* Frees all that read_section() has made in the struct; accepts a zeroed one. */
void read_fini(enum schema_section section, void *base);

/* A table's value; NULL: there is none. */
struct tree_node *read_find(const struct tree_node *table, const char *key);

/* Completes r->config, which has been read from `root` (NULL: no file), and notes what does not fit
 * together. A value that is wrong by itself is not looked at again. */
void check_settings(struct reading *r, struct tree_node *root);

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

/* ---- parts of values ---- */

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
