/*
 * JSON that comes in pieces, cut into the objects that are worth reading: those of a watch, which
 * follow one another, or the items of a list. Only one of them is ever held.
 *
 * It knows where an object ends and nothing else: whether it is right JSON its reader finds out
 * (jansson). An object over OBJECT_BYTES_MAX, or with more values in it than JSON_VALUES_MAX, is
 * left out: whoever may make a pod may make one that is too large to be looked into, and is not to
 * hide all others by it. What is refused for good: one over OBJECT_SKIPPED_BYTES_MAX, nesting over
 * JSON_DEPTH_MAX, brackets that do not match, anything but objects where objects should be.
 */
#ifndef SHIM_AGENT_JSON_SPLITTER_H
#define SHIM_AGENT_JSON_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/agent/limits.h"

enum json_split {
    /* Objects one after the other, with or without space between them. */
    JSON_SPLIT_VALUES,
    /* One object, whose "items" are given one by one, and then the rest of it with none, as if the
     * list were empty. */
    JSON_SPLIT_LIST,
};

struct json_splitter {
    /* private */
    enum json_split split;
    bool (*value)(void *user, const char *text, size_t len, bool head);
    void *user;
    char *text; /* of the object that is being gathered */
    size_t len, size;
    char *head; /* of a list: all but its items */
    size_t head_len, head_size;
    uint64_t arrays; /* a bit for each level: it is an array */
    unsigned depth;
    size_t values;   /* of the object that is being gathered, as far as commas and brackets tell */
    size_t skipped;  /* bytes of one that is being left out; 0: it is not */
    size_t left_out; /* objects, so far */
    bool in_string, escaped;
    bool in_items; /* at the depth of the list's items or below */
    bool failed;   /* for good */
    bool over;     /* the list's object has ended */
    char key[8];   /* the beginning of the last string at the list's own level */
    size_t key_len;
    const char *words;
};

/* `value` gets each object, borrowed until it returns, from json_splitter_feed(); `head`: it is
 * what is left of a list. False from it: it was not taken, and all of it has failed. */
void json_splitter_init(struct json_splitter *splitter, enum json_split split,
                        bool (*value)(void *user, const char *text, size_t len, bool head),
                        void *user);
/* Accepts a zeroed struct. */
void json_splitter_fini(struct json_splitter *splitter);

/* False: it has failed, now or before, and json_splitter_trouble() says why; "" if value() said
 * so. */
bool json_splitter_feed(struct json_splitter *splitter, const char *bytes, size_t len)
    __attribute__((warn_unused_result));

/* Whether the bytes so far end where an object does: none is half there, and of a list it was
 * all. */
bool json_splitter_whole(const struct json_splitter *splitter);

/* How many objects were too large. */
size_t json_splitter_left_out(const struct json_splitter *splitter);

const char *json_splitter_trouble(const struct json_splitter *splitter);

#endif
