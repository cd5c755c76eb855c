#include "shim/offline/document_reading.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/must.h"

int reading_wrong(const struct reading *at, const char *what)
{
    snprintf(at->err, at->err_bytes, "%s[%zu]: %s", at->list, at->index, what);
    return -1;
}

int reading_unpack(const struct reading *at, json_t *value, const char *format, ...)
{
    json_error_t error;
    va_list args;
    int rc;

    va_start(args, format);
    rc = json_vunpack_ex(value, &error, JSON_STRICT, format, args);
    va_end(args);
    return rc < 0 ? reading_wrong(at, error.text) : 0;
}

int reading_text_or_empty(const struct reading *at, const json_t *value, const char *key,
                          char **out)
{
    char words[96];

    if (json_is_null(value)) {
        *out = (char *)(uintptr_t) "";
        return 0;
    }
    *out = (char *)(uintptr_t)json_string_value(value);
    if (*out)
        return 0;
    snprintf(words, sizeof words, "%s is neither a text nor null", key);
    return reading_wrong(at, words);
}

int reading_number_from_0(const struct reading *at, json_int_t value, json_int_t max,
                          const char *key)
{
    char words[96];

    if (value >= 0 && value <= max)
        return 0;
    snprintf(words, sizeof words, "%s is out of range", key);
    return reading_wrong(at, words);
}

int reading_texts_of(const struct reading *at, const json_t *list, const char *key, char ***out,
                     size_t *len)
{
    char words[96];
    size_t i;
    json_t *one;
    char **texts;

    snprintf(words, sizeof words, "%s is no list of texts", key);
    if (!json_is_array(list))
        return reading_wrong(at, words);
    texts = must(calloc(json_array_size(list) + 1, sizeof *texts));
    json_array_foreach(list, i, one) {
        texts[i] = (char *)(uintptr_t)json_string_value(one);
        if (!texts[i]) {
            free(texts);
            return reading_wrong(at, words);
        }
    }
    *out = texts;
    *len = json_array_size(list);
    return 0;
}

void reading_add_row(const struct reading *at, enum devicemgr_record_kind kind, const char *a,
                     const char *b, const char *c, const ProtobufCMessage *message)
{
    uint8_t *value = must(malloc(protobuf_c_message_get_packed_size(message) + 1));
    const struct devicemgr_record record = {.kind = kind,
                                            .key = {a, b, c},
                                            .value = value,
                                            .value_bytes = protobuf_c_message_pack(message, value)};

    rows_add(&at->document->rows, &record);
    free(value);
}
