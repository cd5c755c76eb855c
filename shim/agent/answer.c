#include "shim/agent/answer.h"

#include <stdlib.h>
#include <string.h>

#include "shim/agent/limits.h"
#include "shim/must.h"

bool answer_add(struct answer *answer, const char *bytes, size_t len)
{
    if (len > ANSWER_BYTES_MAX - answer->len)
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
    answer->len = 0;
}

json_t *answer_json(const struct answer *answer)
{
    json_t *object = json_loadb(answer->text ? answer->text : "", answer->len, 0, NULL);

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
