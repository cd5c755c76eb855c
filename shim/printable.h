/*
 * Words of others, in a line or on a terminal: a control character neither forges the one nor is
 * obeyed by the other.
 */
#ifndef SHIM_PRINTABLE_H
#define SHIM_PRINTABLE_H

#include <stdbool.h>

static inline bool is_control(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f;
}

/* What is shown of it. */
static inline char printable(char c)
{
    if (is_control(c))
        return '?';
    return c;
}

#endif
