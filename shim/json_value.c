#include "shim/json_value.h"

#include <stdlib.h>
#include <string.h>

#include "shim/must.h"

json_t *json_value_text(const char *text)
{
    json_t *value = json_string(text);
    char *copy;

    if (value)
        return value;
    copy = must(strdup(text));
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    value = must(json_string(copy));
    free(copy);
    return value;
}

json_t *json_value_text_or_null(const char *text)
{
    return text[0] ? json_value_text(text) : json_null();
}

json_t *json_value_texts(char *const *texts, size_t len)
{
    json_t *all = must(json_array());

    for (size_t i = 0; i < len; i++)
        json_value_append(all, json_value_text(texts[i]));
    return all;
}

json_t *json_value_number(uint64_t number)
{
    return must(json_integer((json_int_t)number));
}

void json_value_set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) < 0)
        abort(); /* out of memory */
}

void json_value_append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) < 0)
        abort(); /* out of memory */
}
