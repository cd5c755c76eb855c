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
