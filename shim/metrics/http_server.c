#include "shim/metrics/http_server.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/listen_address.h"
#include "shim/hash.h"
#include "shim/metrics/microhttpd.h"
#include "shim/must.h"
#include "shim/rpc/keeper.h"
#include "shim/rpc/socket_file.h"

#define BACKLOG 16
#define SOCKET_DIRECTORY_MODE 0755

struct visitor {
    int fd;
    uint64_t since_ms; /* on the loop's clock */
};

struct http_server {
    uv_loop_t *loop;
    const struct http_server_ops *ops;
    void *user;
    struct listen_address address;
    struct socket_file file; /* of a unix socket */
    struct keeper *keeper;
    const struct microhttpd *http;
    struct MHD_Daemon *daemon;                     /* NULL: it does not listen */
    int listening;                                 /* its socket */
    uv_poll_t *poll;                               /* of its descriptor; freed when it is closed */
    uv_timer_t timer;                              /* of what it has to do without an event */
    struct visitor visitors[HTTP_CONNECTIONS_MAX]; /* who came first is first */
    size_t visitors_len;
};

/* ---- who is here ---- */

static bool is_full(const struct http_server *server)
{
    return server->visitors_len == HTTP_CONNECTIONS_MAX;
}

static void leave(struct http_server *server, int fd)
{
    struct visitor *v = server->visitors;
    size_t i = 0;

    while (i < server->visitors_len && v[i].fd != fd)
        i++;
    if (i == server->visitors_len)
        return;
    server->visitors_len--;
    memmove(&v[i], &v[i + 1], (server->visitors_len - i) * sizeof *v);
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_server *server = user;
    int fd = server->http->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
                 ->connect_fd;

    (void)context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        leave(server, fd);
    else if (!is_full(server))
        server->visitors[server->visitors_len++] =
            (struct visitor){.fd = fd, .since_ms = uv_now(server->loop)};
}

/* Until the oldest has to go: who sends a byte now and then would keep his place else. */
static uint64_t oldest_left_ms(const struct http_server *server)
{
    uint64_t age_ms = uv_now(server->loop) - server->visitors[0].since_ms;

    return age_ms < HTTP_FULL_MS ? HTTP_FULL_MS - age_ms : 0;
}

/* ---- its turn ---- */

static void on_timer(uv_timer_t *timer);
static void on_readable(uv_poll_t *poll, int status, int events);

/* Somebody waits whom it could not take, as without a descriptor left: with no connection that
 * might end the library tries that again and again without a pause. */
static bool cannot_accept(const struct http_server *server)
{
    struct pollfd listening = {.fd = server->listening, .events = POLLIN};

    return server->visitors_len == 0 && poll(&listening, 1, 0) == 1;
}

/* A daemon that is full does not listen; it does so again at the begin of its next turn, for which
 * there may be no event: all its connections are over. */
static void run(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG in_ms;
    bool full;

    do {
        full = is_full(server);
        server->http->run(server->daemon);
    } while (full && !is_full(server));
    if (server->http->get_timeout(server->daemon, &in_ms) != MHD_YES)
        in_ms = UINT64_MAX;
    if (is_full(server) && oldest_left_ms(server) < in_ms)
        in_ms = oldest_left_ms(server);
    if (cannot_accept(server)) {
        uv_poll_stop(server->poll);
        in_ms = HTTP_AGAIN_MS;
    } else if (!uv_is_active((uv_handle_t *)server->poll)) {
        uv_poll_start(server->poll, UV_READABLE, on_readable);
    }
    if (in_ms < UINT64_MAX)
        uv_timer_start(&server->timer, on_timer, in_ms, 0);
    else
        uv_timer_stop(&server->timer);
}

static void on_timer(uv_timer_t *timer)
{
    struct http_server *server = timer->data;

    if (is_full(server) && oldest_left_ms(server) == 0)
        shutdown(server->visitors[0].fd, SHUT_RDWR); /* which the library sees */
    run(server);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    run(poll->data);
}

/* ---- answers ---- */

#define TAG_BYTES 24

static const char *field_of(const struct http_server *server, struct MHD_Connection *connection,
                            const char *name)
{
    const char *value = server->http->lookup_value(connection, MHD_HEADER_KIND, name);

    return value ? value : "";
}

/* By what is in it: the same text has the same tag, also that of another process. */
static void make_tag(const struct http_answer *a, char out[static TAG_BYTES])
{
    const void *bytes = a->lasting ? a->lasting : a->body;

    snprintf(out, TAG_BYTES, "\"%016" PRIx64 "\"", hash_bytes(HASH_BEGIN, bytes, a->len));
}

/* An empty one in its place. */
static void leave_out_body(struct http_answer *a)
{
    free(a->body);
    a->body = NULL;
    a->lasting = "";
    a->len = 0;
    a->status = MHD_HTTP_NOT_MODIFIED;
}

static enum MHD_Result answer(struct http_server *server, struct MHD_Connection *connection,
                              struct http_answer *a)
{
    const struct microhttpd *http = server->http;
    char tag[TAG_BYTES] = "";
    struct MHD_Response *response;
    enum MHD_Result result;

    if (a->tagged && a->status == MHD_HTTP_OK) {
        make_tag(a, tag);
        if (strstr(field_of(server, connection, MHD_HTTP_HEADER_IF_NONE_MATCH), tag))
            leave_out_body(a);
    }
    /* The library does not write to what lasts. */
    response = a->lasting ? http->create_response(a->len, (void *)(uintptr_t)a->lasting,
                                                  MHD_RESPMEM_PERSISTENT)
                          : http->create_response(a->len, a->body, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(a->body);
        return MHD_NO;
    }
    http->add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, a->type);
    if (*tag)
        http->add_header(response, MHD_HTTP_HEADER_ETAG, tag);
    for (const struct http_header *header = a->headers; header && header->name; header++)
        http->add_header(response, header->name, header->value);
    if (a->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        http->add_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    result = http->queue_response(connection, a->status, response);
    http->destroy_response(response);
    return result;
}

static enum MHD_Result answer_text(struct http_server *server, struct MHD_Connection *connection,
                                   unsigned status, const char *text)
{
    struct http_answer a = {.status = status, .type = "text/plain; charset=utf-8"};

    a.body = strdup(text);
    a.len = strlen(text);
    return a.body ? answer(server, connection, &a) : MHD_NO;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_bytes, void **request)
{
    struct http_server *server = user;
    const struct http_request asked = {.path = path,
                                       .host = field_of(server, connection, MHD_HTTP_HEADER_HOST),
                                       .http = server->http,
                                       .connection = connection};
    struct http_answer a = {0};

    (void)version, (void)body, (void)body_bytes, (void)request;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return answer_text(server, connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD\n");
    if (!server->ops->get(server->user, &asked, &a))
        return answer_text(server, connection, MHD_HTTP_NOT_FOUND, "not found\n");
    return answer(server, connection, &a);
}

/* ---- what is behind the '?' ---- */

struct arguments {
    void (*each)(void *user, const char *name, const char *value);
    void *user;
};

static enum MHD_Result on_argument(void *user, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    const struct arguments *arguments = user;

    (void)kind;
    arguments->each(arguments->user, name, value ? value : "");
    return MHD_YES;
}

void http_request_arguments(const struct http_request *request,
                            void (*each)(void *user, const char *name, const char *value),
                            void *user)
{
    struct arguments arguments = {.each = each, .user = user};

    request->http->each_value(request->connection, MHD_GET_ARGUMENT_KIND, on_argument, &arguments);
}

/* ---- listening ---- */

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle);
}

static void stop_serving(struct http_server *server)
{
    if (!server->daemon)
        return;
    uv_timer_stop(&server->timer);
    uv_close((uv_handle_t *)server->poll, on_poll_closed); /* before its descriptor is */
    server->http->stop_daemon(server->daemon);
    server->daemon = NULL;
    server->poll = NULL;
}

/* 0 or a negative errno. */
static int watch(struct http_server *server)
{
    const union MHD_DaemonInfo *info =
        server->http->get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    int r;

    server->poll = must(calloc(1, sizeof *server->poll));
    r = info ? uv_poll_init(server->loop, server->poll, info->epoll_fd) : -EBADF;
    if (r < 0) {
        free(server->poll);
        server->http->stop_daemon(server->daemon);
        server->daemon = NULL;
        return r;
    }
    server->poll->data = server;
    return uv_poll_start(server->poll, UV_READABLE, on_readable);
}

/* Takes the socket, which listens. */
static int serve_on(struct http_server *server, int fd)
{
    server->daemon = server->http->start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_CONNECTION_BYTES_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_IDLE_S, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_END);
    if (!server->daemon) {
        close(fd);
        return -ENOMEM;
    }
    server->listening = fd;
    return watch(server);
}

static int listen_loopback(const struct listen_address *address, int *fd_out)
{
    int fd = socket(address->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (const struct sockaddr *)&address->to, address->len) < 0 ||
        listen(fd, BACKLOG) < 0) {
        int r = -errno;

        close(fd);
        return r;
    }
    *fd_out = fd;
    return 0;
}

static int serve(void *user)
{
    struct http_server *server = user;
    bool unix_socket = server->address.len == 0;
    int fd, r;

    server->http = microhttpd_load();
    if (!server->http)
        return -ELIBACC;
    if (server->daemon && (!unix_socket || socket_file_there(&server->file)))
        return 0;
    r = unix_socket ? socket_file_make(&server->file, &fd) : listen_loopback(&server->address, &fd);
    if (r < 0)
        return r;
    stop_serving(server);
    r = serve_on(server, fd);
    return r < 0 ? r : 1;
}

struct http_server *http_server_start(uv_loop_t *loop, const char *address,
                                      const struct http_server_ops *ops, void *user)
{
    struct http_server *server = must(calloc(1, sizeof *server));
    const struct socket_place place = {.name = address, .dir_mode = SOCKET_DIRECTORY_MODE};
    char what[256];

    server->loop = loop;
    server->ops = ops;
    server->user = user;
    if (!listen_address_parse(address, &server->address))
        abort(); /* the settings were checked */
    if (server->address.len == 0 && socket_file_init(&server->file, &place) < 0)
        abort(); /* out of memory */
    uv_timer_init(loop, &server->timer);
    server->timer.data = server;
    snprintf(what, sizeof what, "[metrics] listen = \"%s\"", address);
    server->keeper = keeper_start(loop, what, serve, server);
    return server;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;

    socket_file_fini(&server->file);
    free(server);
}

void http_server_stop(struct http_server *server)
{
    if (!server)
        return;
    keeper_stop(server->keeper);
    stop_serving(server);
    if (server->address.len == 0)
        socket_file_remove(&server->file);
    uv_close((uv_handle_t *)&server->timer, on_timer_closed);
}
