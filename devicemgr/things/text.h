/*
 * A bounded text for people: refusals and log lines.
 *
 * What is added may come from any peer: control characters become '?' (line breaks and tabs a
 * blank), bytes that are no UTF-8 become '?', and what does not fit is cut at a character.
 */
#ifndef DEVICEMGR_THINGS_TEXT_H
#define DEVICEMGR_THINGS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/ids.h"
#include "devicemgr/things/limits.h"

/* A zeroed struct is the empty text; buf always ends in NUL. */
struct text {
    size_t len;
    char buf[TEXT_BYTES_MAX];
};

void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A peer's words, at most `bytes_max` of them, then "..." if there were more. */
void text_add_words(struct text *text, const char *words, size_t bytes_max);
/* `before`, which is ours, and a name that may be a peer's, at most half as much of it as of
 * words. */
void text_add_name(struct text *text, const char *before, const char *name);
/* "g0,g1,... (17 more)" */
void text_add_ids(struct text *text, const struct ids *ids);
/* "350ms", "12s", "4m48s", "2h3m" */
void text_add_duration(struct text *text, uint64_t ms);

#endif
