/*
 * What a process before this one has left of a relayed connection: the memory, and the session that
 * is made again from it.
 *
 * Input: a byte (bit 0: it was moved, for any release; bit 1: the state is that of a session whose
 * client said what comes next; bit 2: bytes that come last were read only just), the length of the
 * session's state and it, the lengths of what both ends have not taken, how many places are
 * damaged, for each where and what, and the events: kind, length, bytes, which of those that have
 * passed are what they came to. Whatever they are, the connection is gone on with or it is not, and
 * nothing is left open; a state that is whole, with nothing behind it, is gone on with.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zlib.h>

#include "shim/relay/frozen.h"
#include "shim/relay/journal_inside.h"
#include "shim/relay/replay.h"
#include "tests/fuzz/fuzz.h"

#define DAMAGES_MAX 8
#define IMAGE_BYTES_MAX 16384
#define UNSENT_BYTES_MAX 512

static void count(void *user, enum session_end to, const struct iovec *pieces, int n)
{
    uint64_t *put_out = user;

    for (int i = 0; i < n; i++)
        put_out[to] += pieces[i].iov_len;
}

static void no_more(void *user)
{
    (void)user;
}

static const struct session_ops OPS = {.write = count, .failed = no_more};

static void begun(void *owner, struct session *s, pid_t client)
{
    (void)owner, (void)s, (void)client;
}

static void gone(void *owner, struct session *s)
{
    (void)owner, (void)s;
}

static void request(void *owner, struct session *s, struct session_call *call)
{
    (void)owner, (void)s, (void)call;
}

static void answered(void *owner, struct session_call *call, int status, const uint8_t *message,
                     size_t message_bytes)
{
    (void)owner, (void)call, (void)status, (void)message, (void)message_bytes;
}

static void ended(void *owner, struct session_call *call)
{
    (void)owner, (void)call;
}

static const struct session_owner_ops OWNER = {.begun = begun,
                                               .gone = gone,
                                               .request = request,
                                               .answered = answered,
                                               .ended = ended,
                                               .regained = request};

struct image {
    uint8_t bytes[IMAGE_BYTES_MAX];
    size_t len;
    size_t last; /* where the last event begins */
};

static void put(struct image *image, const void *bytes, size_t len)
{
    if (len > sizeof image->bytes - image->len)
        len = sizeof image->bytes - image->len;
    if (len > 0)
        memcpy(image->bytes + image->len, bytes, len);
    image->len += len;
}

static void damage(struct fuzz_input *in, unsigned times, uint8_t *bytes, size_t len)
{
    for (; times > 0; times--) {
        size_t at = fuzz_u16(in);
        uint8_t value = fuzz_u8(in);

        if (len > 0)
            bytes[at % len] = value;
    }
}

static void write_at(int fd, off_t at, const void *bytes, size_t len)
{
    if (pwrite(fd, bytes, len, at) != (ssize_t)len)
        abort();
}

/* What is left, of whichever form. */
struct left {
    struct fuzz_input state;
    uint64_t put_out[2];
    size_t unsent_len[2];
    unsigned damages;
    bool reading;
};

static void put_event(struct image *events, struct event_head *e, struct fuzz_input bytes)
{
    static const uint8_t zeros[8];

    e->len = (uint32_t)bytes.len;
    put(events, e, sizeof *e);
    put(events, bytes.bytes, bytes.len);
    put(events, zeros, span(bytes.len) - sizeof *e - bytes.len);
}

static void put_passed(struct image *events, struct event_head *e, struct fuzz_input bytes)
{
    size_t len = bytes.len < sizeof e->passed ? bytes.len : sizeof e->passed;

    e->done = 1;
    e->len = (uint32_t)len;
    if (len > 0)
        memcpy(&e->passed, bytes.bytes, len);
    put(events, e, sizeof *e);
}

static struct image events_of(struct fuzz_input in, const struct left *left)
{
    struct image events = {.len = 0};

    while (in.len > 0) {
        struct event_head e = {.kind = fuzz_u8(&in) % (JOURNAL_RUNTIME_PASSED + 2),
                               .put_out = {left->put_out[0], left->put_out[1]}};
        struct fuzz_input bytes = fuzz_bytes(&in, fuzz_u16(&in) % 2048);

        if (span(bytes.len) > sizeof events.bytes - events.len)
            break;
        events.last = events.len;
        (is_passed(e.kind) ? put_passed : put_event)(&events, &e, bytes);
    }
    return events;
}

/* So much was read from the socket. */
static void read_away(int socket, int peer, size_t len)
{
    static uint8_t bytes[IMAGE_BYTES_MAX];
    struct read_count counts;

    if (read_count_init(&counts, socket) < 0 || write(peer, bytes, len) != (ssize_t)len)
        abort();
    while (len > 0) {
        ssize_t n = read_count_read(&counts, socket, bytes, len);

        if (n <= 0)
            abort();
        len -= (size_t)n;
    }
}

static size_t bytes_of(const struct image *events, uint32_t kind, uint32_t passed)
{
    size_t sum = 0;
    struct event_head e;

    for (size_t at = 0; at < events->len; at += span_of(&e)) {
        memcpy(&e, events->bytes + at, sizeof e);
        sum += e.kind == kind || e.kind == passed ? e.len : 0;
    }
    return sum;
}

static uint64_t word_of(const struct image *events, bool reading)
{
    struct event_head e = {.kind = JOURNAL_NOTHING};

    if (events->len > 0)
        memcpy(&e, events->bytes + events->last, sizeof e);
    if (!reading || (e.kind != JOURNAL_CLIENT && e.kind != JOURNAL_RUNTIME))
        return events_word(0, (uint32_t)events->len);
    return read_word(0, (uint32_t)events->last,
                     e.kind == JOURNAL_CLIENT ? SESSION_CLIENT : SESSION_RUNTIME, e.len);
}

/* As a process of this release leaves it that is killed. */
static void leave(int fd, int pairs[2][2], struct fuzz_input in, const struct left *left)
{
    struct head head = {.format = frozen_format(JOURNAL_FORMAT)};
    struct fuzz_input where = fuzz_bytes(&in, 3 * (size_t)left->damages);
    struct image events = events_of(in, left), states = {.len = 0};
    static const uint8_t unsent[UNSENT_BYTES_MAX];

    if (journal_cookies((int[]){pairs[0][0], pairs[1][0]}, head.sockets) < 0)
        abort();
    read_away(pairs[0][0], pairs[0][1], bytes_of(&events, JOURNAL_CLIENT, JOURNAL_CLIENT_PASSED));
    read_away(pairs[1][0], pairs[1][1], bytes_of(&events, JOURNAL_RUNTIME, JOURNAL_RUNTIME_PASSED));
    head.events = word_of(&events, left->reading);
    head.states[0].session_len = left->state.len;
    put(&states, left->state.bytes, left->state.len);
    for (int i = 0; i < 2; i++) {
        head.states[0].unsent_len[i] = left->unsent_len[i];
        head.states[0].put_out[i] = left->put_out[i];
        head.states[0].taken[i] = left->put_out[i] - left->unsent_len[i];
        head.taken[i] = taken_word(head.states[0].taken[i], 0);
        put(&states, unsent, left->unsent_len[i]);
    }
    damage(&where, left->damages / 2, (uint8_t *)&head.events,
           sizeof head - offsetof(struct head, events));
    damage(&where, left->damages - left->damages / 2, events.bytes, events.len);
    write_at(fd, 0, &head, sizeof head);
    write_at(fd, EVENTS_AT, events.bytes, events.len);
    write_at(fd, STATES_AT, states.bytes, states.len);
    if (ftruncate(fd, (off_t)MEMORY_BYTES) < 0)
        abort();
}

/* As one of any release leaves it that ends as it should. */
static void leave_moved(int fd, int pairs[2][2], struct fuzz_input in, const struct left *left)
{
    struct head head = {.format = frozen_format(JOURNAL_MOVED_FORMAT)};
    struct buffer out = {0};
    struct frozen_writer w = {.out = &out};
    struct image moved = {.len = 0};
    uint64_t cookies[2];
    size_t section;
    static const uint8_t unsent[UNSENT_BYTES_MAX];

    if (journal_cookies((int[]){pairs[0][0], pairs[1][0]}, cookies) < 0)
        abort();
    section = frozen_section_begin(&w);
    for (int i = 0; i < 2; i++) {
        frozen_put(&w, cookies[i]);
        frozen_put(&w, 0);
        frozen_put(&w, left->put_out[i]);
        frozen_put(&w, left->put_out[i] - left->unsent_len[i]);
        frozen_put_bytes(&w, unsent, left->unsent_len[i]);
    }
    frozen_put_bytes(&w, left->state.bytes, left->state.len);
    frozen_section_end(&w, section);
    put(&moved, buffer_data(&out), buffer_len(&out));
    buffer_fini(&out);
    damage(&in, left->damages, moved.bytes, moved.len);
    frozen_put(&w, crc32_z(0, moved.bytes, moved.len));
    put(&moved, buffer_data(&out), buffer_len(&out));
    buffer_fini(&out);
    write_at(fd, 0, &head, sizeof head);
    write_at(fd, MOVED_AT, moved.bytes, moved.len);
}

/* The state of a session whose client said this; nothing, if it has none. */
static void live(struct fuzz_input said, struct buffer *state, uint64_t put_out[2])
{
    struct session *s = session_new(&OPS, put_out, (struct session_owner){&OWNER, NULL});

    if (!s)
        abort();
    session_begin(s, 0);
    if (session_feed(s, SESSION_CLIENT, said.bytes, said.len) < 0 || session_freeze(s, state) < 0) {
        buffer_fini(state);
        put_out[0] = put_out[1] = 0;
    }
    session_free(s);
}

/* Whether it is gone on with. */
static bool make_again(struct journal *j)
{
    const struct session_owner owner = {&OWNER, NULL};
    struct journal_start start;
    struct session *session = NULL;
    int r = journal_start(j, &start);

    if (r < 0)
        return false;
    if (start.session)
        r = session_thaw(start.session, start.session_len, &OPS, start.put_out, owner, &session);
    else
        session = session_new(&OPS, start.put_out, owner);
    if (r == 0)
        r = replay(j, session, start.put_out);
    if (r == 0) {
        session_set_owner(session, owner);
        session_begin(session, 0);
        journal_settled(j);
    }
    session_free(session);
    for (int i = 0; i < 2; i++)
        buffer_fini(&start.unsent[i]);
    return r == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct buffer state = {0};
    struct left left = {.state = {.len = 0}};
    uint8_t how = fuzz_u8(&in);
    int pairs[2][2], fd = memfd_create("fuzz", MFD_CLOEXEC);
    bool whole, goes_on = false;
    struct journal *j;

    left.state = fuzz_bytes(&in, fuzz_u16(&in) % 4096);
    if (how & 2) {
        live(left.state, &state, left.put_out);
        left.state = (struct fuzz_input){buffer_data(&state), buffer_len(&state)};
    }
    for (int i = 0; i < 2; i++) {
        left.unsent_len[i] = fuzz_u16(&in) % UNSENT_BYTES_MAX;
        if (left.put_out[i] < left.unsent_len[i])
            left.put_out[i] = left.unsent_len[i];
    }
    left.damages = fuzz_u8(&in) % (DAMAGES_MAX + 1);
    left.reading = how & 4;
    whole = (how & 2) && left.state.len > 0 && left.damages == 0 && in.len == 0;
    for (int i = 0; i < 2; i++) {
        if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]) < 0)
            abort();
        read_away(pairs[i][0], pairs[i][1], 0);
    }
    (how & 1 ? leave_moved : leave)(fd, pairs, in, &left);
    if (journal_open(fd, (int[]){pairs[0][0], pairs[1][0]}, &j) == 0) {
        goes_on = make_again(j);
        journal_free(j);
    }
    FUZZ_CHECK(goes_on || !whole, "what was left whole is lost, form %u", how);
    FUZZ_CHECK(fcntl(fd, F_GETFD) < 0, "the memory is left open");
    for (int i = 0; i < 4; i++)
        close(pairs[i / 2][i % 2]);
    buffer_fini(&state);
    return 0;
}
