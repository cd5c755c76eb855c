/*
 * What a test is told, put together as a text to compare. To be included behind <cmocka.h>.
 */
#ifndef TESTS_UNIT_TOLD_TEXT_H
#define TESTS_UNIT_TOLD_TEXT_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Adds to `text`, in which there is to be room for it. */
static inline void told_text_add(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline void told_text_add(char *text, size_t room, const char *format, ...)
{
    size_t len = strlen(text);
    va_list args;
    int bytes;

    va_start(args, format);
    bytes = vsnprintf(text + len, room - len, format, args);
    va_end(args);
    assert_in_range(bytes, 0, room - len - 1);
}

#endif
