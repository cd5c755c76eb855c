/*
 * shim/relay/connection.c on real unix sockets: the connection runs on a libuv loop, the client and
 * the runtime are plain descriptors that the test reads and writes in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "h2_script.h"
#include "notify_socket.h"
#include "shim/log.h"
#include "shim/relay/connection.h"
#include "shim/relay/limits.h"
#include "shim/service_manager.h"

#define GUARD_MS 20000
#define CALLS_MAX 8
/* What two sockets of the kernel's default size and the relay's own queues may hold. */
#define IN_FLIGHT_BYTES_MAX (4u << 20)

struct peer {
    int fd; /* -1: none */
    struct buffer got;
    bool ended;
    bool deaf; /* does not read */
};

struct world {
    uv_loop_t loop;
    uv_poll_t listener;
    int front_fd;
    char dir[40];
    char front[64];
    char back[64];
    int back_fd; /* the runtime's listening socket */
    struct peer client;
    struct peer runtime;
    struct connection *connections;
    struct session *session;
    struct session_call *calls[CALLS_MAX];
    size_t calls_len;
    unsigned begun, gone, ended, answered, closed, accepted;
    unsigned ended_before_gone;
    pid_t pid;
    int runtime_error; /* 1: not told yet */
    struct h2_writer writers[2];
    int fds;
    char read_buffer[RELAY_READ_BYTES];
    struct connection_world world;
    struct connection_counts counts;
    int manager; /* a service manager that has what it is sent, and reads nothing; -1: none */
};

/* ---- the owner ---- */

static void on_begun(void *user, struct session *session, pid_t pid)
{
    struct world *w = user;

    assert_int_equal(w->calls_len, 0);
    w->session = session;
    w->pid = pid;
    w->begun++;
}

static void on_gone(void *user, struct session *session)
{
    struct world *w = user;

    assert_ptr_equal(session, w->session);
    w->ended_before_gone = w->ended;
    w->gone++;
}

static void on_request(void *user, struct session *session, struct session_call *call)
{
    struct world *w = user;

    assert_ptr_equal(session, w->session);
    w->calls[w->calls_len++] = call;
}

static void on_answered(void *user, struct session_call *call, int status, const uint8_t *message,
                        size_t bytes)
{
    (void)call, (void)status, (void)message, (void)bytes;
    ((struct world *)user)->answered++;
}

static void on_ended(void *user, struct session_call *call)
{
    (void)call;
    ((struct world *)user)->ended++;
}

static void on_runtime(void *user, int error)
{
    ((struct world *)user)->runtime_error = error;
}

static void on_closed(void *user, struct connection *c)
{
    struct world *w = user;

    w->closed++;
    connection_unlink(c, &w->connections);
}

static const struct connection_ops OPS = {on_runtime, on_closed};
static const struct session_owner_ops OWNER_OPS = {on_begun,    on_gone,  on_request,
                                                   on_answered, on_ended, NULL};

static void on_connection(uv_poll_t *listener, int status, int events)
{
    struct world *w = listener->data;
    int fd = accept4(w->front_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct connection *c;

    (void)events;
    assert_int_equal(status, 0);
    assert_true(fd >= 0);
    assert_int_equal(connection_accept(&w->world, fd, w->back, &c), 0);
    connection_link(c, &w->connections);
    w->accepted++;
}

/* ---- a socket that is nearly full ---- */

static size_t taken_at_once; /* by a socket, of one write; 0: what the kernel takes */

/* So much of a message. */
static void cut(struct msghdr *message, struct iovec *first)
{
    *first = message->msg_iov[0];
    first->iov_len = first->iov_len < taken_at_once ? first->iov_len : taken_at_once;
    message->msg_iov = first;
    message->msg_iovlen = 1;
}

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct msghdr part = *message;
    struct iovec first;

    if (taken_at_once > 0 && !message->msg_control)
        cut(&part, &first);
    return __real_sendmsg(fd, &part, flags);
}

/* exact_io.c's. */
long __real_syscall(long number, long a, long b, long c, long d, long e);
long __wrap_syscall(long number, long a, long b, long c, long d, long e);
long __wrap_syscall(long number, long a, long b, long c, long d, long e)
{
    struct mmsghdr *call = (struct mmsghdr *)b;
    struct iovec first;

    if (taken_at_once > 0 && number == SYS_sendmmsg)
        cut(&call->msg_hdr, &first);
    return __real_syscall(number, a, b, c, d, e);
}

/* ---- the world ---- */

static int open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static int unix_socket(const char *path, bool listens)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r;

    assert_true(fd >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (listens) {
        r = bind(fd, (struct sockaddr *)&address, sizeof address);
        assert_int_equal(r, 0);
        r = listen(fd, 16);
    } else {
        r = connect(fd, (struct sockaddr *)&address, sizeof address);
    }
    assert_int_equal(r, 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static int set_up_with(void **state, struct fd_store *store)
{
    struct world *w = calloc(1, sizeof *w);

    *state = w;
    w->fds = open_fds();
    w->manager = store ? manager_start() : -1;
    w->back_fd = w->client.fd = w->runtime.fd = -1;
    w->runtime_error = 1;
    taken_at_once = 0;
    snprintf(w->dir, sizeof w->dir, "/tmp/test-connection-XXXXXX");
    if (!mkdtemp(w->dir))
        return -1;
    snprintf(w->front, sizeof w->front, "%s/front", w->dir);
    snprintf(w->back, sizeof w->back, "%s/back", w->dir);
    uv_loop_init(&w->loop);
    w->world = (struct connection_world){.loop = &w->loop,
                                         .counts = &w->counts,
                                         .read_buffer = w->read_buffer,
                                         .store = store,
                                         .ops = &OPS,
                                         .user = w,
                                         .owner = {&OWNER_OPS, w}};
    w->front_fd = unix_socket(w->front, true);
    uv_poll_init(&w->loop, &w->listener, w->front_fd);
    w->listener.data = w;
    uv_poll_start(&w->listener, UV_READABLE, on_connection);
    for (int i = 0; i < 2; i++)
        h2_writer_init(&w->writers[i]);
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, NULL);
}

/* Everything is to be as without. */
static int set_up_kept(void **state)
{
    return set_up_with(state, fd_store_new());
}

static void peer_close(struct peer *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    peer_close(&w->client);
    peer_close(&w->runtime);
    if (w->back_fd >= 0)
        close(w->back_fd);
    for (struct connection *c = w->connections; c; c = connection_next(c))
        connection_close(c);
    uv_close((uv_handle_t *)&w->listener, NULL);
    close(w->front_fd);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    assert_null(w->connections);
    assert_int_equal(w->closed, w->accepted);
    unlink(w->front);
    unlink(w->back);
    assert_int_equal(rmdir(w->dir), 0);
    for (int i = 0; i < 2; i++)
        h2_writer_fini(&w->writers[i]);
    buffer_fini(&w->client.got);
    buffer_fini(&w->runtime.got);
    if (w->manager >= 0)
        manager_stop(w->manager);
    fd_store_free(w->world.store);
    assert_int_equal(open_fds(), w->fds);
    free(w);
    return 0;
}

/* Takes what is there; whether there was any. */
static bool peer_read(struct peer *p)
{
    static char bytes[65536];
    bool any = false;

    while (p->fd >= 0 && !p->deaf && !p->ended) {
        ssize_t n = read(p->fd, bytes, sizeof bytes);

        if (n < 0 && errno == EAGAIN)
            break;
        any = true;
        p->ended = n <= 0;
        if (n > 0)
            h2_put(&p->got, bytes, (size_t)n);
    }
    return any;
}

/* One turn of everybody; whether anything moved. */
static bool turn(struct world *w)
{
    bool any = false;

    uv_run(&w->loop, UV_RUN_NOWAIT);
    if (w->runtime.fd < 0 && w->back_fd >= 0 && !w->runtime.ended) {
        w->runtime.fd = accept4(w->back_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        any = w->runtime.fd >= 0;
    }
    any = peer_read(&w->client) || any;
    any = peer_read(&w->runtime) || any;
    return any;
}

/* Waits until somebody may move, for `ms` at most; false: nobody may. */
static bool wait_for_move(struct world *w, int ms)
{
    struct pollfd fds[] = {
        {.fd = uv_backend_fd(&w->loop), .events = POLLIN},
        {.fd = w->client.deaf || w->client.ended ? -1 : w->client.fd, .events = POLLIN},
        {.fd = w->runtime.deaf || w->runtime.ended ? -1 : w->runtime.fd, .events = POLLIN},
        {.fd = w->runtime.fd < 0 ? w->back_fd : -1, .events = POLLIN},
    };
    int timeout = uv_backend_timeout(&w->loop);

    timeout = timeout >= 0 && timeout < ms ? timeout : ms;
    return poll(fds, 4, timeout) > 0 || timeout < ms;
}

#define UNTIL(w, condition)                                                                        \
    do {                                                                                           \
        while (turn(w), !(condition))                                                              \
            assert_true(wait_for_move(w, GUARD_MS));                                               \
    } while (0)

/* Until nothing moves any more. */
static void settle(struct world *w)
{
    do {
        while (turn(w))
            continue;
    } while (wait_for_move(w, 20));
}

/* Writes all of `b`, turning everybody while the socket is full. */
static void peer_write(struct world *w, struct peer *p, struct buffer *b)
{
    while (buffer_len(b) > 0) {
        ssize_t n = send(p->fd, buffer_data(b), buffer_len(b), MSG_NOSIGNAL);

        if (n > 0)
            buffer_consume(b, (size_t)n);
        else
            assert_int_equal(errno, EAGAIN);
        turn(w);
    }
    buffer_fini(b);
}

/* Writes copies of what is in `frame` until nobody takes more; how many bytes went. */
static size_t peer_flood(struct world *w, struct peer *p, const struct buffer *frame, size_t max)
{
    size_t sent = 0;

    while (sent < max) {
        size_t at = sent % buffer_len(frame);
        ssize_t n = send(p->fd, buffer_data(frame) + at, buffer_len(frame) - at, MSG_NOSIGNAL);

        if (n > 0) {
            sent += (size_t)n;
            continue;
        }
        assert_int_equal(errno, EAGAIN);
        settle(w);
        n = send(p->fd, buffer_data(frame) + at, 1, MSG_NOSIGNAL);
        if (n < 0)
            return sent;
        sent++;
    }
    return sent;
}

static void runtime_listens(struct world *w)
{
    w->back_fd = unix_socket(w->back, true);
}

static void client_connects(struct world *w)
{
    struct buffer b = {0};

    w->client.fd = unix_socket(w->front, false);
    h2_put(&b, H2_PREFACE, strlen(H2_PREFACE));
    h2_settings(&b, -1, 0);
    peer_write(w, &w->client, &b);
}

/* Client and runtime are connected and have exchanged their SETTINGS. */
static void connect_both(struct world *w)
{
    struct buffer b = {0};

    runtime_listens(w);
    client_connects(w);
    UNTIL(w, buffer_len(&w->runtime.got) == 33);
    assert_int_equal(w->runtime_error, 0);
    h2_settings(&b, -1, 0);
    h2_settings_ack(&b);
    peer_write(w, &w->runtime, &b);
    UNTIL(w, buffer_len(&w->client.got) == 18);
    buffer_fini(&w->client.got);
    buffer_fini(&w->runtime.got);
}

static void client_calls(struct world *w, uint32_t stream, const char *method, const char *text)
{
    struct buffer b = {0}, framed = {0};

    h2_request(&w->writers[SESSION_CLIENT], &b, stream, method);
    h2_message(&framed, 0, text, strlen(text));
    h2_data(&b, stream, buffer_data(&framed), buffer_len(&framed), H2_END_STREAM, -1);
    buffer_fini(&framed);
    peer_write(w, &w->client, &b);
}

static void runtime_answers(struct world *w, uint32_t stream, const char *text)
{
    struct buffer b = {0};

    h2_answer(&w->writers[SESSION_RUNTIME], &b, stream, text);
    peer_write(w, &w->runtime, &b);
}

static bool has(const struct peer *p, const char *text)
{
    return buffer_len(&p->got) > 0 &&
           memmem(buffer_data(&p->got), buffer_len(&p->got), text, strlen(text));
}

/* ---- tests ---- */

static void bytes_pass_both_ways(void **state)
{
    struct world *w = *state;

    connect_both(w);
    client_calls(w, 1, "Version", "question");
    UNTIL(w, has(&w->runtime, "question"));
    runtime_answers(w, 1, "reply");
    UNTIL(w, has(&w->client, "reply"));
    peer_close(&w->client);
    UNTIL(w, w->closed == 1 && w->runtime.ended);
}

static void a_runtime_that_is_not_there(void **state)
{
    struct world *w = *state;

    w->client.fd = unix_socket(w->front, false);
    UNTIL(w, w->client.ended && w->closed == 1);
    assert_int_equal(w->runtime_error, UV_ENOENT);
    assert_int_equal(w->begun + w->gone, 0);
}

static void a_runtime_that_says_goodbye(void **state)
{
    struct world *w = *state;
    struct buffer b = {0};

    connect_both(w);
    h2_goaway(&b, 1, 0);
    h2_frame(&b, NGHTTP2_PING, 0, 0, "goodbye!", 8);
    assert_int_equal(send(w->runtime.fd, buffer_data(&b), buffer_len(&b), 0), buffer_len(&b));
    buffer_fini(&b);
    peer_close(&w->runtime);
    w->runtime.ended = true;
    /* it is gone, which the client's next words find out before its last ones are read */
    h2_frame(&b, NGHTTP2_PING, 0, 0, "anybody?", 8);
    assert_int_equal(send(w->client.fd, buffer_data(&b), buffer_len(&b), 0), buffer_len(&b));
    buffer_fini(&b);
    UNTIL(w, w->client.ended && w->closed == 1);
    assert_true(has(&w->client, "goodbye!"));
}

static void a_client_that_is_gone_ends_its_held_call(void **state)
{
    struct world *w = *state;

    connect_both(w);
    client_calls(w, 1, "CreateContainer", "held");
    UNTIL(w, w->calls_len == 1);
    assert_int_equal(w->begun, 1);
    assert_int_equal(w->pid, getpid());
    assert_int_equal(w->gone, 0);
    peer_close(&w->client);
    UNTIL(w, w->closed == 1 && w->ended == 1 && w->runtime.ended);
    assert_int_equal(w->gone, 1);
    assert_int_equal(w->ended_before_gone, 0);
}

/* Nor is one overlooked of which nothing may be read, as the runtime takes no more. */
static void a_client_that_is_gone_while_the_runtime_reads_nothing(void **state)
{
    struct world *w = *state;
    struct buffer frame = {0};
    static const uint8_t bytes[16384];

    connect_both(w);
    client_calls(w, 1, "CreateContainer", "held");
    UNTIL(w, w->calls_len == 1);
    h2_data(&frame, 3, bytes, sizeof bytes, 0, -1);
    w->runtime.deaf = true;
    assert_in_range(peer_flood(w, &w->client, &frame, 64u << 20), RELAY_READ_BYTES,
                    IN_FLIGHT_BYTES_MAX);
    assert_int_equal(w->ended, 0);
    peer_close(&w->client);
    UNTIL(w, w->closed == 1 && w->ended == 1);
    buffer_fini(&frame);
}

static void a_half_closed_client_gets_its_answer(void **state)
{
    struct world *w = *state;

    connect_both(w);
    client_calls(w, 1, "Version", "question");
    shutdown(w->client.fd, SHUT_WR);
    UNTIL(w, w->runtime.ended && has(&w->runtime, "question"));
    w->runtime.ended = false; /* its sending side is open yet */
    runtime_answers(w, 1, "reply");
    w->runtime.ended = true;
    UNTIL(w, has(&w->client, "reply"));
    assert_int_equal(w->closed, 0);
    peer_close(&w->runtime);
    UNTIL(w, w->closed == 1 && w->client.ended);
}

static void the_events_of_a_half_closed_client_end(void **state)
{
    struct world *w = *state;

    connect_both(w);
    client_calls(w, 1, "GetContainerEvents", "question");
    UNTIL(w, has(&w->runtime, "question"));
    shutdown(w->client.fd, SHUT_WR);
    settle(w); /* not UNTIL: looks at the client would go on for ever */
    assert_true(w->runtime.ended);
    peer_close(&w->runtime);
    UNTIL(w, w->closed == 1 && w->client.ended);
}

static void a_held_call_of_a_half_closed_client_goes_on(void **state)
{
    struct world *w = *state;

    connect_both(w);
    client_calls(w, 1, "CreateContainer", "held");
    UNTIL(w, w->calls_len == 1);
    shutdown(w->client.fd, SHUT_WR);
    settle(w);
    assert_false(w->runtime.ended);
    assert_int_equal(session_forward(w->session, w->calls[0], "options", 7), 0);
    UNTIL(w, has(&w->runtime, "optionsheld"));
    runtime_answers(w, 1, "reply");
    UNTIL(w, has(&w->client, "reply") && w->runtime.ended);
    peer_close(&w->runtime);
    UNTIL(w, w->closed == 1 && w->client.ended);
}

static void a_half_closed_client_that_goes_ends_its_held_call(void **state)
{
    struct world *w = *state;

    connect_both(w);
    client_calls(w, 1, "CreateContainer", "held");
    UNTIL(w, w->calls_len == 1);
    shutdown(w->client.fd, SHUT_WR);
    settle(w);
    assert_int_equal(w->ended, 0);
    peer_close(&w->client);
    UNTIL(w, w->closed == 1 && w->ended == 1 && w->runtime.ended);
}

/* Half a request will never be whole. */
static void a_half_closed_client_with_half_a_request(void **state)
{
    struct world *w = *state;
    struct buffer b = {0};

    connect_both(w);
    h2_request(&w->writers[SESSION_CLIENT], &b, 1, "CreateContainer");
    h2_data(&b, 1, "\0\0", 2, 0, -1);
    peer_write(w, &w->client, &b);
    shutdown(w->client.fd, SHUT_WR);
    UNTIL(w, w->runtime.ended);
}

static void without_memory_for_a_refusal_both_are_closed(void **state)
{
    struct world *w = *state;

    connect_both(w);
    client_calls(w, 1, "CreateContainer", "held");
    UNTIL(w, w->calls_len == 1);
    alloc_fail_at(2); /* the first is for its text */
    alloc_fail_enable(true);
    session_refuse(w->session, w->calls[0], 14, "no");
    alloc_fail_enable(false);
    assert_true(alloc_failed());
    UNTIL(w, w->closed == 1 && w->client.ended && w->runtime.ended);
}

static void what_breaks_the_protocol_is_told_and_closed(void **state)
{
    struct world *w = *state;
    struct buffer b = {0};

    connect_both(w);
    h2_frame(&b, NGHTTP2_CONTINUATION, 4, 1, "\x82", 1);
    peer_write(w, &w->client, &b);
    UNTIL(w, w->client.ended && w->runtime.ended && w->closed == 1);
    assert_int_equal(buffer_len(&w->client.got), 17);
    assert_int_equal(buffer_data(&w->client.got)[3], NGHTTP2_GOAWAY);
}

static void what_is_not_http2_is_closed(void **state)
{
    struct world *w = *state;
    struct buffer b = {0};

    runtime_listens(w);
    w->client.fd = unix_socket(w->front, false);
    h2_put(&b, "GET / HTTP/1.1\r\n\r\n", 18);
    peer_write(w, &w->client, &b);
    UNTIL(w, w->client.ended && w->closed == 1);
    assert_int_equal(buffer_len(&w->client.got), 0);
    assert_int_equal(buffer_len(&w->runtime.got), 0);
}

static void one_that_does_not_read_holds_the_other_back(void **state)
{
    struct world *w = *state;
    struct buffer frame = {0};
    uint8_t bytes[16384];
    size_t sent;

    connect_both(w);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7);
    h2_data(&frame, 1, bytes, sizeof bytes, 0, -1);
    for (int i = 0; i < 2; i++) {
        struct peer *from = i ? &w->runtime : &w->client;
        struct peer *to = i ? &w->client : &w->runtime;

        to->deaf = true;
        sent = peer_flood(w, from, &frame, 64u << 20);
        assert_in_range(sent, RELAY_READ_BYTES, IN_FLIGHT_BYTES_MAX);
        to->deaf = false;
        UNTIL(w, buffer_len(&to->got) == sent);
        for (size_t at = 0; at < sent; at++) {
            if (buffer_data(&to->got)[at] != buffer_data(&frame)[at % buffer_len(&frame)])
                fail_msg("byte %zu of %zu differs", at, sent);
        }
    }
    buffer_fini(&frame);
}

/*
 * A socket takes a part of the preface and, once the runtime has read that, the rest at once: then
 * libuv's queue is empty, but the write is its own until it has said so, a turn later. In the same
 * turn comes the client's SETTINGS, of which the socket takes a part again.
 */
static void a_write_that_is_through_is_not_over(void **state)
{
    struct world *w = *state;
    struct buffer b = {0};

    taken_at_once = 5;
    runtime_listens(w);
    client_connects(w);
    UNTIL(w, buffer_len(&w->runtime.got) == 33);
    h2_put(&b, H2_PREFACE, strlen(H2_PREFACE));
    h2_settings(&b, -1, 0);
    assert_memory_equal(buffer_data(&w->runtime.got), buffer_data(&b), 33);
    buffer_fini(&b);
    client_calls(w, 1, "Version", "question");
    UNTIL(w, has(&w->runtime, "question"));
    runtime_answers(w, 1, "reply");
    UNTIL(w, has(&w->client, "reply"));
    assert_int_equal(w->closed, 0);
}

/* Not what the other end sends, but what the session itself answers: credits for padding. */
static void a_client_that_does_not_read_what_it_causes(void **state)
{
    struct world *w = *state;
    struct buffer b = {0}, frame = {0};

    connect_both(w);
    h2_request(&w->writers[SESSION_CLIENT], &b, 1, "CreateContainer");
    peer_write(w, &w->client, &b);
    for (int i = 0; i < 500; i++) /* small ones fill a socket too soon */
        h2_data(&frame, 1, "", 0, 0, 10);
    w->client.deaf = true;
    assert_true(peer_flood(w, &w->client, &frame, 64u << 20) < 2 * IN_FLIGHT_BYTES_MAX);
    w->client.deaf = false;
    settle(w);
    assert_true(peer_flood(w, &w->client, &frame, 1u << 20) >= 1u << 20); /* it goes on */
    buffer_fini(&frame);
}

/* The same while the runtime is in the middle of a frame, so that nothing of ours can be
 * written. */
static void a_client_that_causes_answers_within_a_frame(void **state)
{
    struct world *w = *state;
    struct buffer b = {0}, frame = {0};

    connect_both(w);
    h2_request(&w->writers[SESSION_CLIENT], &b, 1, "CreateContainer");
    peer_write(w, &w->client, &b);
    h2_data(&frame, 3, (uint8_t[100]){0}, 100, 0, -1);
    h2_put(&b, buffer_data(&frame), 50);
    peer_write(w, &w->runtime, &b);
    UNTIL(w, buffer_len(&w->client.got) == 50);
    h2_put(&b, buffer_data(&frame) + 50, 59);
    buffer_fini(&frame);
    for (int i = 0; i < 500; i++)
        h2_data(&frame, 1, "", 0, 0, 10);
    assert_true(peer_flood(w, &w->client, &frame, 64u << 20) < 2 * IN_FLIGHT_BYTES_MAX);
    peer_write(w, &w->runtime, &b);
    settle(w);
    assert_true(peer_flood(w, &w->client, &frame, 1u << 20) >= 1u << 20); /* it goes on */
    buffer_fini(&frame);
}

/* Ended for its bad frame, with more queued for it than it will ever read. */
static void a_client_that_never_reads_is_given_up(void **state)
{
    struct world *w = *state;
    struct buffer frame = {0};

    connect_both(w);
    h2_data(&frame, 1, (uint8_t[16384]){0}, 16384, 0, -1);
    w->client.deaf = true;
    peer_flood(w, &w->runtime, &frame, 64u << 20);
    buffer_fini(&frame);
    h2_frame(&frame, NGHTTP2_CONTINUATION, 4, 1, "\x82", 1);
    peer_write(w, &w->client, &frame);
    UNTIL(w, w->closed == 1); /* after RELAY_LINGER_MS */
}

/* The write to a runtime that is gone fails while its last words wait for a slow client. */
static void a_broken_runtimes_last_words_arrive(void **state)
{
    struct world *w = *state;
    struct buffer frame = {0};
    size_t sent;

    connect_both(w);
    h2_data(&frame, 1, (uint8_t[16384]){0}, 16384, 0, -1);
    w->client.deaf = true;
    sent = peer_flood(w, &w->runtime, &frame, 64u << 20);
    peer_close(&w->runtime);
    w->runtime.ended = true;
    buffer_fini(&frame);
    h2_frame(&frame, NGHTTP2_PING, 0, 0, "anybody?", 8);
    peer_write(w, &w->client, &frame);
    settle(w);
    assert_int_equal(w->closed, 0);
    w->client.deaf = false;
    UNTIL(w, w->closed == 1 && w->client.ended);
    assert_int_equal(buffer_len(&w->client.got), sent);
}

static void a_client_that_dies_in_the_middle_of_an_answer(void **state)
{
    struct world *w = *state;
    struct buffer frame = {0};

    connect_both(w);
    h2_data(&frame, 1, (uint8_t[16384]){0}, 16384, 0, -1);
    w->client.deaf = true;
    peer_flood(w, &w->runtime, &frame, 64u << 20);
    peer_close(&w->client);
    UNTIL(w, w->closed == 1 && w->runtime.ended);
    buffer_fini(&frame);
}

static void closed_by_the_owner(void **state)
{
    struct world *w = *state;

    connect_both(w);
    client_calls(w, 1, "CreateContainer", "held");
    UNTIL(w, w->calls_len == 1);
    connection_close(w->connections);
    connection_close(w->connections);
    assert_int_equal(w->ended, 0); /* from the loop only */
    UNTIL(w, w->closed == 1 && w->ended == 1 && w->client.ended && w->runtime.ended);
}

static void closed_while_it_connects(void **state)
{
    struct world *w = *state;

    runtime_listens(w);
    w->client.fd = unix_socket(w->front, false);
    while (w->accepted == 0)
        uv_run(&w->loop, UV_RUN_NOWAIT);
    if (w->connections)
        connection_close(w->connections);
    UNTIL(w, w->closed == 1 && w->client.ended);
}

static bool manager_gets(struct world *w, const char *text)
{
    char bytes[256];
    ssize_t n;
    bool is = false;

    while ((n = recv(w->manager, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        is = is || memmem(bytes, (size_t)n, text, strlen(text));
    return is;
}

static void a_manager_that_did_not_read_is_told_again(void **state)
{
    struct world *w = *state;

    while (fd_store_put(w->world.store, "another/", w->manager) == 0)
        continue;
    connect_both(w);
    client_calls(w, 1, "Version", "first");
    UNTIL(w, has(&w->runtime, "first"));
    assert_false(manager_gets(w, "FDNAME=relayed/"));
    client_calls(w, 3, "Version", "second");
    UNTIL(w, has(&w->runtime, "second"));
    assert_true(manager_gets(w, "FDNAME=relayed/"));
    client_calls(w, 5, "Version", "third");
    UNTIL(w, has(&w->runtime, "third"));
    assert_false(manager_gets(w, "FDNAME=relayed/"));
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down),                                      \
    {                                                                                              \
#name " (kept)", name, set_up_kept, tear_down, NULL                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_pass_both_ways),
        TEST(a_runtime_that_is_not_there),
        TEST(a_runtime_that_says_goodbye),
        TEST(a_client_that_is_gone_ends_its_held_call),
        TEST(a_client_that_is_gone_while_the_runtime_reads_nothing),
        TEST(a_half_closed_client_gets_its_answer),
        TEST(the_events_of_a_half_closed_client_end),
        TEST(a_held_call_of_a_half_closed_client_goes_on),
        TEST(a_half_closed_client_that_goes_ends_its_held_call),
        TEST(a_half_closed_client_with_half_a_request),
        TEST(without_memory_for_a_refusal_both_are_closed),
        TEST(what_breaks_the_protocol_is_told_and_closed),
        TEST(what_is_not_http2_is_closed),
        TEST(one_that_does_not_read_holds_the_other_back),
        TEST(a_write_that_is_through_is_not_over),
        TEST(a_client_that_does_not_read_what_it_causes),
        TEST(a_client_that_causes_answers_within_a_frame),
        TEST(a_client_that_never_reads_is_given_up),
        TEST(a_broken_runtimes_last_words_arrive),
        TEST(a_client_that_dies_in_the_middle_of_an_answer),
        TEST(closed_by_the_owner),
        TEST(closed_while_it_connects),
        cmocka_unit_test_setup_teardown(a_manager_that_did_not_read_is_told_again, set_up_kept,
                                        tear_down),
    };

    uv_loop_t loop;

    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&loop); /* the first one opens descriptors that libuv keeps */
    uv_loop_close(&loop);
    setenv("NOTIFY_SOCKET", "/nobody", 1); /* as does who tells a manager for the first time */
    assert_true(service_manager_notify("READY=1") < 0);
    unsetenv("NOTIFY_SOCKET");
    log_set_level(LOG_LEVEL_ERROR); /* three tests provoke a warning */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
