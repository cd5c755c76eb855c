#include "shim/base64.h"

#include <stdlib.h>

#include "shim/must.h"

char *base64_encode(const uint8_t *bytes, size_t len)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = must(malloc((len + 2) / 3 * 4 + 1)), *to = text;

    for (size_t i = 0; i < len; i += 3) {
        size_t there = len - i < 3 ? len - i : 3;
        uint32_t bits = (uint32_t)bytes[i] << 16;

        bits |= there > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        bits |= there > 2 ? bytes[i + 2] : 0;
        for (size_t digit = 0; digit < 4; digit++)
            *to++ = (char)(digit > there ? '=' : DIGITS[bits >> (18 - 6 * digit) & 63]);
    }
    *to = '\0';
    return text;
}
