/*
 * The memory of a kept socket (kept_socket.c, which alone includes this): where images and areas
 * are in it, and which image is this process'.
 */
#ifndef SHIM_BRIDGE_KEPT_MEMORY_H
#define SHIM_BRIDGE_KEPT_MEMORY_H

#include "shim/bridge/kept_socket.h"
#include "shim/exact_io.h"

/* At the beginning of the memory, the same in every release. */
struct kept_root {
    char magic[8];
    uint32_t format;
    uint32_t user_format;
    uint64_t cookie;    /* of the socket */
    uint32_t takeovers; /* by processes in a row that were not settled */
    uint32_t image;     /* which counts */
};

/* Behind an image's layout, in front of the slots. */
struct kept_head {
    uint32_t active; /* the slot that counts */
    struct exact_io reading, writing;
    uint8_t landing[KEPT_READ_BYTES_MAX]; /* of the last read */
};

/* Of two, one counts. */
struct kept_slot {
    uint32_t read, written; /* the last calls that are in here */
    uint32_t out_len;
    uint8_t out[KEPT_OUT_BYTES_MAX];
    _Alignas(16) uint8_t user[];
};

struct kept_memory {
    int fd; /* borrowed */
    struct kept_root *root;
    struct kept_head *head;
    size_t user_bytes, slot_bytes;
    /* private */
    uint8_t *image;
    size_t image_bytes;
    struct kept_field *fields;
    size_t fields_len;
    size_t areas, area_bytes;
    uint8_t **area; /* NULL: not mapped */
};

/* Each is followed by kept_memory_fini(), also on failure.
 * A new one's descriptor goes to *fd. 0 or a negative errno. */
int kept_memory_new(struct kept_memory *m, const struct kept_state *state, uint64_t cookie, int *fd)
    __attribute__((warn_unused_result));
/* That of another process, of which one more has taken it over then. As kept_socket_resume();
 * `sound` is asked of what counts, and before it does. */
int kept_memory_open(struct kept_memory *m, int fd, const struct kept_state *state, uint64_t cookie,
                     bool (*sound)(const struct kept_memory *m))
    __attribute__((warn_unused_result));
void kept_memory_fini(struct kept_memory *m);

struct kept_slot *kept_memory_slot(const struct kept_memory *m, uint32_t i);

/* What was stored before is there when this is: the compiler must not turn them round. */
static inline void kept_memory_store(uint32_t *to, uint32_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

/* As kept_socket_area() and kept_socket_discard(). */
uint8_t *kept_memory_area(struct kept_memory *m, size_t i);
void kept_memory_discard(struct kept_memory *m, size_t i);

#endif
