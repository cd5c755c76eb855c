#include "shim/agent/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <curl/curl.h>

#include "shim/agent/limits.h"
#include "shim/boot_clock.h"
#include "shim/log.h"
#include "shim/must.h"

/* A header's line that libcurl hands out is of at most 100 KiB; of an answer's all together. */
#define HEADER_BYTES_MAX (64u * 1024)

struct transport_request {
    struct transport *transport;
    LIST_ENTRY(transport_request) entry;
    CURL *easy;
    struct curl_slist *headers, *connect_to;
    const struct transport_ops *ops; /* NULL: cancelled, or told */
    void *user;
    char *body;
    size_t header_bytes;
    char words[CURL_ERROR_SIZE];
};

/* A socket of libcurl's, watched. */
struct watched {
    uv_poll_t poll;
    LIST_ENTRY(watched) entry;
    struct transport *transport;
    curl_socket_t socket;
    uint64_t heard_ms; /* when something came last, by the loop's clock */
    bool doubted;      /* a request has timed out since */
};

struct transport {
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t timer; /* libcurl's */
    uv_timer_t sweep; /* cancelled requests */
    LIST_HEAD(, transport_request) requests;
    LIST_HEAD(, watched) watched;
    uint64_t server_boot_ms;
    unsigned handles;
};

/* ---- requests ---- */

static void request_free(struct transport_request *request)
{
    LIST_REMOVE(request, entry);
    curl_easy_cleanup(request->easy);
    curl_slist_free_all(request->headers);
    curl_slist_free_all(request->connect_to);
    free(request->body);
    free(request);
}

static void tell(struct transport_request *request, const struct transport_result *result)
{
    const struct transport_ops *ops = request->ops;

    request->ops = NULL;
    if (ops)
        ops->done(request->user, result);
}

/* 0: it has none. */
static long local_port(curl_socket_t socket)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};
    socklen_t len = sizeof address;

    if (getsockname(socket, &address.any, &len) < 0)
        return 0;
    return address.any.sa_family == AF_INET6  ? ntohs(address.v6.sin6_port)
           : address.any.sa_family == AF_INET ? ntohs(address.v4.sin_port)
                                              : 0;
}

/* A stream that has timed out leaves its connection to others (HTTP/2), which may have lost its
 * server without anybody's word: behind a load balancer the kernel goes on having all acknowledged.
 * One on which a second one has, and nothing came at all, is ended with all that is on it, so that
 * it begins anew on another. The first may be one slow answer on a connection that is quiet
 * otherwise. */
static void doubt_if_silent(const struct transport_request *request)
{
    const struct transport *transport = request->transport;
    struct watched *watched;
    long port = 0;

    curl_easy_getinfo(request->easy, CURLINFO_LOCAL_PORT, &port);
    LIST_FOREACH(watched, &transport->watched, entry) {
        if (port == 0 || port != local_port(watched->socket) ||
            uv_now(transport->loop) - watched->heard_ms < SILENT_MS)
            continue;
        if (watched->doubted)
            shutdown(watched->socket, SHUT_RDWR);
        watched->doubted = true;
    }
}

static void finish(struct transport_request *request, CURLcode code)
{
    struct transport_result result = {.words = ""};
    curl_off_t retry_after_s = 0;
    long status = 0;

    if (code == CURLE_OPERATION_TIMEDOUT)
        doubt_if_silent(request);
    if (code == CURLE_OK) {
        curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &result.status);
        curl_easy_getinfo(request->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
        if (retry_after_s > RETRY_AFTER_MS_MAX / 1000)
            retry_after_s = RETRY_AFTER_MS_MAX / 1000;
        result.retry_after_ms = retry_after_s > 0 ? (uint64_t)retry_after_s * 1000 : 0;
    } else {
        curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
        result.torn = status >= 200 && status < 300 && code != CURLE_OPERATION_TIMEDOUT &&
                      code != CURLE_WRITE_ERROR;
        result.words = request->words[0] ? request->words : curl_easy_strerror(code);
    }
    curl_multi_remove_handle(request->transport->multi, request->easy);
    tell(request, &result);
    request_free(request);
}

static void look_for_ends(struct transport *transport)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(transport->multi, &left))) {
        struct transport_request *request = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&request);
        finish(request, message->data.result);
    }
}

/* False: enough of it, or it was cancelled. */
static bool give_body(struct transport_request *request, const char *bytes, size_t len)
{
    long status = 0;

    if (!request->ops)
        return false;
    curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    return status < 200 || request->ops->body(request->user, status, bytes, len);
}

static size_t on_body(char *bytes, size_t size, size_t n, void *user)
{
    return give_body(user, bytes, size * n) ? size * n : 0;
}

static void note_date(const struct transport_request *request)
{
    struct curl_header *header;
    time_t date = 0;

    if (curl_easy_header(request->easy, "Date", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
        date = curl_getdate(header->value, NULL);
    if (date > 0 && (uint64_t)date * 1000 > boot_now_ms())
        request->transport->server_boot_ms = (uint64_t)date * 1000 - boot_now_ms();
}

/* Each line of the head, of which an empty one is the end. */
static size_t on_header(char *bytes, size_t size, size_t n, void *user)
{
    struct transport_request *request = user;
    bool ends = size * n == 2 && memcmp(bytes, "\r\n", 2) == 0;

    request->header_bytes += size * n;
    if (ends)
        note_date(request);
    if (request->header_bytes > HEADER_BYTES_MAX || (ends && !give_body(request, "", 0)))
        return 0;
    return size * n;
}

/* Not from inside libcurl, which may be who calls. */
static void on_sweep(uv_timer_t *timer)
{
    struct transport *transport = timer->data;
    struct transport_request *request = LIST_FIRST(&transport->requests), *next;

    for (; request; request = next) {
        next = LIST_NEXT(request, entry);
        if (request->ops)
            continue;
        curl_multi_remove_handle(transport->multi, request->easy);
        request_free(request);
    }
}

void transport_cancel(struct transport_request *request)
{
    if (!request)
        return;
    request->ops = NULL;
    uv_timer_start(&request->transport->sweep, on_sweep, 0, 0);
}

static void set_credentials(CURL *easy, const struct credentials_set *set)
{
    const struct {
        CURLoption option;
        const struct kubeconfig_data *data;
    } blobs[] = {{CURLOPT_CAINFO_BLOB, &set->ca},
                 {CURLOPT_SSLCERT_BLOB, &set->certificate},
                 {CURLOPT_SSLKEY_BLOB, &set->key}};

    for (size_t i = 0; i < sizeof blobs / sizeof *blobs; i++) {
        struct curl_blob blob = {blobs[i].data->bytes, blobs[i].data->len, CURL_BLOB_COPY};

        if (blob.data)
            curl_easy_setopt(easy, blobs[i].option, &blob);
    }
    if (set->ca.bytes) /* it alone: libcurl would go on trusting those of the machine's directory */
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, set->insecure ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, set->insecure ? 0L : 2L);
    if (set->proxy_url)
        curl_easy_setopt(easy, CURLOPT_PROXY, set->proxy_url);
}

static void add_header(struct transport_request *request, const char *name, const char *value)
{
    char *line;

    if (asprintf(&line, "%s: %s", name, value) < 0)
        abort();
    request->headers = must(curl_slist_append(request->headers, line));
    free(line);
}

static char *joined(const char *a, size_t a_len, const char *b, const char *c)
{
    char *text;

    if (asprintf(&text, "%.*s%s%s", (int)a_len, a, b, c) < 0)
        abort();
    return text;
}

/* Where the certificate is to have another name than the server's, the URL has that, and the
 * connection is made to the server all the same. */
static char *url_of(struct transport_request *request, const struct credentials_set *set,
                    const char *path)
{
    const char *host = set->server + strlen("https://"), *rest = host + strcspn(host, "/");
    const char *port = rest;
    char *to, *name, *url;

    if (!set->tls_server_name)
        return joined(set->server, strlen(set->server), path, "");
    while (port > host && port[-1] >= '0' && port[-1] <= '9')
        port--;
    port = port > host && port[-1] == ':' ? port - 1 : rest;
    to = joined(host, (size_t)(rest - host), "", "");
    name = joined("::", 2, to, port == rest ? ":" : "");
    request->connect_to = must(curl_slist_append(NULL, name));
    curl_easy_setopt(request->easy, CURLOPT_CONNECT_TO, request->connect_to);
    free(to);
    free(name);
    name = joined("https://", 8, set->tls_server_name, port);
    url = joined(name, strlen(name), path, "");
    free(name);
    return url;
}

static void set_call(struct transport_request *request, const struct credentials_set *set,
                     const struct transport_call *call)
{
    CURL *easy = request->easy;
    char *url = url_of(request, set, call->path), *bearer;

    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
    add_header(request, "Accept", "application/json");
    if (set->token) {
        if (asprintf(&bearer, "Bearer %s", set->token) < 0)
            abort();
        add_header(request, "Authorization", bearer);
        free(bearer);
    }
    if (call->body) {
        request->body = must(strdup(call->body));
        add_header(request, "Content-Type", call->content_type);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)strlen(request->body));
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
    if (call->timeout_ms > 0)
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)call->timeout_ms);
    if (call->silence_s > 0) {
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)call->silence_s);
    }
    free(url);
}

static int on_connect(void *user, curl_socket_t socket, curlsocktype purpose)
{
    unsigned timeout_ms = UNACKNOWLEDGED_MS;

    (void)user;
    if (purpose == CURLSOCKTYPE_IPCXN) /* a system without it takes longer */
        (void)!setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    return CURL_SOCKOPT_OK;
}

static void set_always(struct transport_request *request)
{
    CURL *easy = request->easy;

    curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->words);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* Names are looked up in threads, which nobody can stop: not waited for, here in the loop, by
     * who has given up. */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_AGAIN_S);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_connect);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "cri-device-shim-agent/" SHIM_VERSION);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, request);
}

struct transport_request *transport_start(struct transport *transport,
                                          const struct credentials_set *set,
                                          const struct transport_call *call,
                                          const struct transport_ops *ops, void *user)
{
    struct transport_request *request = must(calloc(1, sizeof *request));

    request->transport = transport;
    request->ops = ops;
    request->user = user;
    request->easy = must(curl_easy_init());
    LIST_INSERT_HEAD(&transport->requests, request, entry);
    set_always(request);
    set_credentials(request->easy, set);
    set_call(request, set, call);
    if (curl_multi_add_handle(transport->multi, request->easy) != CURLM_OK)
        abort(); /* out of memory */
    return request;
}

/* ---- libcurl's sockets and time ---- */

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watched *watched = poll->data;
    struct transport *transport = watched->transport;
    int flags = 0, running;

    if (events & UV_READABLE) {
        watched->heard_ms = uv_now(transport->loop);
        watched->doubted = false;
    }
    if (status < 0)
        flags = CURL_CSELECT_ERR;
    flags |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
    flags |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
    curl_multi_socket_action(transport->multi, watched->socket, flags, &running);
    look_for_ends(transport);
}

static void on_watched_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *user, void *of_socket)
{
    struct transport *transport = user;
    struct watched *watched = of_socket;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watched) {
            LIST_REMOVE(watched, entry);
            uv_close((uv_handle_t *)&watched->poll, on_watched_closed);
        }
        curl_multi_assign(transport->multi, socket, NULL);
        return 0;
    }
    if (!watched) {
        watched = must(calloc(1, sizeof *watched));
        watched->transport = transport;
        watched->socket = socket;
        if (uv_poll_init_socket(transport->loop, &watched->poll, socket) < 0) {
            free(watched);
            return -1;
        }
        watched->poll.data = watched;
        watched->heard_ms = uv_now(transport->loop);
        LIST_INSERT_HEAD(&transport->watched, watched, entry);
        curl_multi_assign(transport->multi, socket, watched);
    }
    events |= what & CURL_POLL_IN ? UV_READABLE : 0;
    events |= what & CURL_POLL_OUT ? UV_WRITABLE : 0;
    uv_poll_start(&watched->poll, events, on_poll);
    return 0;
}

static void on_time(uv_timer_t *timer)
{
    struct transport *transport = timer->data;
    int running;

    curl_multi_socket_action(transport->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    look_for_ends(transport);
}

static int on_timer(CURLM *multi, long wait_ms, void *user)
{
    struct transport *transport = user;

    (void)multi;
    if (wait_ms < 0)
        uv_timer_stop(&transport->timer);
    else
        uv_timer_start(&transport->timer, on_time, (uint64_t)wait_ms, 0);
    return 0;
}

/* ---- life ---- */

/* libcurl's memory. Where there is none it goes on with what it has half destroyed (in 7.88.1 it
 * divides by the slots of a table that has none any more, and frees a text twice): the process ends
 * first, as for all else that it needs. */

static void *take(size_t bytes)
{
    return must(malloc(bytes));
}

static void *take_zeroed(size_t n, size_t bytes)
{
    return must(calloc(n, bytes));
}

static void *take_more(void *old, size_t bytes)
{
    return must(realloc(old, bytes));
}

static char *take_copy(const char *text)
{
    return must(strdup(text));
}

uint64_t transport_server_boot_ms(const struct transport *transport)
{
    return transport->server_boot_ms;
}

static bool set_up(struct transport *transport)
{
    return curl_global_init_mem(CURL_GLOBAL_SSL, take, free, take_more, take_copy, take_zeroed) ==
               CURLE_OK &&
           (transport->multi = curl_multi_init());
}

struct transport *transport_new(uv_loop_t *loop)
{
    struct transport *transport = must(calloc(1, sizeof *transport));

    if (!set_up(transport)) {
        log_error("libcurl cannot be set up");
        free(transport);
        return NULL;
    }
    transport->loop = loop;
    uv_timer_init(loop, &transport->timer);
    uv_timer_init(loop, &transport->sweep);
    transport->timer.data = transport->sweep.data = transport;
    transport->handles = 2;
    curl_multi_setopt(transport->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(transport->multi, CURLMOPT_SOCKETDATA, transport);
    curl_multi_setopt(transport->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(transport->multi, CURLMOPT_TIMERDATA, transport);
    curl_multi_setopt(transport->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    curl_multi_setopt(transport->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)CONNECTIONS_MAX);
    curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_MAX);
    return transport;
}

static void on_closed(uv_handle_t *handle)
{
    struct transport *transport = handle->data;

    if (--transport->handles > 0)
        return;
    free(transport);
}

void transport_free(struct transport *transport)
{
    if (!transport)
        return;
    while (!LIST_EMPTY(&transport->requests)) {
        struct transport_request *request = LIST_FIRST(&transport->requests);

        request->ops = NULL;
        curl_multi_remove_handle(transport->multi, request->easy);
        request_free(request);
    }
    curl_multi_cleanup(transport->multi);
    curl_global_cleanup();
    uv_close((uv_handle_t *)&transport->timer, on_closed);
    uv_close((uv_handle_t *)&transport->sweep, on_closed);
}
