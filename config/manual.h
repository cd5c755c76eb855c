/*
 * The settings as a manual page: what each key means, from the comments of example.toml, with its
 * default, and whether a reload changes it, from the table of schema.c.
 *
 * A comment stands directly above its key; keys below that have none share it. What is further
 * above is about the table that they are in, and so is a comment directly above "[table]". Tables
 * that are commented out are read as if they were not; what is said of a key first counts. The
 * file's first paragraph is about the file, and left out. That it has each key, with the table's
 * default and bounds, is for tests to see.
 */
#ifndef CONFIG_MANUAL_H
#define CONFIG_MANUAL_H

#include <stdio.h>

#include "config/schema.h"

struct manual {
    char *about[SECTIONS]; /* paragraphs, with an empty line between them; NULL: nothing */
    char **words;          /* of each of schema_keys; NULL: it has none of its own */
    size_t *with;          /* whose words each of them has: its own index, or another's */
    char *overrides;       /* of the keys that a [[resource]] may have in place of another's */
};

/* Reads the text of an example.toml. What is no key of the table it passes over. */
void manual_init(struct manual *manual, const char *example);
void manual_fini(struct manual *manual);

/* A key of which the example says nothing; NULL: there is none. Elements of a key's array need no
 * words: they are in those of the key. */
const struct schema_key *manual_lacks(const struct manual *manual);

/* Writes roff, man(7): a section for each table. */
void manual_write(const struct manual *manual, FILE *out);

#endif
