/*
 * A TOML file as a plain tree: what schema.h's readers walk. Behind it is toml++, which no other
 * file of the project sees.
 */
#ifndef CONFIG_TREE_H
#define CONFIG_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Deeper than any setting is. What stands deeper in a file is left out of the tree. */
#define TREE_DEPTH_MAX 8
/* The parser makes a table of each part of a dotted key, and frees them one within the other: some
 * 100,000 end a stack of 8 MiB. Counted are all dots of a file, wherever they stand. */
#define TREE_DOTS_MAX 10000

enum tree_type {
    TREE_TABLE,
    TREE_ARRAY,
    TREE_STRING,
    TREE_INTEGER,
    TREE_FLOAT,
    TREE_BOOLEAN,
    TREE_DATE, /* or a time */
};

/* Both from 1; columns are characters, not bytes. */
struct tree_place {
    uint32_t line, column;
};

static inline bool tree_before(struct tree_place a, struct tree_place b)
{
    return a.line != b.line ? a.line < b.line : a.column < b.column;
}

struct tree_node {
    enum tree_type type;
    bool wrong;           /* for who reads the tree: told already; of an array: an element, too */
    struct tree_place at; /* of the value */
    struct tree_place key_at;
    char *key; /* NULL: an array's element, or the root. May hold NULs. */
    size_t key_len;
    char *text; /* a string's. May hold NULs, one follows it. */
    size_t text_len;
    int64_t number;             /* an integer's; a boolean's: 0 or 1 */
    struct tree_node *children; /* a table's in the order of their keys, an array's as they are */
    size_t children_len;
};

struct tree_fault {
    struct tree_place at;
    char text[320]; /* "": out of memory */
    const char *expected;
};

/* Parses TOML 1.0. 0 and `out`, which tree_fini() frees, or -1 and `fault`. */
int tree_parse(const char *text, size_t len, struct tree_node *out, struct tree_fault *fault)
    __attribute__((warn_unused_result));

/* Accepts a zeroed node. */
void tree_fini(struct tree_node *node);

#ifdef __cplusplus
}
#endif

#endif
