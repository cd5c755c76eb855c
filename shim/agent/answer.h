/*
 * The text of an answer that is one object, read as a whole; as json_splitter.h has it.
 */
#ifndef SHIM_AGENT_ANSWER_H
#define SHIM_AGENT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* All zero: nothing has come yet. Embedded in its owner. */
struct answer {
    char *text;
    size_t len, size;
    size_t values;
    bool in_string, escaped;
};

/* Some more of it, copied. False: it is over ANSWER_BYTES_MAX, or has more than JSON_VALUES_MAX. */
bool answer_add(struct answer *answer, const char *bytes, size_t len);
/* Another one begins. */
void answer_clear(struct answer *answer);
/* What stands under any of these `names` (up to a NULL) is 0 from now on, wherever it is. For what
 * may be JSON of anybody's, and nobody here is to read: numbers of any size, texts that are
 * none. */
void answer_leave_out(struct answer *answer, const char *const *names);
/* It as JSON, for json_decref(). NULL: it is no object. */
json_t *answer_json(const struct answer *answer);
void answer_fini(struct answer *answer);

#endif
