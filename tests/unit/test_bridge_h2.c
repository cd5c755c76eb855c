/* shim/bridge/h2_state.c, h2_answer.c, h2_put.c, request_block.c: a connection whose server is
 * killed between any two steps and at any time, under calls that nghttp2 makes; and frames that are
 * wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>

/* Set in a process that is to end at the so-many-th of its steps. */
static unsigned steps_left;

static void step_passed(void);
#define POINT(name) step_passed()
#include "shim/bridge/kept_socket.c"
#define store exact_store
#include "shim/exact_io.c"
#undef store

#include "shim/bridge/h2_state.h"

static void step_passed(void)
{
    if (steps_left > 0 && --steps_left == 0)
        raise(SIGKILL);
}

static const char *const PATHS[] = {"/s/Turn", "/s/Count"};
#define PATHS_LEN 2
#define REQUEST_BYTES_MAX 60000
#define COUNT_BYTES_MAX 90000
#define CALLS_AT_ONCE 4

static unsigned draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % below;
}

/* ---- the server: what is asked comes back with each byte turned, and a stream counts ---- */

static size_t count_bytes(uint64_t number)
{
    return 8 + number * 7919 % COUNT_BYTES_MAX;
}

static uint8_t count_byte(uint64_t number, size_t i)
{
    return (uint8_t)(number >> 8 * (i % 8)) + (uint8_t)(i / 8);
}

/* The number is that of the message that was sent last, and one. */
static void count_on(struct kept_socket *kept, size_t i)
{
    const struct h2_stream *stream =
        &((const struct h2_state *)kept_socket_state(kept))->streams[i];
    uint8_t *place = h2_place(kept, i);
    uint64_t number = 0;

    if (stream->phase == H2_ANSWERING)
        memcpy(&number, kept_socket_area(kept, 2 * i + stream->place), sizeof number);
    number++;
    memcpy(place, &number, sizeof number);
    for (size_t k = sizeof number; k < count_bytes(number); k++)
        place[k] = count_byte(number, k);
    h2_answer(kept, i, count_bytes(number), false);
}

static void turn(struct kept_socket *kept, size_t i)
{
    const struct h2_state *state = kept_socket_state(kept);
    size_t len = state->streams[i].request_bytes;
    const uint8_t *request = kept_socket_area(kept, 2 * i);
    uint8_t *place = h2_place(kept, i);

    for (size_t k = 0; k < len; k++)
        place[k] = request[k] ^ 0x55;
    h2_answer(kept, i, len, true);
}

static void answer_all(struct kept_socket *kept)
{
    for (size_t i = 0; i < H2_STREAMS_MAX; i++) {
        const struct h2_stream *stream =
            &((const struct h2_state *)kept_socket_state(kept))->streams[i];

        if (stream->phase == H2_ASKED && stream->method == 0)
            turn(kept, i);
        else if (stream->method == 1 &&
                 (stream->phase == H2_ASKED || stream->phase == H2_ANSWERING) &&
                 stream->message_put == stream->message_bytes)
            count_on(kept, i);
    }
}

/* One turn. 0; -EAGAIN: it waits; 1: the other side has ended it; or what failed. */
static int serve(struct kept_socket *kept, struct h2_reader *reader)
{
    int written, n;

    n = h2_has_room(kept) ? kept_socket_read(kept, h2_eat, reader) : -EAGAIN;
    if (n == 0)
        return 1;
    if (n < 0 && n != -EAGAIN)
        return n;
    answer_all(kept);
    do
        written = kept_socket_write(kept);
    while (!written && h2_pump(kept));
    return n > 0 ? 0 : written ? written : n;
}

/* ---- a life of it ---- */

static pid_t begin_life(const int fds[KEPT_DESCRIPTORS], unsigned steps)
{
    struct h2_reader reader = {.paths = PATHS, .paths_len = PATHS_LEN};
    struct kept_socket *kept;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    signal(SIGPIPE, SIG_IGN);
    steps_left = steps;
    if (kept_socket_resume(fds, &H2_KEPT, &kept) < 0 || !h2_can_go_on(kept, PATHS_LEN))
        _exit(20);
    kept_socket_settled(kept);
    for (;;) {
        struct pollfd fd = {.fd = kept_socket_fd(kept, KEPT_SOCKET)};
        int r = serve(kept, &reader);

        if (r > 0 || (r < 0 && r != -EAGAIN))
            _exit(21);
        fd.events = (short)(POLLIN | (kept_socket_room(kept) < KEPT_OUT_BYTES_MAX ? POLLOUT : 0));
        if (r < 0)
            poll(&fd, 1, 100);
    }
}

/* ---- the client ---- */

struct call {
    int32_t id; /* 0: none */
    size_t len, sent, got;
    unsigned seed; /* of its bytes */
    bool counts;
    uint64_t number; /* of the message that comes */
    bool ok;         /* its status came */
};

struct client {
    nghttp2_session *session;
    int fd;
    struct kept_socket *kept;
    int fds[KEPT_DESCRIPTORS];
    struct call calls[CALLS_AT_ONCE + 1];
    const uint8_t *rest; /* of what is to be written */
    ssize_t rest_len;
    unsigned seed, done, kills;
    bool broken;
};

static uint8_t request_byte(const struct call *call, size_t i)
{
    return (uint8_t)((call->seed + i * 2654435761u) >> 11);
}

static ssize_t read_request(nghttp2_session *session, int32_t id, uint8_t *buf, size_t room,
                            uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct call *call = source->ptr;
    size_t n = call->len - call->sent < room ? call->len - call->sent : room;

    (void)session;
    (void)id;
    (void)user;
    for (size_t i = 0; i < n; i++)
        buf[i] = request_byte(call, call->sent + i);
    call->sent += n;
    if (call->sent == call->len)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0};
}

static void call_start(struct client *client, struct call *call, bool counts)
{
    nghttp2_nv fields[] = {field(":method", "POST"),
                           field(":scheme", "http"),
                           field(":path", PATHS[counts]),
                           field(":authority", "localhost"),
                           field("content-type", "application/grpc"),
                           field("te", "trailers")};
    nghttp2_data_provider body = {.source.ptr = call, .read_callback = read_request};

    *call = (struct call){.counts = counts, .number = 1, .seed = draw(&client->seed, 1 << 15)};
    call->len = draw(&client->seed, draw(&client->seed, 4) ? 300 : REQUEST_BYTES_MAX);
    call->id = nghttp2_submit_request(client->session, NULL, fields, 6, &body, call);
    assert_true(call->id > 0);
}

static void take_count(struct client *client, struct call *call, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t expected = call->got < 8 ? (uint8_t)(call->number >> 8 * call->got)
                                         : count_byte(call->number, call->got);

        client->broken |= data[i] != expected;
        if (++call->got == count_bytes(call->number)) {
            call->got = 0;
            call->number++;
        }
    }
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t len, void *user)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, id);
    struct client *client = user;

    (void)flags;
    if (call->counts) {
        take_count(client, call, data, len);
        return 0;
    }
    for (size_t i = 0; i < len; i++, call->got++)
        client->broken |= data[i] != (request_byte(call, call->got) ^ 0x55);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t len, uint8_t flags, void *user)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    (void)flags;
    (void)user;
    if (name_len == strlen("grpc-status") && memcmp(name, "grpc-status", name_len) == 0)
        call->ok = len == 1 && value[0] == '0';
    return 0;
}

static int on_closed(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, id);
    struct client *client = user;

    client->broken |= error != 0 || !call->ok || call->counts || call->got != call->len;
    client->done++;
    call->id = 0;
    return 0;
}

static void client_write(struct client *client)
{
    for (;;) {
        ssize_t n;

        if (client->rest_len == 0)
            client->rest_len = nghttp2_session_mem_send(client->session, &client->rest);
        assert_true(client->rest_len >= 0);
        if (client->rest_len == 0)
            return;
        n = send(client->fd, client->rest, (size_t)client->rest_len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0) {
            assert_int_equal(errno, EAGAIN);
            return;
        }
        client->rest += n;
        client->rest_len -= n;
    }
}

static void client_turn(struct client *client)
{
    uint8_t bytes[20000];
    ssize_t n;

    client_write(client);
    while ((n = recv(client->fd, bytes, 1 + draw(&client->seed, sizeof bytes), MSG_DONTWAIT)) > 0)
        assert_int_equal(nghttp2_session_mem_recv(client->session, bytes, (size_t)n), n);
    assert_true(n < 0 && errno == EAGAIN);
    assert_false(client->broken);
    client_write(client);
}

static void client_init(struct client *client, unsigned seed)
{
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                     seed % 3 ? 1000 + seed % 3 * 30000 : 1 << 20};
    struct h2_reader reader;
    nghttp2_session_callbacks *callbacks;
    int pair[2], small = 4096;

    memset(client, 0, sizeof *client);
    client->seed = seed;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    client->fd = pair[0];
    assert_int_equal(kept_socket_new(pair[1], &H2_KEPT, &client->kept), 0);
    for (int i = 0; i < KEPT_DESCRIPTORS; i++)
        client->fds[i] = kept_socket_fd(client->kept, (enum kept_descriptor)i);
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_closed);
    nghttp2_session_client_new(&client->session, callbacks, client);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(client->session, 0, &window, 1);
    assert_int_equal(h2_reader_init(&reader, PATHS, PATHS_LEN), 0);
    h2_begin(client->kept);
    assert_false(h2_can_go_on(client->kept, PATHS_LEN)); /* not acknowledged */
    while (!((const struct h2_state *)kept_socket_state(client->kept))->acked) {
        assert_true(serve(client->kept, &reader) <= 0);
        client_turn(client);
    }
    assert_null(reader.early);
    assert_true(h2_can_go_on(client->kept, PATHS_LEN));
    call_start(client, &client->calls[CALLS_AT_ONCE], true);
}

static void client_fini(struct client *client)
{
    nghttp2_session_del(client->session);
    kept_socket_free(client->kept);
    close(client->fd);
}

/* `steps_max`: each life ends by one of its first so many steps; 0: at any time. */
static void converse(struct client *client, unsigned steps_max, unsigned calls)
{
    while (client->done < calls) {
        unsigned steps = steps_max ? 1 + draw(&client->seed, steps_max) : 0;
        unsigned turns = draw(&client->seed, 20);
        pid_t life = begin_life(client->fds, steps);
        int status;

        for (unsigned i = 0; steps ? waitpid(life, &status, WNOHANG) == 0 : i < turns; i++) {
            struct pollfd fd = {.fd = client->fd, .events = POLLIN};

            for (size_t k = 0; k < CALLS_AT_ONCE; k++) {
                if (client->calls[k].id == 0)
                    call_start(client, &client->calls[k], false);
            }
            client_turn(client);
            poll(&fd, 1, 1);
        }
        if (!steps) {
            kill(life, SIGKILL);
            waitpid(life, &status, 0);
        }
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        client->kills++;
    }
}

/* H2_KILLS: more of them. */
static void all_is_answered_once(unsigned kills, unsigned steps_max)
{
    const char *text = getenv("H2_KILLS");
    unsigned sum = 0, calls = 0;

    if (text)
        kills = (unsigned)strtoul(text, NULL, 10);
    for (unsigned seed = 1; sum < kills; seed++) {
        static struct client client;

        client_init(&client, seed);
        converse(&client, steps_max, 60);
        assert_true(client.calls[CALLS_AT_ONCE].number > 1 || client.kills < 3);
        sum += client.kills;
        calls += client.done;
        client_fini(&client);
    }
    print_message("%u kills, %u calls\n", sum, calls);
}

static void killed_between_any_two_steps_each_call_is_answered_once(void **state)
{
    (void)state;
    all_is_answered_once(200, 60);
}

static void killed_at_any_time_each_call_is_answered_once(void **state)
{
    (void)state;
    all_is_answered_once(100, 0);
}

/* ---- frames by hand ---- */

struct talk {
    int fd; /* the client's */
    struct kept_socket *kept;
    struct h2_reader reader;
    uint8_t got[1 << 16];
    size_t len;
};

#define ACK "\0\0\0\4\1\0\0\0\0"
#define EMPTY_SETTINGS "\0\0\0\4\0\0\0\0\0"
/* POST of /s/Turn, application/grpc, as literals that no table keeps. */
#define BLOCK                                                                                      \
    "\x83\x04\x07/s/Turn\x0f\x10\x10"                                                              \
    "application/grpc"
#define BLOCK_BYTES 29
#define HEADERS(flags, id) "\0\0\x1d\1" flags "\0\0\0" id BLOCK

static void talk_turn(struct talk *talk)
{
    ssize_t n;

    while (!((const struct h2_state *)kept_socket_state(talk->kept))->over &&
           serve(talk->kept, &talk->reader) == 0)
        ;
    assert_true(kept_socket_write(talk->kept) == 0);
    while ((n = recv(talk->fd, talk->got + talk->len, sizeof talk->got - talk->len, MSG_DONTWAIT)) >
           0)
        talk->len += (size_t)n;
}

static void say(struct talk *talk, const void *bytes, size_t len)
{
    assert_int_equal(send(talk->fd, bytes, len, MSG_NOSIGNAL), len);
    talk_turn(talk);
}
#define SAY(talk, text) say(talk, text, sizeof(text) - 1)

static void talk_init(struct talk *talk)
{
    int pair[2];

    memset(talk, 0, sizeof *talk);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    talk->fd = pair[0];
    assert_int_equal(kept_socket_new(pair[1], &H2_KEPT, &talk->kept), 0);
    assert_int_equal(h2_reader_init(&talk->reader, PATHS, PATHS_LEN), 0);
    h2_begin(talk->kept);
    SAY(talk, NGHTTP2_CLIENT_MAGIC EMPTY_SETTINGS ACK);
    talk->len = 0;
}

static void talk_fini(struct talk *talk)
{
    h2_reader_fini(&talk->reader);
    kept_socket_free(talk->kept);
    close(talk->fd);
}

/* The first frame of that type that came: its payload's place; 0: none. `len` of it. */
static size_t frame_at(const struct talk *talk, uint8_t type, size_t *len)
{
    for (size_t at = 0; at + 9 <= talk->len; at += 9 + *len) {
        *len = (size_t)talk->got[at] << 16 | (size_t)talk->got[at + 1] << 8 | talk->got[at + 2];
        if (talk->got[at + 3] == type)
            return at + 9;
    }
    return 0;
}

static void frames_that_are_wrong_end_the_connection(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        uint8_t error;
    } WRONG[] = {
#define ONE(text, error) {text, sizeof(text) - 1, error}
        ONE("\0\x40\1\0\0\0\0\0\1", NGHTTP2_FRAME_SIZE_ERROR),
        ONE("\0\0\1\0\0\0\0\0\1x", NGHTTP2_PROTOCOL_ERROR), /* DATA of no stream */
        ONE("\0\0\1\0\0\0\0\0\0x", NGHTTP2_PROTOCOL_ERROR),
        ONE(HEADERS("\5", "\2"), NGHTTP2_PROTOCOL_ERROR),        /* not the client's */
        ONE("\0\0\1\1\x0c\0\0\0\1\xff", NGHTTP2_PROTOCOL_ERROR), /* all padding */
        ONE("\0\0\1\1\4\0\0\0\1\xff", NGHTTP2_COMPRESSION_ERROR),
        ONE("\0\0\1\1\4\0\0\0\1\xbe", NGHTTP2_COMPRESSION_ERROR), /* of the dynamic table */
        ONE("\0\0\4\3\0\0\0\0\1\0\0\0\0", NGHTTP2_PROTOCOL_ERROR),
        ONE("\0\0\3\3\0\0\0\0\1\0\0\0", NGHTTP2_FRAME_SIZE_ERROR),
        ONE("\0\0\1\4\0\0\0\0\0x", NGHTTP2_FRAME_SIZE_ERROR),
        ONE("\0\0\0\4\0\0\0\0\1", NGHTTP2_PROTOCOL_ERROR),
        ONE("\0\0\6\4\0\0\0\0\0\0\4\x80\0\0\0", NGHTTP2_FLOW_CONTROL_ERROR),
        ONE("\0\0\0\5\4\0\0\0\1", NGHTTP2_PROTOCOL_ERROR),
        ONE("\0\0\7\6\0\0\0\0\0pingpin", NGHTTP2_FRAME_SIZE_ERROR),
        ONE("\0\0\x8\6\0\0\0\0\1pingping", NGHTTP2_PROTOCOL_ERROR),
        ONE("\0\0\4\x8\0\0\0\0\0\0\0\0\0", NGHTTP2_PROTOCOL_ERROR),
        ONE("\0\0\4\x8\0\0\0\0\0\x7f\xff\xff\xff", NGHTTP2_FLOW_CONTROL_ERROR),
        ONE("\0\0\0\x9\4\0\0\0\1", NGHTTP2_PROTOCOL_ERROR),
        ONE("\0\0\0\1\0\0\0\0\1" EMPTY_SETTINGS, NGHTTP2_PROTOCOL_ERROR), /* within a block */
#undef ONE
    };

    (void)state;
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        struct talk talk;
        size_t at, len;

        talk_init(&talk);
        say(&talk, WRONG[i].bytes, WRONG[i].len);
        at = frame_at(&talk, NGHTTP2_GOAWAY, &len);
        assert_true(at > 0);
        assert_int_equal(talk.got[at + 7], WRONG[i].error);
        assert_false(h2_can_go_on(talk.kept, PATHS_LEN));
        talk_fini(&talk);
    }
}

static void what_comes_in_pieces_is_what_comes_at_once(void **state)
{
    /* A block in two pieces with padding and priority, a body in two, trailers, a PING, and frames
     * that do not matter. */
    static const char BYTES[] = "\0\0\x0a\1\x28\0\0\0\1\2\0\0\0\0\x0f\x83\x04\0\0"
                                "\0\0\x1b\x9\4\0\0\0\1\x07/s/Turn\x0f\x10\x10"
                                "application/grpc"
                                "\0\0\5\2\0\0\0\0\1\0\0\0\0\x0f"
                                "\0\0\2\xfa\0\0\0\0\1??"
                                "\0\0\6\0\x08\0\0\0\1\2abc\0\0"
                                "\0\0\3\0\0\0\0\0\1def"
                                "\0\0\x8\6\0\0\0\0\0pingping"
                                "\0\0\5\1\5\0\0\0\1\0\1a\1b";
    static struct talk whole;
    size_t at, len;

    (void)state;
    talk_init(&whole);
    say(&whole, BYTES, sizeof BYTES - 1);
    at = frame_at(&whole, NGHTTP2_DATA, &len);
    assert_int_equal(len, 6);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(whole.got[at + i], "abcdef"[i] ^ 0x55);
    at = frame_at(&whole, NGHTTP2_PING, &len);
    assert_memory_equal(whole.got + at, "pingping", 8);
    for (size_t cut = 1; cut < sizeof BYTES - 1; cut++) {
        static struct talk talk;

        talk_init(&talk);
        say(&talk, BYTES, cut);
        say(&talk, BYTES + cut, sizeof BYTES - 1 - cut);
        assert_int_equal(talk.len, whole.len);
        assert_memory_equal(talk.got, whole.got, talk.len);
        talk_fini(&talk);
    }
    talk_fini(&whole);
}

static bool block_is_read(nghttp2_hd_inflater *inflater, const uint8_t *bytes, size_t len)
{
    int flags = 0;

    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv nv;
        ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, bytes, len, 1);

        if (n < 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return nghttp2_hd_inflate_end_headers(inflater) == 0;
}

/* RFC 7541 §4.2: as nghttp2 reads them, which takes no block that does not begin so. */
static void a_client_that_lowers_its_header_table_is_told_so(void **state)
{
    nghttp2_hd_inflater *inflater;
    static struct talk talk;
    size_t len, blocks = 0;

    (void)state;
    talk_init(&talk);
    assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
    SAY(&talk, "\0\0\6\4\0\0\0\0\0\0\1\0\0\0\0" HEADERS("\4", "\1") "\0\0\3\0\1\0\0\0\1abc");
    assert_int_equal(nghttp2_hd_inflate_change_table_size(inflater, 0), 0); /* acknowledged */
    for (size_t at = 0; at + 9 <= talk.len; at += 9 + len) {
        len = (size_t)talk.got[at] << 16 | (size_t)talk.got[at + 1] << 8 | talk.got[at + 2];
        if (talk.got[at + 3] != NGHTTP2_HEADERS)
            continue;
        assert_true(block_is_read(inflater, talk.got + at + 9, len));
        blocks++;
    }
    assert_int_equal(blocks, 2); /* the head, and the status */
    nghttp2_hd_inflate_del(inflater);
    talk_fini(&talk);
}

static void calls_that_are_none_of_ours_are_refused(void **state)
{
    static struct talk talk;
    size_t at, len;

    (void)state;
    talk_init(&talk);
    SAY(&talk, "\0\0\x1d\1\5\0\0\0\1\x83\x04\x07/s/None\x0f\x10\x10"
               "application/grpc");
    at = frame_at(&talk, NGHTTP2_HEADERS, &len);
    assert_true(at > 0 && memmem(talk.got + at, len, "unknown method", 14));
    talk.len = 0;
    SAY(&talk, "\0\0\x1d\1\4\0\0\0\3\x82\x04\x07/s/Turn\x0f\x10\x10"
               "application/grpc");
    at = frame_at(&talk, NGHTTP2_HEADERS, &len);
    assert_true(at > 0 && memmem(talk.got + at, len, "no request of gRPC's", 20));
    assert_true(frame_at(&talk, NGHTTP2_RST_STREAM, &len) > 0); /* its body need not come */
    talk.len = 0;
    SAY(&talk, "\0\0\1\1\5\0\0\0\5\x83"); /* no path */
    at = frame_at(&talk, NGHTTP2_RST_STREAM, &len);
    assert_int_equal(talk.got[at + 3], NGHTTP2_PROTOCOL_ERROR);
    talk_fini(&talk);
}

/* Of so many calls from the so-many-th on, without their ends. */
static void say_requests(struct talk *talk, unsigned from, unsigned len)
{
    char request[] = HEADERS("\4", "\1");

    for (unsigned i = from; i < from + len; i++) {
        request[7] = (char)((2 * i + 1) >> 8);
        request[8] = (char)(2 * i + 1);
        say(talk, request, sizeof request - 1);
    }
}

static void more_calls_than_there_is_room_for_are_refused(void **state)
{
    static struct talk talk;
    size_t at, len;

    (void)state;
    talk_init(&talk);
    say_requests(&talk, 0, H2_STREAMS_MAX);
    assert_int_equal(talk.len, 0);
    say_requests(&talk, H2_STREAMS_MAX, 1);
    at = frame_at(&talk, NGHTTP2_RST_STREAM, &len);
    assert_int_equal(talk.got[at + 3], NGHTTP2_REFUSED_STREAM);
    talk.len = 0;
    SAY(&talk, "\0\0\4\3\0\0\0\0\1\0\0\0\x8"); /* the client ends the first */
    say_requests(&talk, H2_STREAMS_MAX + 1, 1);
    assert_int_equal(talk.len, 0);
    talk_fini(&talk);
}

/* 0, and the talk goes on there; or a negative errno. */
static int go_on_as(struct talk *talk, const struct kept_state *release)
{
    struct kept_socket *next;
    int fds[KEPT_DESCRIPTORS], err;

    for (int i = 0; i < KEPT_DESCRIPTORS; i++)
        fds[i] = dup(kept_socket_fd(talk->kept, (enum kept_descriptor)i));
    err = kept_socket_resume(fds, release, &next);
    for (int i = 0; err && i < KEPT_DESCRIPTORS; i++)
        close(fds[i]);
    if (err)
        return err;
    kept_socket_settled(next);
    kept_socket_free(talk->kept);
    talk->kept = next;
    return 0;
}

/* A release that has room for fewer takes what it has room for. */
static void a_release_with_fewer_goes_on_with_as_many(void **state)
{
    enum { FEWER = 32 };
    static const uint8_t note[H2_NOTE_BYTES_MAX] = "noted";
    struct kept_state fewer = H2_KEPT;
    struct kept_field *fields = calloc(fewer.fields_len, sizeof *fields);
    static struct talk talk;
    const struct h2_state *is;

    (void)state;
    memcpy(fields, fewer.fields, fewer.fields_len * sizeof *fields);
    for (size_t i = 0; i < fewer.fields_len; i++) {
        if (fields[i].count == H2_STREAMS_MAX)
            fields[i].count = FEWER;
    }
    fewer.fields = fields;
    fewer.areas = 2 * FEWER;
    talk_init(&talk);
    say_requests(&talk, 0, FEWER);
    h2_note(talk.kept, FEWER - 1, note);
    assert_int_equal(go_on_as(&talk, &fewer), 0);
    assert_int_equal(go_on_as(&talk, &H2_KEPT), 0);
    assert_true(h2_can_go_on(talk.kept, PATHS_LEN));
    is = kept_socket_state(talk.kept);
    assert_int_equal(is->streams[FEWER - 1].id, 2 * FEWER - 1);
    assert_memory_equal(is->words[FEWER - 1].note, note, sizeof note);
    say_requests(&talk, FEWER, 1);
    assert_int_equal(go_on_as(&talk, &fewer), -ESTALE);
    talk_fini(&talk);
    free(fields);
}

static long memory_of(const struct talk *talk)
{
    struct stat st;

    assert_int_equal(fstat(kept_socket_fd(talk->kept, KEPT_MEMORY), &st), 0);
    return (long)st.st_blocks * 512;
}

/* A client may stay connected for months. */
static void what_lies_otherwise_in_another_release_takes_no_more_memory(void **state)
{
    struct kept_state fewer = H2_KEPT;
    static struct talk talk;
    long before;

    (void)state;
    fewer.fields_len--;
    talk_init(&talk);
    say_requests(&talk, 0, 1);
    before = memory_of(&talk);
    assert_int_equal(go_on_as(&talk, &fewer), 0);
    assert_int_equal(go_on_as(&talk, &H2_KEPT), 0);
    assert_in_range(memory_of(&talk), 1, before + 65536);
    talk_fini(&talk);
}

static void answers_keep_to_the_client_s_windows(void **state)
{
    static struct talk talk;
    size_t at, len;

    (void)state;
    talk_init(&talk);
    SAY(&talk, "\0\0\6\4\0\0\0\0\0\0\4\0\0\0\2"); /* two bytes for each stream */
    SAY(&talk, HEADERS("\4", "\1") "\0\0\5\0\1\0\0\0\1"
                                   "abcde");
    at = frame_at(&talk, NGHTTP2_DATA, &len);
    assert_true(at > 0 && len == 2);
    talk.len = 0;
    SAY(&talk, "\0\0\6\4\0\0\0\0\0\0\4\0\0\0\1"); /* one less, also for it */
    SAY(&talk, "\0\0\4\x8\0\0\0\0\1\0\0\0\1");
    assert_int_equal(frame_at(&talk, NGHTTP2_DATA, &len), 0);
    SAY(&talk, "\0\0\6\4\0\0\0\0\0\0\4\0\0\0\3");
    at = frame_at(&talk, NGHTTP2_DATA, &len);
    assert_true(at > 0 && len == 2);
    SAY(&talk, "\0\0\4\x8\0\0\0\0\1\0\0\0\1");
    assert_true(frame_at(&talk, NGHTTP2_HEADERS, &len) > 0); /* its end */
    talk_fini(&talk);
}

static void what_has_come_is_credited(void **state)
{
    static struct talk talk;
    static uint8_t data[9 + H2_FRAME_BYTES_MAX] = "\0\x40\0\0\0\0\0\0\1";
    uint32_t connection = 0, stream = 0;

    (void)state;
    talk_init(&talk);
    SAY(&talk, HEADERS("\4", "\1"));
    for (int i = 0; i < 200; i++)
        say(&talk, data, sizeof data);
    for (size_t at = 0, len; at + 9 <= talk.len; at += 9 + len) {
        len = talk.got[at + 2];
        assert_int_equal(talk.got[at + 3], NGHTTP2_WINDOW_UPDATE);
        *(talk.got[at + 8] ? &stream : &connection) += (uint32_t)talk.got[at + 10] << 16 |
                                                       (uint32_t)talk.got[at + 11] << 8 |
                                                       talk.got[at + 12];
    }
    assert_true(connection > 200 * H2_FRAME_BYTES_MAX - 1024 * 1024 && connection == stream);
    for (int i = 200; i < 1100; i++) {
        talk.len = 0;
        say(&talk, data, sizeof data);
        if (talk.len > 0 && talk.got[3] == NGHTTP2_HEADERS)
            break;
    }
    assert_true(memmem(talk.got, talk.len, "the request is too large", 24));
    talk_fini(&talk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_that_are_wrong_end_the_connection),
        cmocka_unit_test(what_comes_in_pieces_is_what_comes_at_once),
        cmocka_unit_test(a_client_that_lowers_its_header_table_is_told_so),
        cmocka_unit_test(calls_that_are_none_of_ours_are_refused),
        cmocka_unit_test(more_calls_than_there_is_room_for_are_refused),
        cmocka_unit_test(a_release_with_fewer_goes_on_with_as_many),
        cmocka_unit_test(what_lies_otherwise_in_another_release_takes_no_more_memory),
        cmocka_unit_test(answers_keep_to_the_client_s_windows),
        cmocka_unit_test(what_has_come_is_credited),
        cmocka_unit_test(killed_between_any_two_steps_each_call_is_answered_once),
        cmocka_unit_test(killed_at_any_time_each_call_is_answered_once),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
