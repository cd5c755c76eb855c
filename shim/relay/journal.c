#include "shim/relay/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/point.h"
#include "shim/relay/frozen.h"
#include "shim/relay/journal_inside.h"
#include "shim/relay/limits.h"

/* What events or a state have taken beyond this is given back. */
#define KEPT_BYTES (1024 * 1024)
/* What may have passed since a state; taken_word() counts up to twice that. */
#define PASSED_BYTES_MAX (UINT32_C(1) << 31)

int journal_cookies(const int sockets[2], uint64_t out[2])
{
    for (int i = 0; i < 2; i++) {
        socklen_t len = sizeof out[i];

        if (getsockopt(sockets[i], SOL_SOCKET, SO_COOKIE, &out[i], &len) < 0)
            return -errno;
    }
    return 0;
}

/* ---- life ---- */

struct journal *journal_map(int fd)
{
    struct journal *j = calloc(1, sizeof *j);
    void *memory =
        j ? mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0)
          : MAP_FAILED;

    if (memory == MAP_FAILED) {
        free(j);
        close(fd);
        return NULL;
    }
    j->fd = fd;
    j->memory = memory;
    j->head = memory;
    j->events = j->memory + EVENTS_AT;
    return j;
}

struct journal *journal_new(const int sockets[2])
{
    struct journal *j;
    int fd = memfd_create("relayed", MFD_CLOEXEC);

    if (fd < 0)
        return NULL;
    if (ftruncate(fd, (off_t)MEMORY_BYTES) < 0) {
        close(fd);
        return NULL;
    }
    j = journal_map(fd);
    if (!j)
        return NULL;
    if (journal_cookies(sockets, j->head->sockets) < 0 ||
        read_count_init(&j->counts[0], sockets[0]) < 0 ||
        read_count_init(&j->counts[1], sockets[1]) < 0) {
        journal_free(j);
        return NULL;
    }
    j->head->format = frozen_format(JOURNAL_FORMAT);
    return j;
}

void journal_free(struct journal *j)
{
    if (!j)
        return;
    munmap(j->memory, MEMORY_BYTES);
    close(j->fd);
    free(j);
}

int journal_fd(const struct journal *j)
{
    return j->fd;
}

/* ---- as it goes ---- */

static void add(struct journal *j, const struct event_head *head)
{
    struct event_head *e = event_at(j, end_of(j));

    *e = *head;
    POINT("before record");
    journal_commit(&j->head->events, events_word(state_of(j), end_of(j) + (uint32_t)span_of(e)));
    POINT("recorded");
}

void journal_add_bytes(struct journal *j, enum session_end from, size_t n)
{
    j->last = end_of(j);
    journal_commit(&j->head->events, read_word(state_of(j), j->last, from, n));
    POINT("read");
    j->had[from] += n;
}

static enum journal_kind kind_of(enum session_end from, bool passed)
{
    if (from == SESSION_CLIENT)
        return passed ? JOURNAL_CLIENT_PASSED : JOURNAL_CLIENT;
    return passed ? JOURNAL_RUNTIME_PASSED : JOURNAL_RUNTIME;
}

void journal_add_read(struct journal *j)
{
    if (read_len(j) == 0)
        return;
    add(j,
        &(struct event_head){.kind = kind_of(read_from(j), false), .len = (uint32_t)read_len(j)});
}

/* Where they end. */
static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t len)
{
    if (len > 0)
        memcpy(at, bytes, len);
    return at + len;
}

static bool has_room(struct journal *j, size_t len)
{
    if (!j->head->over && len <= EVENTS_BYTES_MAX && end_of(j) + span(len) <= EVENTS_BYTES_MAX)
        return true;
    journal_commit(&j->head->over, 1);
    return false;
}

ssize_t journal_read(struct journal *j, enum session_end from, int fd, const uint8_t **bytes)
{
    uint8_t *room;
    ssize_t n;

    journal_add_read(j);
    if (!has_room(j, RELAY_READ_BYTES))
        return -ENOBUFS;
    *bytes = room = j->events + end_of(j) + sizeof(struct event_head);
    n = read_count_read(&j->counts[from], fd, room, RELAY_READ_BYTES);
    if (n > 0)
        journal_add_bytes(j, from, (size_t)n);
    return n;
}

/* Whether the bytes are not needed any more: whom they were for has all that was put out for it.
 * What it has is counted from the last state on, which within a header block may be long ago. */
static bool has_all(const struct journal *j, const uint64_t put_out[2])
{
    enum session_end to = read_from(j) == SESSION_CLIENT ? SESSION_RUNTIME : SESSION_CLIENT;

    return taken_by(j, to) == put_out[to] &&
           put_out[to] - j->head->states[state_of(j)].taken[to] <= PASSED_BYTES_MAX;
}

/* In the place of the bytes. */
static void add_passed(struct journal *j, const uint64_t put_out[2],
                       const struct session_passed *passed)
{
    add(j, &(struct event_head){.kind = kind_of(read_from(j), true),
                                .done = 1,
                                .len = (uint32_t)read_len(j),
                                .passed = *passed,
                                .put_out = {put_out[0], put_out[1]}});
    POINT("passed");
}

void journal_done(struct journal *j, const uint64_t put_out[2], const struct session_passed *passed)
{
    struct event_head *e;

    if (passed && read_len(j) > 0 && has_all(j, put_out)) {
        add_passed(j, put_out, passed);
        return;
    }
    journal_add_read(j);
    e = event_at(j, j->last);
    e->put_out[0] = put_out[0];
    e->put_out[1] = put_out[1];
    __atomic_store_n(&e->done, 1, __ATOMIC_RELEASE);
    POINT("done");
}

void journal_begin(struct journal *j)
{
    journal_add_read(j);
    if (has_room(j, 0))
        add(j, &(struct event_head){.kind = JOURNAL_BEGIN});
}

void journal_decide(struct journal *j, uint32_t told, const struct session_decision *d)
{
    size_t len = sizeof(struct decision_head) + d->fragment_bytes + d->message_bytes;
    const struct decision_head head = {.what = d->what,
                                       .stream = d->stream,
                                       .method = d->method,
                                       .class = d->class,
                                       .code = d->code,
                                       .fragment_bytes = d->fragment_bytes,
                                       .message_bytes = d->message_bytes};
    uint8_t *at;

    journal_add_read(j);
    if (!has_room(j, len))
        return;
    at = j->events + end_of(j) + sizeof(struct event_head);
    at = put_bytes(at, &head, sizeof head);
    at = put_bytes(at, d->fragment, d->fragment_bytes);
    put_bytes(at, d->message, d->message_bytes);
    add(j, &(struct event_head){.kind = JOURNAL_DECISION, .len = (uint32_t)len, .told = told});
    POINT("decided");
}

ssize_t journal_write(struct journal *j, enum session_end to, int fd, const struct iovec *pieces,
                      int n)
{
    struct exact_io *io = &j->head->writes[to];
    uint64_t *taken = &j->head->taken[to];
    ssize_t r = exact_write_pieces(io, (uint32_t)*taken, fd, pieces, n);

    if (r > 0) {
        POINT("written");
        journal_commit(taken, taken_word((*taken >> 32) + (uint64_t)r, exact_serial(io)));
        POINT("counted");
    }
    return r;
}

bool journal_is_due(const struct journal *j, size_t state_bytes)
{
    size_t events = end_of(j);

    return events >= JOURNAL_EVENTS_BYTES &&
           (events >= JOURNAL_EVENTS_BYTES_MOST || events >= state_bytes);
}

bool journal_is_over(const struct journal *j)
{
    return j->head->over;
}

/* Where the kernel keeps nothing of it any more. */
static void give_back(struct journal *j, size_t at, size_t used, size_t max)
{
    if (used > KEPT_BYTES)
        fallocate(j->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(at + KEPT_BYTES),
                  (off_t)(max - KEPT_BYTES));
}

static size_t state_bytes(const struct state_head *h)
{
    return h->session_len + h->unsent_len[0] + h->unsent_len[1];
}

void journal_state(struct journal *j, const struct buffer *session, const struct buffer unsent[2],
                   const uint64_t put_out[2])
{
    unsigned before = state_of(j), next = !before;
    struct state_head *h = &j->head->states[next];
    size_t events = end_of(j);
    uint8_t *at = state_at(j, next);

    *h = (struct state_head){.session_len = buffer_len(session),
                             .unsent_len = {buffer_len(&unsent[0]), buffer_len(&unsent[1])},
                             .put_out = {put_out[0], put_out[1]},
                             .had = {j->had[0], j->had[1]},
                             .taken = {taken_by(j, SESSION_CLIENT), taken_by(j, SESSION_RUNTIME)}};
    if (j->head->over || state_bytes(h) > STATE_BYTES_MAX) {
        journal_commit(&j->head->over, 1);
        return;
    }
    at = put_bytes(at, buffer_data(session), buffer_len(session));
    for (int i = 0; i < 2; i++)
        at = put_bytes(at, buffer_data(&unsent[i]), buffer_len(&unsent[i]));
    POINT("before state");
    journal_commit(&j->head->events, events_word(next, 0));
    POINT("state");
    give_back(j, EVENTS_AT, events, EVENTS_BYTES_MAX);
    give_back(j, (size_t)(state_at(j, before) - j->memory), state_bytes(&j->head->states[before]),
              STATE_BYTES_MAX);
}
