#include "cri-proto/utf8.h"

#include <stdint.h>
#include <string.h>

size_t utf8_character_bytes(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned char low = 0x80, high = 0xbf;
    size_t bytes;

    if (len == 0 || s[0] < 0x80)
        return len > 0;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        bytes = 2;
    else if ((s[0] & 0xf0) == 0xe0)
        bytes = 3;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4)
        bytes = 4;
    else
        return 0;
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xed)
        high = 0x9f;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < bytes; i++, low = 0x80, high = 0xbf) {
        if (i == len || s[i] < low || s[i] > high)
            return 0;
    }
    return bytes;
}

size_t utf8_control_bytes(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;

    if (len == 0)
        return 0;
    if (s[0] < ' ' || s[0] == 0x7f)
        return 1;
    if (s[0] == 0xc2)
        return len > 1 && s[1] >= 0x80 && s[1] < 0xa0 ? 2 : 0;
    if (s[0] != 0xe2 || len < 3)
        return 0;
    if (s[1] == 0x80)
        return s[2] >= 0xa8 && s[2] <= 0xae ? 3 : 0;
    return s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9 ? 3 : 0;
}

bool utf8_is_text(const char *text)
{
    size_t bytes;

    for (; *text; text += bytes) {
        bytes = (unsigned char)*text < 0x80 ? 1 : utf8_character_bytes(text, SIZE_MAX);
        if (bytes == 0)
            return false;
    }
    return true;
}

void utf8_copy(char *out, size_t bytes, const char *text)
{
    while (*text) {
        size_t n = utf8_character_bytes(text, SIZE_MAX), put = n > 0 ? n : 1;

        if (put >= bytes)
            break;
        memcpy(out, n > 0 ? text : "?", put);
        out += put;
        bytes -= put;
        text += put;
    }
    *out = '\0';
}
