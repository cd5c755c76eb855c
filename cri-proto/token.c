#include "cri-proto/token.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

char *token_key(const char *resource)
{
    char *key = malloc(sizeof TOKEN_KEY_PREFIX + strlen(resource));

    if (!key)
        return NULL;
    strcpy(stpcpy(key, TOKEN_KEY_PREFIX), resource);
    for (char *at = key + strlen(TOKEN_KEY_PREFIX); (at = strchr(at, '/'));)
        *at = '_';
    return key;
}

static json_t *id_array(const char *const *ids, size_t ids_len)
{
    json_t *array = json_array();

    for (size_t i = 0; i < ids_len; i++) {
        if (json_array_append_new(array, json_string(ids[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

char *token_value(const char *resource, const char *const *ids, size_t ids_len)
{
    json_t *array = id_array(ids, ids_len);
    json_t *root = array ? json_pack("{s:s, s:o}", "resource", resource, "ids", array) : NULL;
    char *value = root ? json_dumps(root, JSON_COMPACT) : NULL;

    json_decref(root);
    return value;
}
