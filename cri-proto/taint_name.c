#include "cri-proto/taint_name.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* Letters and digits, and between them any of `also`. */
static bool is_word(const char *s, size_t len, const char *also, bool lower)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        bool inside = i > 0 && i + 1 < len;

        if (c >= 0x80 || (lower && isupper(c)))
            return false;
        if (!isalnum(c) && !(inside && strchr(also, c)))
            return false;
    }
    return len > 0;
}

/* A DNS subdomain: words joined by dots. */
static bool is_subdomain(const char *s, size_t len)
{
    const char *end = s + len;

    while (s < end) {
        const char *dot = memchr(s, '.', (size_t)(end - s));
        size_t part = (size_t)((dot ? dot : end) - s);

        if (!is_word(s, part, "-", true) || dot == end - 1)
            return false;
        s += part + (dot != NULL);
    }
    return len > 0;
}

bool taint_key_valid(const char *key)
{
    const char *slash = strchr(key, '/');
    const char *name = slash ? slash + 1 : key;

    if (slash && (slash - key > 253 || !is_subdomain(key, (size_t)(slash - key))))
        return false;
    return strlen(name) <= 63 && is_word(name, strlen(name), "-_.", false);
}

bool taint_value_valid(const char *value)
{
    size_t len = strlen(value);

    return len == 0 || (len <= TAINT_VALUE_BYTES_MAX && is_word(value, len, "-_.", false));
}

bool taint_driver_valid(const char *name)
{
    return strlen(name) <= 63 && is_subdomain(name, strlen(name));
}
