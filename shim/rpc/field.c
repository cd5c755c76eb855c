#include "shim/rpc/field.h"

#include <string.h>

nghttp2_nv field_make(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

bool field_is(const uint8_t *bytes, size_t len, const char *text)
{
    return len == strlen(text) && memcmp(bytes, text, len) == 0;
}

bool field_is_grpc_type(const uint8_t *value, size_t len)
{
    size_t n = strlen(FIELD_CONTENT_TYPE);

    if (len < n || memcmp(value, FIELD_CONTENT_TYPE, n) != 0)
        return false;
    return len == n || value[n] == '+' || value[n] == ';';
}

size_t field_bytes(size_t name_len, size_t value_len)
{
    return name_len + value_len + 32;
}
