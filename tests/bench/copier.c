/*
 * The floor for a hop in user space: copies bytes between a client's socket and the runtime's, and
 * looks at none. Same library, buffer sizes and back-pressure as the shim's relay.
 *
 *     copier LISTEN_PATH RUNTIME_PATH
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <uv.h>

/* As in shim/relay/limits.h. */
#define READ_BYTES 65536
#define SOCKET_BYTES (512 * 1024)
#define QUEUE_BYTES_HIGH (256 * 1024)
#define QUEUE_BYTES_LOW (64 * 1024)

struct pair;

struct end {
    uv_pipe_t pipe;
    struct pair *pair;
    bool reading;
};

struct pair {
    struct end client;
    struct end runtime;
    uv_connect_t connect;
    int open;
};

struct rest {
    uv_write_t request;
    struct end *to;
    char bytes[];
};

static char read_buffer[READ_BYTES];
static const char *runtime_path;

static void on_closed(uv_handle_t *handle)
{
    struct pair *p = ((struct end *)handle)->pair;

    if (--p->open == 0)
        free(p);
}

static void pair_close(struct pair *p)
{
    if (uv_is_closing((uv_handle_t *)&p->client.pipe))
        return;
    uv_close((uv_handle_t *)&p->client.pipe, on_closed);
    uv_close((uv_handle_t *)&p->runtime.pipe, on_closed);
}

static struct end *other(struct end *end)
{
    return end == &end->pair->client ? &end->pair->runtime : &end->pair->client;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(read_buffer, sizeof read_buffer);
}

static void start_reading(struct end *end);

static void on_written(uv_write_t *request, int status)
{
    struct rest *rest = (struct rest *)request;
    struct end *to = rest->to;

    free(rest);
    if (status < 0)
        pair_close(to->pair);
    else if (uv_stream_get_write_queue_size((uv_stream_t *)&to->pipe) <= QUEUE_BYTES_LOW)
        start_reading(other(to));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct end *from = (struct end *)stream;
    struct end *to = other(from);
    uv_buf_t out;
    struct rest *rest;
    int r;

    if (n < 0) {
        pair_close(from->pair);
        return;
    }
    out = uv_buf_init(buf->base, (unsigned)n);
    r = uv_try_write((uv_stream_t *)&to->pipe, &out, 1);
    if (r == n)
        return;
    if (r < 0 && r != UV_EAGAIN) {
        pair_close(from->pair);
        return;
    }
    r = r < 0 ? 0 : r;
    rest = malloc(sizeof *rest + (size_t)(n - r));
    if (!rest)
        abort();
    rest->to = to;
    memcpy(rest->bytes, buf->base + r, (size_t)(n - r));
    out = uv_buf_init(rest->bytes, (unsigned)(n - r));
    uv_write(&rest->request, (uv_stream_t *)&to->pipe, &out, 1, on_written);
    if (uv_stream_get_write_queue_size((uv_stream_t *)&to->pipe) > QUEUE_BYTES_HIGH) {
        uv_read_stop(stream);
        from->reading = false;
    }
}

static void start_reading(struct end *end)
{
    if (end->reading || uv_is_closing((uv_handle_t *)&end->pipe))
        return;
    end->reading = true;
    uv_read_start((uv_stream_t *)&end->pipe, on_alloc, on_read);
}

static void widen(struct end *end)
{
    int bytes = SOCKET_BYTES;
    uv_os_fd_t fd;

    if (uv_fileno((uv_handle_t *)&end->pipe, &fd) == 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
}

static void on_connected(uv_connect_t *request, int status)
{
    struct pair *p = request->data;

    if (status < 0) {
        pair_close(p);
        return;
    }
    widen(&p->client);
    widen(&p->runtime);
    start_reading(&p->client);
    start_reading(&p->runtime);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct pair *p = calloc(1, sizeof *p);

    if (status < 0 || !p)
        abort();
    p->open = 2;
    p->client.pair = p->runtime.pair = p;
    p->connect.data = p;
    uv_pipe_init(listener->loop, &p->client.pipe, 0);
    uv_pipe_init(listener->loop, &p->runtime.pipe, 0);
    uv_accept(listener, (uv_stream_t *)&p->client.pipe);
    uv_pipe_connect(&p->connect, &p->runtime.pipe, runtime_path, on_connected);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    uv_pipe_t listener;

    if (argc != 3) {
        fprintf(stderr, "usage: %s LISTEN_PATH RUNTIME_PATH\n", argv[0]);
        return 2;
    }
    runtime_path = argv[2];
    signal(SIGPIPE, SIG_IGN);
    unlink(argv[1]);
    uv_pipe_init(loop, &listener, 0);
    if (uv_pipe_bind(&listener, argv[1]) < 0 ||
        uv_listen((uv_stream_t *)&listener, 511, on_connection) < 0) {
        fprintf(stderr, "%s: cannot listen\n", argv[1]);
        return 1;
    }
    return uv_run(loop, UV_RUN_DEFAULT);
}
