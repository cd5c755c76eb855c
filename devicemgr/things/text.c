#include "devicemgr/things/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cri-proto/utf8.h"

/* Longest piece one text_add() formats; what is longer is cut before it is cleaned. */
#define PIECE_BYTES_MAX (2 * TEXT_BYTES_MAX)

/* Appends cleaned characters of `s` while they fit below `len_max`; returns what is left of `s`. */
static const char *append(struct text *text, const char *s, size_t len_max)
{
    if (len_max > sizeof text->buf - 1)
        len_max = sizeof text->buf - 1;
    while (*s) {
        size_t bytes = utf8_character_bytes(s, SIZE_MAX), put = bytes;
        const char *from = s;

        if (*s == '\n' || *s == '\t' || *s == '\r') {
            from = " ";
        } else if (bytes == 0 || utf8_control_bytes(s, SIZE_MAX) > 0) {
            from = "?";
            put = 1;
        }
        if (text->len + put > len_max)
            break;
        memcpy(text->buf + text->len, from, put);
        text->len += put;
        s += bytes > 0 ? bytes : 1;
    }
    text->buf[text->len] = '\0';
    return s;
}

void text_add(struct text *text, const char *format, ...)
{
    char piece[PIECE_BYTES_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    append(text, piece, SIZE_MAX);
}

void text_add_words(struct text *text, const char *words, size_t bytes_max)
{
    if (*append(text, words, text->len + bytes_max))
        append(text, "...", SIZE_MAX);
}

void text_add_name(struct text *text, const char *before, const char *name)
{
    append(text, before, SIZE_MAX);
    text_add_words(text, name, TEXT_WORDS_BYTES_MAX / 2);
}

void text_add_ids(struct text *text, const struct ids *ids)
{
    size_t start = text->len;

    for (size_t i = 0; i < ids->len; i++) {
        if (i > 0)
            append(text, ",", SIZE_MAX);
        if (text->len - start + strlen(ids->v[i]) > TEXT_IDS_BYTES_MAX && i > 0) {
            text_add(text, "... (%zu more)", ids->len - i);
            return;
        }
        text_add_words(text, ids->v[i], TEXT_IDS_BYTES_MAX);
    }
}

void text_add_duration(struct text *text, uint64_t ms)
{
    uint64_t s = ms / 1000;

    if (ms < 1000)
        text_add(text, "%" PRIu64 "ms", ms);
    else if (s < 60)
        text_add(text, "%" PRIu64 "s", s);
    else if (s < 3600)
        text_add(text, "%" PRIu64 "m%" PRIu64 "s", s / 60, s % 60);
    else
        text_add(text, "%" PRIu64 "h%" PRIu64 "m", s / 3600, s / 60 % 60);
}
