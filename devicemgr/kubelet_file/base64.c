#include "devicemgr/kubelet_file/base64.h"

#include <stdlib.h>
#include <string.h>

#include "devicemgr/things/mem.h"

static int base64_digit(char c)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(DIGITS, c) : NULL;

    return at ? (int)(at - DIGITS) : -1;
}

int base64_decode(const char *text, uint8_t **out, size_t *out_len)
{
    size_t len = strlen(text), padding = 0, n = 0;
    uint8_t *bytes;
    uint32_t bits = 0;

    if (len % 4 != 0)
        return -1;
    while (padding < 2 && padding < len && text[len - 1 - padding] == '=')
        padding++;
    bytes = mem_alloc(len / 4 * 3, 1);
    for (size_t i = 0; i < len; i++) {
        int digit = i < len - padding ? base64_digit(text[i]) : 0;

        if (digit < 0) {
            free(bytes);
            return -1;
        }
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 3)
            continue;
        bytes[n++] = (uint8_t)(bits >> 16);
        bytes[n++] = (uint8_t)(bits >> 8);
        bytes[n++] = (uint8_t)bits;
    }
    /* What the padding stands for is zero, or the text is not the one that was written. */
    if ((bits & (padding == 2 ? 0xffffu : padding == 1 ? 0xffu : 0)) != 0) {
        free(bytes);
        return -1;
    }
    *out = bytes;
    *out_len = n - padding;
    return 0;
}
