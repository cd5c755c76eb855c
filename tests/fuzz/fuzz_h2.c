/*
 * What a client sends on a kept connection (shim/bridge/h2_state.h), gone on with by another
 * process again and again.
 *
 * Input: a byte of choices, one that says how many bytes come at a time, then the client's bytes,
 * behind the preface and, with CHOICE_ACKED, what makes the connection one to go on with. Whatever
 * is in it, what goes out is whole frames within the client's windows, nothing is answered that was
 * not asked, and who goes on finds what the one before has left.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "shim/bridge/h2_state.h"
#include "tests/fuzz/fuzz.h"

#define CHOICE_ACKED 0x01
#define CHOICE_RESUMED 0x02
#define CHOICE_STREAMS 0x04 /* answers are not the last messages */

static const char *const PATHS[] = {"/a", "/v1beta1.DevicePlugin/Allocate"};
#define PATHS_LEN 2
#define ANSWER_BYTES 40000

struct run {
    int fd; /* the client's */
    struct kept_socket *kept;
    struct h2_reader reader;
    uint8_t choices;
    size_t data_bytes;
    uint8_t head[H2_FRAME_HEAD_BYTES];
    size_t head_bytes, payload_bytes; /* of the frame that goes out */
};

static const struct h2_state *state_of(const struct run *run)
{
    return kept_socket_state(run->kept);
}

/* ---- what comes out ---- */

static void check_head(struct run *run)
{
    const uint8_t *at = run->head;
    uint8_t type = at[3];

    run->payload_bytes = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
    FUZZ_CHECK(run->payload_bytes <= H2_FRAME_BYTES_MAX, "%zu", run->payload_bytes);
    FUZZ_CHECK(type == NGHTTP2_DATA || type == NGHTTP2_HEADERS || type == NGHTTP2_RST_STREAM ||
                   type == NGHTTP2_SETTINGS || type == NGHTTP2_PING || type == NGHTTP2_GOAWAY ||
                   type == NGHTTP2_WINDOW_UPDATE,
               "type %u", type);
    if (type == NGHTTP2_DATA)
        run->data_bytes += run->payload_bytes;
    run->head_bytes = 0;
}

static void look_at(struct run *run, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (run->payload_bytes > 0) {
            run->payload_bytes--;
            continue;
        }
        run->head[run->head_bytes++] = bytes[i];
        if (run->head_bytes == sizeof run->head)
            check_head(run);
    }
}

static void drain(struct run *run)
{
    uint8_t bytes[16384];
    ssize_t n;

    while ((n = recv(run->fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        look_at(run, bytes, (size_t)n);
}

/* ---- the server ---- */

static void check_state(const struct run *run)
{
    const struct h2_state *state = state_of(run);

    FUZZ_CHECK(state->over || state->window <= 0x7fffffff, "%lld", (long long)state->window);
    for (size_t i = 0; i < H2_STREAMS_MAX; i++) {
        const struct h2_stream *stream = &state->streams[i];

        if (stream->phase == H2_NONE)
            continue;
        FUZZ_CHECK(stream->id % 2 == 1 && stream->id <= state->last_id, "%u", stream->id);
        FUZZ_CHECK(stream->message_put <= stream->message_bytes, "%u", stream->message_put);
        FUZZ_CHECK(stream->request_bytes <= H2_MESSAGE_BYTES_MAX, "%u", stream->request_bytes);
        FUZZ_CHECK(stream->phase == H2_REQUEST || stream->phase == H2_FINISHED || stream->ended,
                   "%u", stream->phase);
    }
}

static void answer_all(struct run *run)
{
    for (size_t i = 0; i < H2_STREAMS_MAX; i++) {
        uint8_t *place;

        if (state_of(run)->streams[i].phase != H2_ASKED)
            continue;
        place = h2_place(run->kept, i);
        memset(place, 'x', ANSWER_BYTES);
        h2_answer(run->kept, i, ANSWER_BYTES, !(run->choices & CHOICE_STREAMS));
    }
}

static void go_on(struct run *run)
{
    int fds[KEPT_DESCRIPTORS];
    struct kept_socket *next;
    struct h2_state before = *state_of(run);

    if (!(run->choices & CHOICE_RESUMED) || !before.acked || before.over)
        return;
    for (int i = 0; i < KEPT_DESCRIPTORS; i++)
        fds[i] = dup(kept_socket_fd(run->kept, (enum kept_descriptor)i));
    FUZZ_CHECK(kept_socket_resume(fds, &H2_KEPT, &next) == 0, "it cannot go on");
    kept_socket_settled(next);
    kept_socket_free(run->kept);
    run->kept = next;
    FUZZ_CHECK(h2_can_go_on(next, PATHS_LEN), "its state makes no sense");
    FUZZ_CHECK(memcmp(&before, state_of(run), offsetof(struct h2_state, held)) == 0,
               "another state");
}

static void serve(struct run *run)
{
    int err;

    while (!state_of(run)->over && h2_has_room(run->kept) &&
           kept_socket_read(run->kept, h2_eat, &run->reader) > 0) {
        check_state(run);
        if (!state_of(run)->over)
            answer_all(run);
        go_on(run);
    }
    do {
        err = kept_socket_write(run->kept);
        drain(run);
    } while (err == -EAGAIN || (!err && h2_pump(run->kept)));
    check_state(run);
    go_on(run);
}

static void client_send(struct run *run, const void *bytes, size_t len)
{
    if (send(run->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len)
        serve(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t ACKED[] = {0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0};
    struct fuzz_input in = {data, size};
    struct run run = {.choices = fuzz_u8(&in)};
    size_t piece = 1 + 4 * (size_t)fuzz_u8(&in);
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    run.fd = pair[0];
    if (kept_socket_new(pair[1], &H2_KEPT, &run.kept) < 0 ||
        h2_reader_init(&run.reader, PATHS, PATHS_LEN) < 0)
        abort();
    h2_begin(run.kept);
    client_send(&run, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    if (run.choices & CHOICE_ACKED)
        client_send(&run, ACKED, sizeof ACKED);
    while (in.len > 0) {
        size_t n = in.len < piece ? in.len : piece;

        client_send(&run, in.bytes, n);
        in.bytes += n;
        in.len -= n;
    }
    FUZZ_CHECK(run.head_bytes == 0 && run.payload_bytes == 0, "part of a frame went out");
    h2_reader_fini(&run.reader);
    kept_socket_free(run.kept);
    close(run.fd);
    return 0;
}
