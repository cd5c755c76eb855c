#include "shim/ctl/client.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "shim/ctl/show.h"
#include "shim/printable.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"

/* How often one that may listen as long as it likes looks whether anybody reads what it writes. */
#define LOOK_MS 1000

struct client {
    uv_loop_t loop;
    uv_timer_t look;
    const char *path;
    struct rpc_channel *channel;          /* NULL: to be opened */
    char lost[RPC_STATUS_TEXT_BYTES_MAX]; /* why the last one was lost; empty: it was not */
    bool connected;                       /* `channel` has been */
    bool done;                            /* the call is over */
    int code;
    char text[RPC_STATUS_TEXT_BYTES_MAX + 1];
    ProtobufCMessage *answer;
    bool (*each)(void *user, const ProtobufCMessage *message); /* of a stream; else NULL */
    void *each_user;
    bool enough; /* it wants no more */
};

bool client_fail(struct client_failure *failure, int code, const char *format, ...)
{
    va_list args;

    failure->code = code;
    va_start(args, format);
    vsnprintf(failure->words, sizeof failure->words, format, args);
    va_end(args);
    return false;
}

struct client *client_new(const char *path)
{
    struct client *client = calloc(1, sizeof *client);

    if (!client || uv_loop_init(&client->loop) != 0) {
        free(client);
        return NULL;
    }
    uv_timer_init(&client->loop, &client->look);
    client->look.data = client;
    client->path = path;
    return client;
}

static void hang_up(struct client *client)
{
    rpc_channel_close(client->channel);
    client->channel = NULL;
    uv_run(&client->loop, UV_RUN_DEFAULT);
}

void client_rest(struct client *client)
{
    hang_up(client);
}

void client_free(struct client *client)
{
    if (!client)
        return;
    uv_close((uv_handle_t *)&client->look, NULL);
    hang_up(client);
    uv_loop_close(&client->loop);
    free(client);
}

/* ---- what comes back ---- */

static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct client *client = user;

    (void)channel;
    snprintf(client->lost, sizeof client->lost, "%s", reason);
}

static void on_connected(struct rpc_channel *channel, void *user)
{
    (void)channel;
    ((struct client *)user)->connected = true;
}

static const struct rpc_channel_ops CHANNEL_OPS = {.connected = on_connected, .lost = on_lost};

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct client *client = user;

    (void)call;
    if (client->enough)
        return;
    if (client->each)
        client->enough = !client->each(client->each_user, message);
    else
        client->answer = message_copy(message);
}

static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct client *client = user;

    (void)call;
    client->done = true;
    client->code = status->code;
    snprintf(client->text, sizeof client->text, "%s", status->message);
}

static const struct rpc_call_ops CALL_OPS = {.message = on_message, .done = on_done};

static void on_look(uv_timer_t *timer)
{
    struct client *client = timer->data;

    client->enough = client->enough || show_is_unread();
}

/* ---- failures, in words ---- */

static void explain(const struct client *client, struct client_failure *failure)
{
    size_t size = sizeof failure->words;
    bool lost = *client->lost && client->code == RPC_UNAVAILABLE;

    failure->code = client->code;
    failure->unanswered = client->connected && (lost || client->code == RPC_DEADLINE_EXCEEDED);
    if (lost && strcmp(client->lost, uv_strerror(UV_EACCES)) == 0) {
        failure->code = RPC_PERMISSION_DENIED;
        snprintf(failure->words, size, "%s: permission denied; it is for root: try sudo",
                 client->path);
    } else if (lost) {
        snprintf(failure->words, size,
                 "cannot reach the daemon at %s: %s; see systemctl status cri-device-shim, and "
                 "--socket if control.socket in its settings is another",
                 client->path, client->lost);
    } else if (client->code == RPC_DEADLINE_EXCEEDED) {
        snprintf(failure->words, size,
                 "the daemon at %s has not answered within %d s; see systemctl status "
                 "cri-device-shim",
                 client->path, CLIENT_CALL_MS_MAX / 1000);
    } else if (client->code == RPC_UNIMPLEMENTED) {
        snprintf(failure->words, size,
                 "the daemon does not know this command: it is of another release than "
                 "cri-device-shimctl (compare status and --version)");
    } else if (client->code == RPC_PERMISSION_DENIED) {
        snprintf(failure->words, size, "the daemon refuses: %s; try sudo", client->text);
    } else {
        snprintf(failure->words, size, "%s", client->text);
    }
    make_printable(failure->words);
}

/* ---- asking ---- */

static bool connect_to(struct client *client)
{
    int err;

    if (client->channel)
        return true;
    client->lost[0] = '\0';
    client->connected = false;
    err = rpc_channel_open(&client->loop, client->path, &CHANNEL_OPS, client, &client->channel);
    if (err < 0)
        snprintf(client->lost, sizeof client->lost, "%s", uv_strerror(err));
    return err == 0;
}

/* Until its end, which is to come within `deadline_ms`; 0: whenever. */
static void call(struct client *client, const char *method, const ProtobufCMessage *request,
                 const ProtobufCMessageDescriptor *response, uint64_t deadline_ms)
{
    client->done = client->enough = false;
    client->code = RPC_UNAVAILABLE;
    client->text[0] = '\0';
    client->answer = NULL;
    if (!connect_to(client))
        return;
    if (!rpc_channel_call(client->channel, method, request, response, client->each != NULL,
                          deadline_ms, &CALL_OPS, client))
        snprintf(client->lost, sizeof client->lost, "%s", uv_strerror(UV_ENOMEM));
    if (client->each && deadline_ms == 0)
        uv_timer_start(&client->look, on_look, LOOK_MS, LOOK_MS);
    while (!client->done && !client->enough && !*client->lost && uv_run(&client->loop, UV_RUN_ONCE))
        continue;
    uv_timer_stop(&client->look);
    if (client->code == RPC_OK && !client->answer && !client->each) {
        client->code = RPC_RESOURCE_EXHAUSTED;
        snprintf(client->text, sizeof client->text, "out of memory");
    }
}

ProtobufCMessage *client_ask(struct client *client, const char *method,
                             const ProtobufCMessage *request,
                             const ProtobufCMessageDescriptor *response,
                             struct client_failure *failure)
{
    client->each = NULL;
    call(client, method, request, response, CLIENT_CALL_MS_MAX);
    if (client->code == RPC_OK && client->answer)
        return client->answer;
    if (client->answer)
        protobuf_c_message_free_unpacked(client->answer, NULL);
    client->answer = NULL;
    explain(client, failure);
    hang_up(client);
    return NULL;
}

bool client_listen(struct client *client, const char *method, const ProtobufCMessage *request,
                   const ProtobufCMessageDescriptor *response, uint64_t deadline_ms,
                   bool (*each)(void *user, const ProtobufCMessage *message), void *user,
                   struct client_failure *failure)
{
    client->each = each;
    client->each_user = user;
    call(client, method, request, response, deadline_ms);
    if (client->code == RPC_OK)
        return true;
    if (!client->enough)
        explain(client, failure);
    hang_up(client);
    return client->enough;
}
