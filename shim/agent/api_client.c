#include "shim/agent/api_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <jansson.h>

#include "cri-proto/utf8.h"
#include "shim/agent/credentials.h"
#include "shim/must.h"

struct api_request {
    struct api_client *client;
    TAILQ_ENTRY(api_request) entry;
    const struct api_ops *ops;
    void *user;
    struct transport_call call;     /* its texts are ours */
    struct transport_request *sent; /* NULL: it waits for credentials */
    char *error;                    /* an answer that is one; ERROR_BYTES_MAX */
    size_t error_len;
    long error_status; /* and its status; 0: it is none */
    bool unusable;     /* body() said so */
};

TAILQ_HEAD(requests, api_request);

struct api_client {
    const struct api_client_ops *ops;
    void *user;
    struct credentials *credentials;
    struct transport *transport;
    struct requests requests;
    uv_timer_t timer; /* for what waits for credentials */
    bool told, reached;
};

/* ---- what came of it ---- */

static void tell_reached(struct api_client *client, bool reached, const char *words)
{
    if (client->told && client->reached == reached)
        return;
    client->told = true;
    client->reached = reached;
    client->ops->reached(client->user, reached, reached ? "" : words);
}

static enum api_outcome outcome_of(long status)
{
    if (status >= 200 && status < 300)
        return API_DONE;
    switch (status) {
    case 404:
        return API_NOT_FOUND;
    case 409:
    case 422:
        return API_CONFLICT;
    case 410:
        return API_GONE;
    case 401:
    case 408:
    case 429:
        return API_AGAIN;
    default:
        return status >= 400 && status < 500 ? API_REFUSED : API_AGAIN;
    }
}

/* The words of a Status object, if it is one. */
static void error_words(const struct api_request *request, long status,
                        char words[ERROR_WORDS_BYTES_MAX])
{
    json_t *root = request->error ? json_loadb(request->error, request->error_len, 0, NULL) : NULL;
    const char *message = json_string_value(json_object_get(root, "message"));
    size_t len;

    len = (size_t)snprintf(words, ERROR_WORDS_BYTES_MAX, "HTTP status %ld%s", status,
                           message ? ": " : "");
    utf8_copy(words + len, ERROR_WORDS_BYTES_MAX - len, message ? message : "");
    json_decref(root);
}

static void request_free(struct api_request *request)
{
    TAILQ_REMOVE(&request->client->requests, request, entry);
    free((char *)request->call.path);
    free((char *)request->call.body);
    free(request->error);
    free(request);
}

static void end(struct api_request *request, const struct api_result *result)
{
    const struct api_ops *ops = request->ops;
    void *user = request->user;

    request_free(request);
    ops->done(user, result);
}

/* Whether it tells neither that the server is there nor that it is away; what is asked for next
 * does. Who ends what is idle is a balancer before it, mostly; and what is written may have waited
 * for webhooks until its time was over (k8s.io/apiserver pkg/endpoints/handlers/finisher). */
static bool is_no_word(const struct api_request *request, const struct transport_result *from)
{
    return from->torn || (from->status == 504 && strcmp(request->call.method, "GET") != 0);
}

static void on_done(void *user, const struct transport_result *from)
{
    struct api_request *request = user;
    struct api_client *client = request->client;
    /* An error counts, even if not all of its words have come. */
    long status = from->status ? from->status : request->error_status;
    struct api_result result = {.outcome = outcome_of(status),
                                .status = status,
                                .retry_after_ms = from->retry_after_ms,
                                .words = from->words,
                                .torn = from->torn};
    char words[ERROR_WORDS_BYTES_MAX];

    if (request->unusable)
        result.words = "an answer of no use";
    else if (status > 0 && result.outcome != API_DONE) {
        error_words(request, status, words);
        result.words = words;
    }
    if (status == 401)
        credentials_refused(client->credentials);
    /* A server that answers with an error is there, unless it says that it cannot. 500 is of what
     * was asked for: a webhook of it, or several budgets of a pod
     * (pkg/registry/core/pod/storage). */
    if (!request->unusable && !is_no_word(request, from))
        tell_reached(client, status > 0 && status != 401 && status <= 500, result.words);
    end(request, &result);
}

static bool on_body(void *user, long status, const char *bytes, size_t len)
{
    struct api_request *request = user;
    size_t room = ERROR_BYTES_MAX - request->error_len;

    if (status >= 200 && status < 300) {
        tell_reached(request->client, true, "");
        request->unusable = request->ops->body && !request->ops->body(request->user, bytes, len);
        return !request->unusable;
    }
    request->error_status = status;
    if (!request->error)
        request->error = must(malloc(ERROR_BYTES_MAX));
    memcpy(request->error + request->error_len, bytes, len < room ? len : room);
    request->error_len += len < room ? len : room;
    return len <= room;
}

/* ---- sending ---- */

static void send_one(struct api_request *request, const struct credentials_set *set)
{
    static const struct transport_ops ops = {.body = on_body, .done = on_done};

    request->sent = transport_start(request->client->transport, set, &request->call, &ops, request);
}

static void send_waiting(uv_timer_t *timer)
{
    struct api_client *client = timer->data;
    struct credentials_set set;
    const char *words;
    enum credentials_state state = credentials_look(client->credentials, &set, &words);
    struct requests waiting = TAILQ_HEAD_INITIALIZER(waiting);
    struct api_request *request, *next;
    char kept[ERROR_WORDS_BYTES_MAX];

    if (state == CREDENTIALS_PENDING)
        return;
    snprintf(kept, sizeof kept, "%s", words);
    for (request = TAILQ_FIRST(&client->requests); request; request = next) {
        next = TAILQ_NEXT(request, entry);
        if (request->sent)
            continue;
        if (state == CREDENTIALS_READY) {
            send_one(request, &set);
        } else { /* told one by one: who is told may cancel, or start, others */
            tell_reached(client, false, kept);
            end(request, &(struct api_result){.outcome = API_AGAIN, .words = kept});
            uv_timer_start(&client->timer, send_waiting, 0, 0);
            return;
        }
    }
}

static void on_credentials(void *user)
{
    struct api_client *client = user;

    uv_timer_start(&client->timer, send_waiting, 0, 0);
}

struct api_request *api_client_start(struct api_client *client, const struct transport_call *call,
                                     const struct api_ops *ops, void *user)
{
    struct api_request *request = must(calloc(1, sizeof *request));

    request->client = client;
    request->ops = ops;
    request->user = user;
    request->call = *call;
    request->call.path = must(strdup(call->path));
    request->call.body = call->body ? must(strdup(call->body)) : NULL;
    TAILQ_INSERT_TAIL(&client->requests, request, entry);
    uv_timer_start(&client->timer, send_waiting, 0, 0);
    return request;
}

void api_request_cancel(struct api_request *request)
{
    if (!request)
        return;
    transport_cancel(request->sent);
    request_free(request);
}

uint64_t api_client_server_boot_ms(const struct api_client *client)
{
    return transport_server_boot_ms(client->transport);
}

bool api_client_node(struct api_client *client, char name[NODE_NAME_BYTES_MAX], const char **words)
{
    return credentials_node(client->credentials, name, words);
}

/* ---- life ---- */

struct api_client *api_client_new(uv_loop_t *loop, const char *path, bool insecure,
                                  const struct api_client_ops *ops, void *user)
{
    static const struct credentials_ops credentials_ops = {.changed = on_credentials};
    struct api_client *client = must(calloc(1, sizeof *client));

    client->transport = transport_new(loop);
    if (!client->transport) {
        free(client);
        return NULL;
    }
    client->ops = ops;
    client->user = user;
    client->credentials = credentials_new(loop, path, insecure, &credentials_ops, client);
    TAILQ_INIT(&client->requests);
    uv_timer_init(loop, &client->timer);
    client->timer.data = client;
    return client;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void api_client_free(struct api_client *client)
{
    if (!client)
        return;
    while (!TAILQ_EMPTY(&client->requests))
        api_request_cancel(TAILQ_FIRST(&client->requests));
    transport_free(client->transport);
    credentials_free(client->credentials);
    uv_close((uv_handle_t *)&client->timer, on_closed);
}
