/*
 * Enums whose values have words, in a table with each at its value's place.
 */
#ifndef DEVICEMGR_THINGS_ENUM_H
#define DEVICEMGR_THINGS_ENUM_H

#include <stddef.h>
#include <string.h>

/* Where the word is; -1: nowhere. A value without a word (NULL) is not found. */
static inline int enum_place(const char *const *words, size_t len, const char *word)
{
    for (size_t i = 0; i < len; i++) {
        if (words[i] && strcmp(words[i], word) == 0)
            return (int)i;
    }
    return -1;
}

/* Whether a value of the enum at `out` has that word; then it is put there. */
#define ENUM_FIND(words, word, out)                                                                \
    ({                                                                                             \
        int place = enum_place(words, sizeof(words) / sizeof *(words), word);                      \
                                                                                                   \
        if (place >= 0)                                                                            \
            *(out) = (typeof(*(out)))place;                                                        \
        place >= 0;                                                                                \
    })

#endif
