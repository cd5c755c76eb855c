#include "shim/agent/answer.h"

#include <stdlib.h>
#include <string.h>

#include "shim/agent/limits.h"
#include "shim/must.h"

/* Whether what is there now is not too much to be read. */
static bool count_values(struct answer *answer, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char byte = bytes[i];

        if (answer->in_string) {
            answer->in_string = byte != '"' || answer->escaped;
            answer->escaped = byte == '\\' && !answer->escaped;
        } else {
            answer->in_string = byte == '"';
            answer->values += byte == ',' || byte == '{' || byte == '[';
        }
    }
    return answer->values <= JSON_VALUES_MAX;
}

bool answer_add(struct answer *answer, const char *bytes, size_t len)
{
    if (len > ANSWER_BYTES_MAX - answer->len || !count_values(answer, bytes, len))
        return false;
    if (answer->len + len > answer->size) {
        answer->size = (answer->len + len) * 2;
        answer->text = must(realloc(answer->text, answer->size));
    }
    if (len > 0)
        memcpy(answer->text + answer->len, bytes, len);
    answer->len += len;
    return true;
}

void answer_clear(struct answer *answer)
{
    answer->len = answer->values = 0;
    answer->in_string = answer->escaped = false;
}

/* ---- what is left out ---- */

/* Behind the string that begins at `at`. */
static size_t behind_string(const struct answer *answer, size_t at)
{
    bool escaped = false;

    for (at++; at < answer->len && (answer->text[at] != '"' || escaped); at++)
        escaped = answer->text[at] == '\\' && !escaped;
    return at < answer->len ? at + 1 : at;
}

/* Behind the value, and the spaces before it, that begins at `at`: before the comma or the bracket
 * that ends it. */
static size_t behind_value(const struct answer *answer, size_t at)
{
    size_t depth = 0;

    while (at < answer->len) {
        char byte = answer->text[at];

        if (depth == 0 && (byte == ',' || byte == '}' || byte == ']'))
            break;
        depth += byte == '{' || byte == '[';
        depth -= byte == '}' || byte == ']';
        at = byte == '"' ? behind_string(answer, at) : at + 1;
    }
    return at;
}

static bool is_one_of(const char *const *names, const char *text, size_t len)
{
    while (*names && (strlen(*names) != len || memcmp(*names, text, len) != 0))
        names++;
    return *names != NULL;
}

void answer_leave_out(struct answer *answer, const char *const *names)
{
    size_t at = 0, name = 0, name_len = 0; /* the last string */

    while (at < answer->len) {
        char byte = answer->text[at];
        size_t end = byte == '"' ? behind_string(answer, at) : at + 1;

        if (byte == '"') {
            name = at + 1;
            name_len = end - name > 0 ? end - name - 1 : 0;
        } else if (byte == ':' && is_one_of(names, answer->text + name, name_len)) {
            end = behind_value(answer, at + 1);
            memset(answer->text + at + 1, ' ', end - at - 1);
            if (end > at + 1)
                answer->text[at + 1] = '0';
        }
        at = end;
    }
}

/* ---- what it is ---- */

json_t *answer_json(const struct answer *answer)
{
    json_t *object =
        json_loadb(answer->text ? answer->text : "", answer->len, JSON_ALLOW_NUL, NULL);

    if (json_is_object(object))
        return object;
    json_decref(object);
    return NULL;
}

void answer_fini(struct answer *answer)
{
    free(answer->text);
    *answer = (struct answer){0};
}
