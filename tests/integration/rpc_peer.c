/*
 * Our gRPC layer as a program, for test_rpc_peer.py.
 *
 *   rpc_peer call SOCKET PATH unary|stream DEADLINE_MS [CANCEL_AFTER]
 *       Calls PATH with a RegisterRequest and prints "message DEVICES FIRST_ID" for each
 *       ListAndWatchResponse, then "done CODE TEXT"; "cancelled" after CANCEL_AFTER messages.
 *   rpc_peer serve SOCKET
 *       Prints "listening", serves the methods below and ends at the end of its input.
 *
 * Status 0 only if the loop could be closed with nothing left on it.
 */
#include <assert.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "shim/rpc/rpc.h"

/* ---- client ---- */

struct caller {
    struct rpc_channel *channel;
    unsigned messages;
    unsigned cancel_after;
};

static void print_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__ListAndWatchResponse *list = (const V1beta1__ListAndWatchResponse *)message;
    struct caller *caller = user;

    printf("message %zu %s\n", list->n_devices, list->n_devices ? list->devices[0]->id : "-");
    if (++caller->messages == caller->cancel_after) {
        rpc_call_cancel(call);
        printf("cancelled\n");
        rpc_channel_close(caller->channel);
    }
}

static void print_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct caller *caller = user;

    (void)call;
    printf("done %s %s\n", rpc_code_name(status->code), status->message);
    rpc_channel_close(caller->channel);
}

static int call_once(uv_loop_t *loop, char **args, int count)
{
    static const struct rpc_channel_ops channel_ops = {0};
    static const struct rpc_call_ops call_ops = {print_message, print_done};
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    struct caller caller = {.cancel_after = count > 4 ? (unsigned)atoi(args[4]) : 0};

    request.resource_name = (char *)"example.com/widget";
    if (rpc_channel_open(loop, args[0], &channel_ops, NULL, &caller.channel))
        return 1;
    if (!rpc_channel_call(
            caller.channel, args[1], &request.base, &v1beta1__list_and_watch_response__descriptor,
            strcmp(args[2], "stream") == 0, (uint64_t)atoll(args[3]), &call_ops, &caller))
        return 1;
    uv_run(loop, UV_RUN_DEFAULT);
    return 0;
}

/* ---- server ---- */

static int send_list(struct rpc_incoming *call, size_t devices, const char *id)
{
    V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__Device device = V1BETA1__DEVICE__INIT;
    V1beta1__Device **all = calloc(devices + 1, sizeof *all);
    int err;

    device.id = (char *)id;
    device.health = (char *)"Healthy";
    for (size_t i = 0; i < devices; i++)
        all[i] = &device;
    list.n_devices = devices;
    list.devices = all;
    err = rpc_incoming_send(call, &list.base);
    free(all);
    return err;
}

/* One list whose only device is the request's resource. */
static void echo(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__RegisterRequest *request = (const V1beta1__RegisterRequest *)message;

    (void)user;
    if (send_list(call, 1, request->resource_name))
        abort();
    rpc_incoming_finish(call, RPC_OK, NULL);
}

/* The code is in `version`, the text in `endpoint`. */
static void fail(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__RegisterRequest *request = (const V1beta1__RegisterRequest *)message;

    (void)user;
    rpc_incoming_finish(call, atoi(request->version), request->endpoint);
}

/* Lists of 0, 1, 2, … devices, `version` of them. */
static void stream(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__RegisterRequest *request = (const V1beta1__RegisterRequest *)message;
    size_t count = (size_t)atoi(request->version);

    (void)user;
    for (size_t i = 0; i < count; i++) {
        if (send_list(call, i, request->resource_name))
            abort();
    }
    rpc_incoming_finish(call, RPC_OK, NULL);
}

/* One list of `version` devices. */
static void large(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__RegisterRequest *request = (const V1beta1__RegisterRequest *)message;

    (void)user;
    if (send_list(call, (size_t)atoi(request->version), request->resource_name))
        abort();
    rpc_incoming_finish(call, RPC_OK, NULL);
}

static void print_cancelled(void *user)
{
    (void)user;
    printf("cancelled\n");
}

/* One list, and then nothing until the client goes. */
static void hang(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    (void)message;
    (void)user;
    rpc_incoming_on_cancel(call, print_cancelled, NULL);
    if (send_list(call, 1, "hanging"))
        abort();
}

static const struct rpc_method methods[] = {
    {"/test.Peer/Echo", &v1beta1__register_request__descriptor, echo},
    {"/test.Peer/Fail", &v1beta1__register_request__descriptor, fail},
    {"/test.Peer/Stream", &v1beta1__register_request__descriptor, stream},
    {"/test.Peer/Large", &v1beta1__register_request__descriptor, large},
    {"/test.Peer/Hang", &v1beta1__register_request__descriptor, hang},
};

static void give_buffer(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    static char bytes[64];

    (void)handle;
    (void)size;
    *buf = uv_buf_init(bytes, sizeof bytes);
}

static void input_came(uv_stream_t *input, ssize_t n, const uv_buf_t *buf)
{
    (void)buf;
    if (n >= 0)
        return;
    rpc_server_close(input->data);
    uv_close((uv_handle_t *)input, NULL);
}

static int serve(uv_loop_t *loop, const char *path)
{
    const struct socket_place place = {.name = path};
    struct rpc_server *server;
    uv_pipe_t input;
    int err =
        rpc_server_new(loop, &place, methods, sizeof methods / sizeof *methods, NULL, &server);

    if (!err)
        err = rpc_server_listen(server);
    if (err < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(-err));
        return 1;
    }
    uv_pipe_init(loop, &input, 0);
    input.data = server;
    if (uv_pipe_open(&input, 0) || uv_read_start((uv_stream_t *)&input, give_buffer, input_came))
        return 1;
    printf("listening\n");
    uv_run(loop, UV_RUN_DEFAULT);
    return 0;
}

int main(int argc, char **argv)
{
    uv_loop_t loop;
    int err = 2;

    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (uv_loop_init(&loop))
        return 1;
    if (argc >= 6 && strcmp(argv[1], "call") == 0)
        err = call_once(&loop, argv + 2, argc - 2);
    else if (argc == 3 && strcmp(argv[1], "serve") == 0)
        err = serve(&loop, argv[2]);
    return err ? err : uv_loop_close(&loop) != 0;
}
