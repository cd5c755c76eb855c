/*
 * Numbers and bytes in a row, for state that another process goes on from. All numbers have eight
 * bytes, the lowest first; bytes have their length before them.
 */
#ifndef SHIM_RELAY_FROZEN_H
#define SHIM_RELAY_FROZEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/relay/buffer.h"

/* A format's name, of eight characters, as the number that says it. */
uint64_t frozen_format(const char *name);

/* Zeroed but for `out`, which is borrowed. */
struct frozen_writer {
    struct buffer *out;
    bool no_memory; /* something is missing */
};

void frozen_put(struct frozen_writer *w, uint64_t value);
void frozen_put_bytes(struct frozen_writer *w, const void *bytes, size_t len);

/* What is put between these two is a section. Sections may be in sections. */
size_t frozen_section_begin(struct frozen_writer *w);
void frozen_section_end(struct frozen_writer *w, size_t begin);

/* Zeroed but for `at` and `left`, which are borrowed. */
struct frozen_reader {
    const uint8_t *at;
    size_t left;
    bool bad; /* it ended too early, or held what it must not: all that follows is 0 */
};

uint64_t frozen_take(struct frozen_reader *r);
/* One of at most `most`. */
uint64_t frozen_take_most(struct frozen_reader *r, uint64_t most);
/* At most `most` bytes, borrowed from what is read. */
const uint8_t *frozen_take_bytes(struct frozen_reader *r, size_t most, size_t *len_out);
/* A copy at the end of `out`. 0 or -ENOMEM. */
int frozen_take_buffer(struct frozen_reader *r, size_t most, struct buffer *out)
    __attribute__((warn_unused_result));

/* What is taken between these two is of the section that comes next. */
size_t frozen_section_enter(struct frozen_reader *r);
void frozen_section_leave(struct frozen_reader *r, size_t entered);
/* Nothing more is in it: whoever wrote it did not know what comes now. */
bool frozen_at_end(const struct frozen_reader *r);

#endif
