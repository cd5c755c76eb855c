#include "tests/unit/rpc_fixture.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include "shim/rpc/caller.h"
#include "shim/rpc/unix_socket.h"

static int count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void guard_passed(uv_timer_t *timer)
{
    (void)timer;
    fail_msg("the test hangs");
}

struct world *world_new(void)
{
    struct world *world = calloc(1, sizeof *world);

    signal(SIGPIPE, SIG_IGN);
    strcpy(world->dir, "/tmp/test-rpc-XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    snprintf(world->path, sizeof world->path, "%s/sock", world->dir);
    /* The process's first loop opens descriptors that stay. */
    uv_loop_init(&world->loop);
    uv_loop_close(&world->loop);
    world->fds = count_fds();
    uv_loop_init(&world->loop);
    uv_timer_init(&world->loop, &world->guard);
    uv_timer_start(&world->guard, guard_passed, WORLD_GUARD_MS, WORLD_GUARD_MS);
    return world;
}

int world_free(struct world *world)
{
    int err;

    uv_close((uv_handle_t *)&world->guard, NULL);
    /* What is not closed by now would keep a loop that waits for it for ever. */
    for (int turn = 0; turn < 100 && uv_loop_alive(&world->loop); turn++)
        uv_run(&world->loop, UV_RUN_NOWAIT);
    err = uv_loop_close(&world->loop);
    if (err)
        uv_print_all_handles(&world->loop, stderr);
    if (!err && count_fds() != world->fds)
        err = -1;
    if (rmdir(world->dir))
        err = -1;
    free(world);
    return err;
}

int world_setup(void **state)
{
    *state = world_new();
    return 0;
}

int world_teardown(void **state)
{
    return world_free(*state);
}

void world_wait(struct world *world, const bool *flag)
{
    while (!*flag)
        uv_run(&world->loop, UV_RUN_ONCE);
}

static void settled(uv_idle_t *idle)
{
    bool *done = idle->data;

    *done = true;
}

void world_settle(struct world *world)
{
    for (int quiet = 0; quiet < 10; quiet++) {
        bool done = false;
        uv_idle_t idle = {.data = &done};

        uv_idle_init(&world->loop, &idle);
        uv_idle_start(&idle, settled);
        world_wait(world, &done);
        uv_close((uv_handle_t *)&idle, NULL);
        uv_run(&world->loop, UV_RUN_NOWAIT);
    }
}

/* ---- bytes ---- */

void bytes_add(struct bytes *bytes, const void *data, size_t len)
{
    assert_true(len <= sizeof bytes->data - bytes->len);
    if (len)
        memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
}

void bytes_frame(struct bytes *bytes, uint8_t type, uint8_t flags, uint32_t stream_id,
                 const void *payload, size_t len)
{
    uint8_t head[9] = {(uint8_t)(len >> 16),
                       (uint8_t)(len >> 8),
                       (uint8_t)len,
                       type,
                       flags,
                       (uint8_t)(stream_id >> 24),
                       (uint8_t)(stream_id >> 16),
                       (uint8_t)(stream_id >> 8),
                       (uint8_t)stream_id};

    bytes_add(bytes, head, sizeof head);
    bytes_add(bytes, payload, len);
}

static size_t put_text(uint8_t *out, const char *text)
{
    size_t len = strlen(text);

    assert_true(len < 127);
    out[0] = (uint8_t)len;
    memcpy(out + 1, text, len);
    return len + 1;
}

void bytes_headers(struct bytes *bytes, uint8_t flags, uint32_t stream_id,
                   const char *const *fields)
{
    uint8_t block[8192];
    size_t len = 0;

    for (; fields[0]; fields += 2) {
        block[len++] = 0;
        len += put_text(block + len, fields[0]);
        len += put_text(block + len, fields[1]);
    }
    bytes_frame(bytes, NGHTTP2_HEADERS, flags | NGHTTP2_FLAG_END_HEADERS, stream_id, block, len);
}

void bytes_message(struct bytes *bytes, uint8_t flags, uint32_t stream_id, uint8_t compressed,
                   const void *message, size_t len)
{
    uint8_t payload[16384] = {compressed, (uint8_t)(len >> 24), (uint8_t)(len >> 16),
                              (uint8_t)(len >> 8), (uint8_t)len};

    assert_true(len <= sizeof payload - 5);
    if (len)
        memcpy(payload + 5, message, len);
    bytes_frame(bytes, NGHTTP2_DATA, flags, stream_id, payload, len + 5);
}

void bytes_preface(struct bytes *bytes)
{
    bytes_add(bytes, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    bytes_frame(bytes, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

void bytes_settings(struct bytes *bytes)
{
    bytes->len = 0;
    bytes_frame(bytes, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

/* ---- the raw peer ---- */

void raw_hang_up(struct raw *raw)
{
    raw->ended = true;
    if (!uv_is_closing((uv_handle_t *)&raw->pipe))
        uv_close((uv_handle_t *)&raw->pipe, NULL);
}

/* Our sessions send header blocks without padding, priority or CONTINUATION. */
static void raw_fields(struct raw *raw, const uint8_t *block, size_t len)
{
    int flags = 0;

    if (!raw->inflater)
        assert_int_equal(nghttp2_hd_inflate_new(&raw->inflater), 0);
    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        size_t used = strlen(raw->fields);
        nghttp2_nv nv;
        ssize_t n = nghttp2_hd_inflate_hd2(raw->inflater, &nv, &flags, block, len, 1);

        assert_true(n >= 0);
        block += n;
        len -= (size_t)n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            snprintf(raw->fields + used, sizeof raw->fields - used, "%s=%s\n", nv.name, nv.value);
    }
    nghttp2_hd_inflate_end_headers(raw->inflater);
}

static void raw_frame(struct raw *raw, const uint8_t *head, size_t len)
{
    uint32_t stream_id =
        (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];

    if (head[3] == NGHTTP2_HEADERS)
        raw_fields(raw, head + 9, len);
    if (stream_id != 1)
        return;
    if (head[3] == NGHTTP2_RST_STREAM) {
        raw->reset = true;
        raw->reset_code = head[12];
    }
    if ((head[3] == NGHTTP2_DATA || head[3] == NGHTTP2_HEADERS) &&
        head[4] & NGHTTP2_FLAG_END_STREAM && !raw->request_whole) {
        raw->request_whole = true;
        if (raw->answer)
            raw_write(raw, raw->answer);
        if (raw->hang_up)
            raw_hang_up(raw);
    }
}

static void raw_parse(struct raw *raw)
{
    if (raw->listening && raw->parsed == 0)
        raw->parsed = NGHTTP2_CLIENT_MAGIC_LEN;
    while (raw->got.len >= raw->parsed + 9) {
        const uint8_t *head = raw->got.data + raw->parsed;
        size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];

        if (raw->got.len < raw->parsed + 9 + len)
            return;
        raw->parsed += 9 + len;
        raw_frame(raw, head, len);
    }
}

static void raw_buffer(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    struct raw *raw = handle->data;

    (void)size;
    *buf = uv_buf_init((char *)raw->got.data + raw->got.len,
                       (unsigned)(sizeof raw->got.data - raw->got.len));
}

static void raw_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct raw *raw = stream->data;

    (void)buf;
    if (n < 0) {
        raw_hang_up(raw);
        return;
    }
    raw->got.len += (size_t)n;
    raw_parse(raw);
}

static void raw_start(struct raw *raw)
{
    raw->connected = true;
    assert_int_equal(uv_read_start((uv_stream_t *)&raw->pipe, raw_buffer, raw_read), 0);
    if (raw->greeting)
        raw_write(raw, raw->greeting);
}

static void raw_connection(uv_stream_t *listener, int status)
{
    struct raw *raw = listener->data;

    assert_int_equal(status, 0);
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&raw->pipe), 0);
    raw_start(raw);
}

static void raw_init(struct raw *raw, struct world *world)
{
    uv_pipe_init(&world->loop, &raw->pipe, 0);
    raw->pipe.data = raw;
}

void raw_listen(struct raw *raw, struct world *world)
{
    int fd;

    raw_init(raw, world);
    uv_pipe_init(&world->loop, &raw->listener, 0);
    raw->listener.data = raw;
    raw->listening = true;
    assert_int_equal(unix_listen(world->path, 0600, &fd), 0);
    assert_int_equal(uv_pipe_open(&raw->listener, fd), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&raw->listener, 8, raw_connection), 0);
}

static void raw_connected(uv_connect_t *connect, int status)
{
    assert_int_equal(status, 0);
    raw_start(connect->data);
}

void raw_connect(struct raw *raw, struct world *world)
{
    raw_init(raw, world);
    raw->connect.data = raw;
    uv_pipe_connect(&raw->connect, &raw->pipe, world->path, raw_connected);
    world_wait(world, &raw->connected);
}

/* A write that goes on in pieces. */
struct raw_output {
    uv_write_t write;
    struct raw *raw;
    const uint8_t *data;
    size_t left;
    size_t step;
};

static void raw_write_piece(struct raw_output *output);

static void raw_written(uv_write_t *write, int status)
{
    struct raw_output *output = write->data;

    output->raw->write_failed |= status < 0;
    if (status == 0 && output->left > 0 && !uv_is_closing((uv_handle_t *)&output->raw->pipe))
        raw_write_piece(output);
    else
        free(output);
}

static void raw_write_piece(struct raw_output *output)
{
    size_t n = output->left < output->step ? output->left : output->step;
    uv_buf_t buf = uv_buf_init((char *)output->data, (unsigned)n);

    output->data += n;
    output->left -= n;
    assert_int_equal(
        uv_write(&output->write, (uv_stream_t *)&output->raw->pipe, &buf, 1, raw_written), 0);
}

void raw_write(struct raw *raw, const struct bytes *bytes)
{
    struct raw_output *output = malloc(sizeof *output);

    *output = (struct raw_output){.raw = raw,
                                  .data = bytes->data,
                                  .left = bytes->len,
                                  .step = raw->step ? raw->step : bytes->len};
    output->write.data = output;
    raw_write_piece(output);
}

void raw_close(struct raw *raw)
{
    if (raw->inflater)
        nghttp2_hd_inflate_del(raw->inflater);
    raw->inflater = NULL;
    if (!uv_is_closing((uv_handle_t *)&raw->pipe))
        uv_close((uv_handle_t *)&raw->pipe, NULL);
    if (raw->listening) {
        char name[128];
        size_t len = sizeof name;

        assert_int_equal(uv_pipe_getsockname(&raw->listener, name, &len), 0);
        assert_int_equal(unlink(name), 0);
        uv_close((uv_handle_t *)&raw->listener, NULL);
    }
}

bool raw_got(const struct raw *raw, const char *text)
{
    return strstr(raw->fields, text) != NULL;
}

void incoming_answer(struct rpc_incoming *call, const ProtobufCMessage *message, int code,
                     const char *words)
{
    if (code == RPC_OK && rpc_incoming_send(call, message) < 0)
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "no memory for the answer");
    else
        rpc_incoming_finish(call, code, code == RPC_OK ? NULL : words);
}

void incoming_goes_away(struct rpc_incoming *call)
{
    struct caller *caller = *(struct caller **)call; /* its first member */

    assert_int_equal(nghttp2_submit_shutdown_notice(caller->link.session), 0);
    link_wake(&caller->link);
}

int serve_at(uv_loop_t *loop, const char *path, const struct rpc_method *methods,
             size_t methods_len, void *user, struct rpc_server **out)
{
    const struct socket_place place = {.name = path};
    struct rpc_server *server;
    int err = rpc_server_new(loop, &place, methods, methods_len, user, &server);

    if (err)
        return err;
    err = rpc_server_listen(server);
    if (err < 0) {
        rpc_server_close(server);
        return err;
    }
    *out = server;
    return 0;
}
