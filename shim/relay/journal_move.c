/*
 * What one release leaves to another, or to itself: a section (frozen.h) of numbers and bytes, in
 * the order in which they are written here, and its sum.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "shim/point.h"
#include "shim/relay/frozen.h"
#include "shim/relay/journal_inside.h"

#define SUM_BYTES 8

/* Of an end. */
struct moved_end {
    uint64_t cookie, had, put_out, taken;
    const uint8_t *unsent; /* borrowed, like the session's state */
    size_t unsent_len;
};

struct moved {
    struct moved_end ends[2];
    const uint8_t *session;
    size_t session_len;
};

static void put(struct frozen_writer *w, const struct moved *moved)
{
    size_t section = frozen_section_begin(w);

    for (int i = 0; i < 2; i++) {
        const struct moved_end *end = &moved->ends[i];

        frozen_put(w, end->cookie);
        frozen_put(w, end->had);
        frozen_put(w, end->put_out);
        frozen_put(w, end->taken);
        frozen_put_bytes(w, end->unsent, end->unsent_len);
    }
    frozen_put_bytes(w, moved->session, moved->session_len);
    frozen_section_end(w, section);
}

static void take(struct frozen_reader *r, struct moved *out)
{
    size_t section = frozen_section_enter(r);

    for (int i = 0; i < 2; i++) {
        struct moved_end *end = &out->ends[i];

        end->cookie = frozen_take(r);
        end->had = frozen_take(r);
        end->put_out = frozen_take(r);
        end->taken = frozen_take(r);
        end->unsent = frozen_take_bytes(r, STATE_BYTES_MAX, &end->unsent_len);
    }
    out->session = frozen_take_bytes(r, STATE_BYTES_MAX, &out->session_len);
    frozen_section_leave(r, section);
}

/* ---- leaving ---- */

static bool write_all(int fd, const uint8_t *bytes, size_t len, off_t at)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, bytes, len, at);

        if (n <= 0)
            return false;
        bytes += n;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

void journal_move(struct journal *j, const struct buffer *session, const struct buffer unsent[2],
                  const uint64_t put_out[2])
{
    struct moved moved = {.session = buffer_data(session), .session_len = buffer_len(session)};
    struct buffer out = {0};
    struct frozen_writer w = {.out = &out};

    for (int i = 0; i < 2; i++)
        moved.ends[i] = (struct moved_end){.cookie = j->head->sockets[i],
                                           .had = j->had[i],
                                           .put_out = put_out[i],
                                           .taken = taken_by(j, (enum session_end)i),
                                           .unsent = buffer_data(&unsent[i]),
                                           .unsent_len = buffer_len(&unsent[i])};
    put(&w, &moved);
    frozen_put(&w, crc32_z(0, buffer_data(&out), buffer_len(&out)));
    /* One that was killed at this, sooner, may have left more. */
    if (!w.no_memory && ftruncate(j->fd, (off_t)MEMORY_BYTES) == 0 &&
        write_all(j->fd, buffer_data(&out), buffer_len(&out), MOVED_AT)) {
        POINT("before move");
        journal_commit(&j->head->format, frozen_format(JOURNAL_MOVED_FORMAT));
        POINT("moved");
    }
    buffer_fini(&out);
}

/* ---- coming ---- */

/* Whether that is all of it, and as it was written. */
static bool read_moved(const uint8_t *bytes, size_t len, struct moved *out)
{
    struct frozen_reader r, sum;

    if (len < SUM_BYTES)
        return false;
    r = (struct frozen_reader){.at = bytes, .left = len - SUM_BYTES};
    sum = (struct frozen_reader){.at = bytes + len - SUM_BYTES, .left = SUM_BYTES};
    if (frozen_take(&sum) != crc32_z(0, bytes, len - SUM_BYTES))
        return false;
    take(&r, out);
    return frozen_at_end(&r) &&
           out->session_len + out->ends[0].unsent_len + out->ends[1].unsent_len <= STATE_BYTES_MAX;
}

/* The head is that of a new journal, but for its first two numbers, and a state is in force. */
static void make_state(struct journal *j, const struct moved *moved)
{
    struct head *h = j->head;
    struct state_head *state = &h->states[0];
    uint8_t *at = state_at(j, 0);

    memset((uint8_t *)h + offsetof(struct head, sockets), 0,
           sizeof *h - offsetof(struct head, sockets));
    memcpy(at, moved->session, moved->session_len);
    at += moved->session_len;
    state->session_len = moved->session_len;
    for (int i = 0; i < 2; i++) {
        const struct moved_end *end = &moved->ends[i];

        h->sockets[i] = end->cookie;
        h->taken[i] = taken_word(end->taken, 0);
        state->put_out[i] = end->put_out;
        state->taken[i] = end->taken;
        state->had[i] = end->had;
        state->unsent_len[i] = end->unsent_len;
        memcpy(at, end->unsent, end->unsent_len);
        at += end->unsent_len;
    }
    h->events = events_word(0, 0);
}

static int move_in(struct journal *j, const uint8_t *bytes, size_t len, int sockets[2])
{
    struct moved moved;

    if (!read_moved(bytes, len, &moved) ||
        !journal_has_sockets((const uint64_t[2]){moved.ends[0].cookie, moved.ends[1].cookie},
                             sockets))
        return -EPROTO;
    make_state(j, &moved);
    POINT("before moving in");
    journal_commit(&j->head->format, frozen_format(JOURNAL_FORMAT));
    POINT("moved in");
    return ftruncate(j->fd, (off_t)MEMORY_BYTES) < 0 ? -ENOMEM : 0;
}

/* One that is killed in the middle of it has another at it. */
int journal_move_in(struct journal *j, int sockets[2])
{
    struct stat st;
    void *bytes;
    size_t len;
    int r;

    if (fstat(j->fd, &st) < 0 || st.st_size <= MOVED_AT ||
        st.st_size - MOVED_AT > (off_t)(2 * STATE_BYTES_MAX))
        return -EPROTO;
    len = (size_t)(st.st_size - MOVED_AT);
    bytes = mmap(NULL, len, PROT_READ, MAP_SHARED, j->fd, MOVED_AT);
    if (bytes == MAP_FAILED)
        return -ENOMEM;
    r = move_in(j, bytes, len, sockets);
    munmap(bytes, len);
    return r;
}
