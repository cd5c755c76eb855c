/*
 * Words of others, in a line or on a terminal: a control character neither forges the one nor is
 * obeyed by the other.
 */
#ifndef SHIM_PRINTABLE_H
#define SHIM_PRINTABLE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cri-proto/utf8.h"

/* Each byte of a control character becomes '?'. */
static inline void make_printable(char *text)
{
    while (*text) {
        size_t n = utf8_control_bytes(text, SIZE_MAX);

        memset(text, '?', n);
        text += n > 0 ? n : 1;
    }
}

/* Each control character is a '?'. */
static inline void put_printable(FILE *out, const char *text)
{
    while (*text) {
        size_t n = utf8_control_bytes(text, SIZE_MAX);

        fputc(n > 0 ? '?' : *text, out);
        text += n > 0 ? n : 1;
    }
}

#endif
