#include "shim/relay/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/exact_io.h"
#include "shim/relay/frozen.h"
#include "shim/relay/limits.h"

/* The memory has holes: only what was written is there. */
#define HEAD_BYTES 4096
#define EVENTS_AT HEAD_BYTES
#define EVENTS_BYTES_MAX (64u * 1024 * 1024)
#define STATES_AT (EVENTS_AT + EVENTS_BYTES_MAX)
/* RELAY_HELD_BYTES_MAX with the rest of RELAY_CONNECTION_BYTES_MAX that is in a state. */
#define STATE_BYTES_MAX (160u * 1024 * 1024)
#define MEMORY_BYTES ((size_t)STATES_AT + 2 * (size_t)STATE_BYTES_MAX)
/* What events or a state have taken beyond this is given back. */
#define KEPT_BYTES (1024 * 1024)

/* Before the bytes of each event; the next one begins at a multiple of its alignment. */
struct event_head {
    uint32_t kind; /* enum journal_kind */
    uint32_t len;
    uint32_t told; /* of a decision */
    uint32_t done;
    uint64_t put_out[2];
};

/* The bytes of a decision begin with it; the fragment and the message follow. */
struct decision_head {
    uint32_t what, stream, method, class;
    int64_t code;
    uint64_t fragment_bytes, message_bytes;
};

struct state_head {
    uint64_t put_out[2];
    uint64_t taken[2];
    uint64_t session_len; /* 0: the session is new */
    uint64_t unsent_len[2];
};

/* Each of `events` and `taken` is one aligned word, so that a store of it is a commit. */
struct head {
    uint64_t format;
    uint64_t sockets[2]; /* their cookies */
    uint64_t takers;     /* in a row, that have not got through it */
    uint64_t over;
    uint64_t read_from; /* the end of the last read */
    uint64_t events;    /* events_word() */
    uint64_t taken[2];  /* taken_word() */
    struct state_head states[2];
    struct exact_io read;
    struct exact_io writes[2];
};

_Static_assert(sizeof(struct head) <= HEAD_BYTES, "the head has a page");

struct journal {
    int fd;
    uint8_t *memory;
    uint8_t *events;
    struct head *head;
    uint32_t last; /* the last event of bytes */
    uint32_t at;   /* of journal_next() */
};

static void commit(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Which state is in force, where the events behind it end, and the number of the last read whose
 * bytes are among them. */
static uint64_t events_word(unsigned state, uint32_t end, uint32_t serial)
{
    return (uint64_t)state << 63 | (uint64_t)end << 32 | serial;
}

static unsigned state_of(const struct journal *j)
{
    return (unsigned)(j->head->events >> 63);
}

static uint32_t end_of(const struct journal *j)
{
    return j->head->events >> 32 & 0x7fffffff;
}

/* How many bytes an end has taken, of which 32 bits are enough to count on from the state, and the
 * number of the last write that is counted. */
static uint64_t taken_word(uint64_t bytes, uint32_t serial)
{
    return bytes << 32 | serial;
}

static uint64_t taken_by(const struct journal *j, enum session_end end)
{
    uint64_t base = j->head->states[state_of(j)].taken[end];

    return base + (uint32_t)((uint32_t)(j->head->taken[end] >> 32) - (uint32_t)base);
}

static uint8_t *state_at(const struct journal *j, unsigned state)
{
    return j->memory + STATES_AT + (size_t)state * STATE_BYTES_MAX;
}

static struct event_head *event_at(const struct journal *j, uint32_t at)
{
    return (struct event_head *)(void *)(j->events + at);
}

/* From the beginning of one event to that of the next. */
static size_t span(size_t len)
{
    return sizeof(struct event_head) + (len + 7) / 8 * 8;
}

static int cookies(const int sockets[2], uint64_t out[2])
{
    for (int i = 0; i < 2; i++) {
        socklen_t len = sizeof out[i];

        if (getsockopt(sockets[i], SOL_SOCKET, SO_COOKIE, &out[i], &len) < 0)
            return -errno;
    }
    return 0;
}

/* ---- life ---- */

/* Takes `fd`. */
static struct journal *map(int fd)
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
    j = map(fd);
    if (!j)
        return NULL;
    if (cookies(sockets, j->head->sockets) < 0) {
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

/* ---- taking over ---- */

/* Whether they are its sockets, which are put in order. */
static bool has_sockets(const struct head *h, int sockets[2])
{
    int first = sockets[0];
    uint64_t own[2];

    if (cookies(sockets, own) < 0)
        return false;
    if (own[0] == h->sockets[1]) {
        sockets[0] = sockets[1];
        sockets[1] = first;
    }
    return cookies(sockets, own) == 0 && memcmp(own, h->sockets, sizeof own) == 0;
}

static bool is_sound(const struct head *h)
{
    return h->format == frozen_format(JOURNAL_FORMAT) && !h->over && h->takers < JOURNAL_TAKERS_MAX;
}

static void add_bytes(struct journal *j, enum session_end from, size_t n);

/* The last calls of who was killed. */
static int settle_calls(struct journal *j)
{
    struct head *h = j->head;
    ssize_t n = exact_unsettled(&h->read, (uint32_t)h->events);

    if (n < 0 || n > (ssize_t)RELAY_READ_BYTES || h->read_from > SESSION_RUNTIME ||
        end_of(j) + span(RELAY_READ_BYTES) > EVENTS_BYTES_MAX)
        return -EPROTO;
    if (n > 0)
        add_bytes(j, (enum session_end)h->read_from, (size_t)n);
    for (int i = 0; i < 2; i++) {
        n = exact_unsettled(&h->writes[i], (uint32_t)h->taken[i]);
        if (n < 0)
            return -EPROTO;
        if (n > 0)
            commit(&h->taken[i],
                   taken_word((h->taken[i] >> 32) + (uint64_t)n, exact_serial(&h->writes[i])));
    }
    return 0;
}

int journal_open(int memory, int sockets[2], struct journal **out)
{
    struct stat st;
    struct journal *j;
    int r;

    if (fstat(memory, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)MEMORY_BYTES) {
        close(memory);
        return -EPROTO;
    }
    j = map(memory);
    if (!j)
        return -ENOMEM;
    r = is_sound(j->head) && has_sockets(j->head, sockets) ? 0 : -EPROTO;
    if (r == 0) {
        j->head->takers++;
        r = settle_calls(j);
    }
    if (r == 0)
        *out = j;
    else
        journal_free(j);
    return r;
}

void journal_settled(struct journal *j)
{
    j->head->takers = 0;
}

static int copy_unsent(struct buffer *out, const uint8_t *bytes, uint64_t len, uint64_t gone)
{
    gone = gone < len ? gone : len;
    return buffer_put(out, bytes + gone, len - gone);
}

int journal_start(struct journal *j, struct journal_start *out)
{
    unsigned state = state_of(j);
    const struct state_head *h = &j->head->states[state];
    const uint8_t *at = state_at(j, state);
    int r = 0;

    *out = (struct journal_start){.session = h->session_len > 0 ? at : NULL,
                                  .session_len = h->session_len};
    if (h->session_len > STATE_BYTES_MAX || h->unsent_len[0] > STATE_BYTES_MAX ||
        h->unsent_len[1] > STATE_BYTES_MAX ||
        h->session_len + h->unsent_len[0] + h->unsent_len[1] > STATE_BYTES_MAX)
        return -EPROTO;
    at += h->session_len;
    for (int i = 0; i < 2 && r == 0; i++) {
        out->put_out[i] = h->put_out[i];
        out->taken[i] = taken_by(j, (enum session_end)i);
        if (h->put_out[i] - h->taken[i] != h->unsent_len[i])
            r = -EPROTO;
        else
            r = copy_unsent(&out->unsent[i], at, h->unsent_len[i], out->taken[i] - h->taken[i]);
        at += h->unsent_len[i];
    }
    for (int i = 0; i < 2 && r < 0; i++)
        buffer_fini(&out->unsent[i]);
    return r;
}

static int read_decision(const uint8_t *bytes, size_t len, struct session_decision *out)
{
    struct decision_head h;

    if (len < sizeof h)
        return -EPROTO;
    memcpy(&h, bytes, sizeof h);
    len -= sizeof h;
    if (h.fragment_bytes > len || h.message_bytes != len - h.fragment_bytes)
        return -EPROTO;
    *out = (struct session_decision){.what = (enum session_decides)h.what,
                                     .stream = h.stream,
                                     .code = (int)h.code,
                                     .method = (enum cri_method)h.method,
                                     .class = (enum cri_method_class)h.class,
                                     .fragment = bytes + sizeof h,
                                     .fragment_bytes = h.fragment_bytes,
                                     .message = bytes + sizeof h + h.fragment_bytes,
                                     .message_bytes = h.message_bytes};
    return 0;
}

int journal_next(struct journal *j, bool look, struct journal_event *out)
{
    const struct event_head *e = event_at(j, j->at);
    uint32_t end = end_of(j);

    *out = (struct journal_event){.kind = JOURNAL_NOTHING};
    if (j->at == end)
        return 0;
    if (end > EVENTS_BYTES_MAX || end - j->at < sizeof *e || end - j->at < span(e->len) ||
        e->kind == JOURNAL_NOTHING || e->kind > JOURNAL_DECISION)
        return -EPROTO;
    *out = (struct journal_event){.kind = (enum journal_kind)e->kind,
                                  .bytes = (const uint8_t *)(e + 1),
                                  .len = e->len,
                                  .done = e->done,
                                  .put_out = {e->put_out[0], e->put_out[1]},
                                  .told = e->told};
    if (!look)
        j->at += (uint32_t)span(e->len);
    return e->kind == JOURNAL_DECISION ? read_decision(out->bytes, out->len, &out->decision) : 0;
}

/* ---- as it goes ---- */

static void add(struct journal *j, enum journal_kind kind, size_t len, uint32_t told,
                uint32_t serial)
{
    uint32_t at = end_of(j);

    *event_at(j, at) = (struct event_head){.kind = kind, .len = (uint32_t)len, .told = told};
    commit(&j->head->events, events_word(state_of(j), at + (uint32_t)span(len), serial));
}

/* What the last read has left behind the head that is yet to be written. */
static void add_bytes(struct journal *j, enum session_end from, size_t n)
{
    j->last = end_of(j);
    add(j, from == SESSION_CLIENT ? JOURNAL_CLIENT : JOURNAL_RUNTIME, n, 0,
        exact_serial(&j->head->read));
}

/* How far that went. */
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
    commit(&j->head->over, 1);
    return false;
}

ssize_t journal_read(struct journal *j, enum session_end from, int fd, const uint8_t **bytes)
{
    struct head *h = j->head;
    uint8_t *room = j->events + end_of(j) + sizeof(struct event_head);
    ssize_t n;

    if (!has_room(j, RELAY_READ_BYTES))
        return -ENOBUFS;
    *bytes = room;
    h->read_from = from;
    n = exact_read(&h->read, (uint32_t)h->events, fd, room, RELAY_READ_BYTES);
    if (n > 0)
        add_bytes(j, from, (size_t)n);
    return n;
}

void journal_done(struct journal *j, const uint64_t put_out[2])
{
    struct event_head *e = event_at(j, j->last);

    e->put_out[0] = put_out[0];
    e->put_out[1] = put_out[1];
    __atomic_store_n(&e->done, 1, __ATOMIC_RELEASE);
}

void journal_begin(struct journal *j)
{
    if (has_room(j, 0))
        add(j, JOURNAL_BEGIN, 0, 0, (uint32_t)j->head->events);
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

    if (!has_room(j, len))
        return;
    at = j->events + end_of(j) + sizeof(struct event_head);
    at = put_bytes(at, &head, sizeof head);
    at = put_bytes(at, d->fragment, d->fragment_bytes);
    put_bytes(at, d->message, d->message_bytes);
    add(j, JOURNAL_DECISION, len, told, (uint32_t)j->head->events);
}

ssize_t journal_write(struct journal *j, enum session_end to, int fd, const struct iovec *pieces,
                      int n)
{
    struct exact_io *io = &j->head->writes[to];
    uint64_t *taken = &j->head->taken[to];
    ssize_t r = exact_write_pieces(io, (uint32_t)*taken, fd, pieces, n);

    if (r > 0)
        commit(taken, taken_word((*taken >> 32) + (uint64_t)r, exact_serial(io)));
    return r;
}

bool journal_is_due(const struct journal *j)
{
    return end_of(j) >= JOURNAL_EVENTS_BYTES;
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
                             .taken = {taken_by(j, SESSION_CLIENT), taken_by(j, SESSION_RUNTIME)}};
    if (j->head->over || state_bytes(h) > STATE_BYTES_MAX) {
        commit(&j->head->over, 1);
        return;
    }
    at = put_bytes(at, buffer_data(session), buffer_len(session));
    for (int i = 0; i < 2; i++)
        at = put_bytes(at, buffer_data(&unsent[i]), buffer_len(&unsent[i]));
    commit(&j->head->events, events_word(next, 0, (uint32_t)j->head->events));
    give_back(j, EVENTS_AT, events, EVENTS_BYTES_MAX);
    give_back(j, (size_t)(state_at(j, before) - j->memory), state_bytes(&j->head->states[before]),
              STATE_BYTES_MAX);
}
