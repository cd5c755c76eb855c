#include "shim/bridge/kept_socket.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/bridge/kept_memory.h"
#include "shim/exact_io.h"
#include "shim/point.h"

struct kept_socket {
    int fds[KEPT_DESCRIPTORS];
    struct kept_memory memory;
    void (*copy)(void *to, const void *from);
    bool editing;
};

static struct kept_slot *active(const struct kept_socket *kept)
{
    return kept_memory_slot(&kept->memory, kept->memory.head->active);
}

static struct kept_slot *passive(const struct kept_socket *kept)
{
    return kept_memory_slot(&kept->memory, !kept->memory.head->active);
}

static int cookie_of(int fd, uint64_t *out)
{
    socklen_t len = sizeof *out;

    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, out, &len) < 0 ? -errno : 0;
}

/* ---- life ---- */

static struct kept_socket *kept_alloc(const struct kept_state *state)
{
    struct kept_socket *kept = calloc(1, sizeof *kept);

    if (!kept)
        return NULL;
    kept->copy = state->copy;
    for (size_t i = 0; i < KEPT_DESCRIPTORS; i++)
        kept->fds[i] = -1;
    return kept;
}

int kept_socket_new(int fd, const struct kept_state *state, struct kept_socket **out)
{
    struct kept_socket *kept;
    uint64_t cookie;
    int err = cookie_of(fd, &cookie);

    if (err)
        return err;
    kept = kept_alloc(state);
    if (!kept)
        return -ENOMEM;
    err = kept_memory_new(&kept->memory, state, cookie, &kept->fds[KEPT_MEMORY]);
    if (err) {
        kept_socket_free(kept);
        return err;
    }
    kept->fds[KEPT_SOCKET] = fd;
    *out = kept;
    return 0;
}

void kept_socket_free(struct kept_socket *kept)
{
    if (!kept)
        return;
    kept_memory_fini(&kept->memory);
    for (size_t i = 0; i < KEPT_DESCRIPTORS; i++) {
        if (kept->fds[i] >= 0)
            close(kept->fds[i]);
    }
    free(kept);
}

void kept_socket_give_back(struct kept_socket *kept)
{
    kept->fds[KEPT_SOCKET] = -1;
    kept_socket_free(kept);
}

uint64_t kept_socket_cookie(const struct kept_socket *kept)
{
    return kept->memory.root->cookie;
}

int kept_socket_fd(const struct kept_socket *kept, enum kept_descriptor which)
{
    return kept->fds[which];
}

/* ---- the state ---- */

const void *kept_socket_state(const struct kept_socket *kept)
{
    return active(kept)->user;
}

static struct kept_slot *edit(struct kept_socket *kept)
{
    const struct kept_slot *from = active(kept);
    struct kept_slot *to = passive(kept);

    assert(!kept->editing);
    kept->editing = true;
    to->read = from->read;
    to->written = from->written;
    to->out_len = from->out_len;
    memcpy(to->out, from->out, from->out_len);
    if (kept->copy)
        kept->copy(to->user, from->user);
    else
        memcpy(to->user, from->user, kept->memory.user_bytes);
    return to;
}

void *kept_socket_edit(struct kept_socket *kept)
{
    return edit(kept)->user;
}

size_t kept_socket_room(const struct kept_socket *kept)
{
    const struct kept_slot *slot = kept->editing ? passive(kept) : active(kept);

    return KEPT_OUT_BYTES_MAX - slot->out_len;
}

void kept_socket_put(struct kept_socket *kept, const void *bytes, size_t len)
{
    struct kept_slot *slot = passive(kept);

    assert(kept->editing && len <= kept_socket_room(kept));
    memcpy(slot->out + slot->out_len, bytes, len);
    slot->out_len += (uint32_t)len;
}

void kept_socket_commit(struct kept_socket *kept)
{
    assert(kept->editing);
    kept->editing = false;
    POINT("before commit");
    kept_memory_store(&kept->memory.head->active, !kept->memory.head->active);
    POINT("after commit");
}

void kept_socket_abandon(struct kept_socket *kept)
{
    assert(kept->editing);
    kept->editing = false;
}

/* ---- areas ---- */

uint8_t *kept_socket_area(struct kept_socket *kept, size_t i)
{
    return kept_memory_area(&kept->memory, i);
}

void kept_socket_discard(struct kept_socket *kept, size_t i)
{
    kept_memory_discard(&kept->memory, i);
}

/* ---- reading and writing ---- */

int kept_socket_read(struct kept_socket *kept, kept_socket_eat *eat, void *user)
{
    struct kept_head *head = kept->memory.head;
    uint32_t settled = active(kept)->read;
    ssize_t n = exact_unsettled(&head->reading, settled);
    struct kept_slot *next;

    if (n == 0)
        n = exact_read(&head->reading, settled, kept->fds[KEPT_SOCKET], head->landing,
                       sizeof head->landing);
    if (n <= 0)
        return (int)n;
    POINT("read");
    next = edit(kept);
    next->read = exact_serial(&head->reading);
    eat(kept, next->user, head->landing, (size_t)n, user);
    kept_socket_commit(kept);
    return (int)n;
}

static void drop_written(struct kept_socket *kept, size_t written)
{
    struct kept_slot *next = edit(kept);

    next->written = exact_serial(&kept->memory.head->writing);
    next->out_len -= (uint32_t)written;
    memmove(next->out, next->out + written, next->out_len);
    kept_socket_commit(kept);
}

int kept_socket_write(struct kept_socket *kept)
{
    struct exact_io *writing = &kept->memory.head->writing;

    for (;;) {
        const struct kept_slot *slot = active(kept);
        size_t len = slot->out_len < KEPT_WRITE_BYTES_MAX ? slot->out_len : KEPT_WRITE_BYTES_MAX;
        ssize_t n = exact_unsettled(writing, slot->written);

        if (n == 0 && len == 0)
            return 0;
        if (n == 0)
            n = exact_write(writing, slot->written, kept->fds[KEPT_SOCKET], slot->out, len);
        if (n < 0)
            return (int)n;
        POINT("written");
        drop_written(kept, (size_t)n);
    }
}

/* ---- going on ---- */

static bool is_sound(const struct kept_memory *memory)
{
    const struct kept_head *head = memory->head;
    const struct kept_slot *slot = kept_memory_slot(memory, head->active);
    ssize_t read = exact_unsettled(&head->reading, slot->read);
    ssize_t written = exact_unsettled(&head->writing, slot->written);

    return slot->out_len <= KEPT_OUT_BYTES_MAX && read >= 0 &&
           (size_t)read <= KEPT_READ_BYTES_MAX && written >= 0 && (size_t)written <= slot->out_len;
}

void kept_socket_settled(struct kept_socket *kept)
{
    kept->memory.root->takeovers = 0;
}

int kept_socket_resume(const int fds[KEPT_DESCRIPTORS], const struct kept_state *state,
                       struct kept_socket **out)
{
    struct kept_socket *kept;
    uint64_t cookie;
    int err = cookie_of(fds[KEPT_SOCKET], &cookie);

    if (err)
        return err;
    kept = kept_alloc(state);
    if (!kept)
        return -ENOMEM;
    err = kept_memory_open(&kept->memory, fds[KEPT_MEMORY], state, cookie, is_sound);
    if (err) {
        kept_socket_free(kept); /* the descriptors are the caller's yet */
        return err;
    }
    memcpy(kept->fds, fds, sizeof kept->fds);
    *out = kept;
    return 0;
}
