/*
 * What the fuzz targets share: the oracle's check and a reader that takes decisions from the input.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the run, as a finding, when `condition` does not hold. The rest is a printf format. */
#define FUZZ_CHECK(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* libFuzzer's entry point. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is left of an input. */
struct fuzz_input {
    const uint8_t *bytes;
    size_t len;
};

/* The next byte; 0 at the end. */
static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
    if (in->len == 0)
        return 0;
    in->len--;
    return *in->bytes++;
}

static inline uint16_t fuzz_u16(struct fuzz_input *in)
{
    uint16_t high = fuzz_u8(in);

    return (uint16_t)(high << 8 | fuzz_u8(in));
}

/* The next `len` bytes, or fewer at the end. */
static inline struct fuzz_input fuzz_bytes(struct fuzz_input *in, size_t len)
{
    struct fuzz_input part = {in->bytes, len < in->len ? len : in->len};

    if (part.len > 0)
        in->bytes += part.len;
    in->len -= part.len;
    return part;
}

/* The bytes up to the next NUL, which is skipped, as a text of its own; the caller frees it. */
static inline char *fuzz_text(struct fuzz_input *in)
{
    size_t len = 0;
    char *text;

    while (len < in->len && in->bytes[len] != 0)
        len++;
    text = malloc(len + 1);
    if (!text)
        abort();
    for (size_t i = 0; i < len; i++)
        text[i] = (char)in->bytes[i];
    text[len] = '\0';
    fuzz_bytes(in, len + 1);
    return text;
}

#endif
