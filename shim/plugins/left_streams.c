#include "shim/plugins/left_streams.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cri-proto/methods.h"
#include "shim/must.h"
#include "shim/plugins/limits.h"
#include "shim/rpc/message.h"
#include "shim/rpc/unix_socket.h"

/* Its name is "plugin/STREAM/WHEN/PATH": there may be several of one plugin. */
#define STORED "plugin/"

const char LEFT_STREAMS_READER[] = "cri-device-shim goes on with streams of plugins SHLEFT01";

struct left_stream {
    LIST_ENTRY(left_stream) entry;
    struct left_streams *set;
    char *name;
    const char *path; /* in it */
    pid_t pid;        /* who serves it; 0: not known */
    struct message_budget budget;
    struct rpc_channel *channel;
};

struct left_streams {
    uv_loop_t *loop;
    struct fd_store *store;
    size_t *shared;
    const struct left_streams_ops *ops;
    void *user;
    LIST_HEAD(, left_stream) streams;
};

static void stream_free(struct left_stream *stream)
{
    LIST_REMOVE(stream, entry);
    rpc_channel_close(stream->channel);
    free(stream->name);
    free(stream);
}

static void on_list(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const struct left_stream *stream = user;

    (void)call;
    stream->set->ops->list(stream->set->user, stream->path, stream->pid,
                           (const V1beta1__ListAndWatchResponse *)message);
}

/* The manager has the connection, too. */
static void stream_over(struct left_stream *stream)
{
    int fd = stream->channel ? rpc_channel_fd(stream->channel) : -1;

    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
    fd_store_remove(stream->set->store, stream->name);
    stream_free(stream);
}

static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    (void)call;
    (void)status;
    stream_over(user);
}

/* The path in the name, and the stream; NULL: it is none of ours. */
static const char *read_name(const char *name, int32_t *stream_id)
{
    char *end;
    long number = strtol(name + strlen(STORED), &end, 10);

    if (number <= 0 || number > INT32_MAX || *end != '/')
        return NULL;
    *stream_id = (int32_t)number;
    return strchr(end + 1, '/');
}

/* Whether there is a call on it then; it takes the descriptor. */
static bool resume(struct left_stream *stream, int fd, int32_t stream_id)
{
    static const struct rpc_channel_ops channel_ops = {0};
    static const struct rpc_call_ops call_ops = {.message = on_list, .done = on_done};
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;

    if (rpc_channel_open_fd(stream->set->loop, fd, &channel_ops, stream, &stream->channel) < 0) {
        stream->channel = NULL;
        return false;
    }
    rpc_channel_set_budget(stream->channel, &stream->budget);
    return rpc_channel_resume(stream->channel, stream_id, DEVICEPLUGIN_LIST_AND_WATCH, &empty.base,
                              &v1beta1__list_and_watch_response__descriptor, &call_ops, stream);
}

static bool are_enough(const struct left_streams *left, const char *path)
{
    const struct left_stream *stream;
    size_t n = 0;

    LIST_FOREACH(stream, &left->streams, entry) {
        n += strcmp(stream->path, path) == 0;
    }
    return n == LEFT_STREAMS_MAX;
}

static void take(struct left_streams *left, int fd, const char *name)
{
    struct left_stream *stream;
    struct ucred peer;
    int32_t stream_id;
    const char *path = read_name(name, &stream_id);

    if (!path || are_enough(left, path)) {
        shutdown(fd, SHUT_RDWR);
        close(fd);
        fd_store_remove(left->store, name);
        return;
    }
    stream = must(calloc(1, sizeof *stream));
    stream->set = left;
    stream->name = must(strdup(name));
    stream->path = stream->name + (path - name);
    stream->pid = unix_peer(fd, &peer) == 0 ? peer.pid : 0;
    stream->budget =
        (struct message_budget){.left = PLUGIN_RECEIVED_BYTES_MAX, .shared = left->shared};
    LIST_INSERT_HEAD(&left->streams, stream, entry);
    if (!resume(stream, fd, stream_id))
        stream_over(stream);
}

struct left_streams *left_streams_new(uv_loop_t *loop, struct fd_store *store, size_t *shared,
                                      const struct left_streams_ops *ops, void *user)
{
    struct left_streams *left = must(calloc(1, sizeof *left));
    const char *name;
    int fd;

    *left = (struct left_streams){
        .loop = loop, .store = store, .shared = shared, .ops = ops, .user = user};
    while ((fd = fd_store_take(store, STORED, &name)) >= 0)
        take(left, fd, name);
    return left;
}

void left_streams_free(struct left_streams *left)
{
    while (!LIST_EMPTY(&left->streams))
        stream_free(LIST_FIRST(&left->streams));
    free(left);
}

bool left_streams_end(struct left_streams *left, const char *path)
{
    struct left_stream *stream, *next;
    bool any = false;

    for (stream = LIST_FIRST(&left->streams); stream; stream = next) {
        next = LIST_NEXT(stream, entry);
        if (path && strcmp(stream->path, path) != 0)
            continue;
        stream_over(stream);
        any = true;
    }
    return any;
}

static bool fits_name(const char *path)
{
    while (*path > ' ' && *path < 0x7f && *path != ':')
        path++;
    return *path == '\0';
}

int left_streams_put(struct left_streams *left, const char *path, const struct rpc_call *call,
                     char **name)
{
    char text[FD_STORE_NAME_BYTES_MAX + 1];
    int32_t stream_id;
    int fd = rpc_call_stream(call, &stream_id), r;
    int len = snprintf(text, sizeof text, STORED "%" PRId32 "/%" PRIu64 "%s", stream_id,
                       uv_hrtime(), path);

    if (fd < 0 || len >= (int)sizeof text || !fits_name(path))
        return fd < 0 ? fd : -ENAMETOOLONG;
    r = fd_store_put(left->store, text, fd);
    if (r == 0)
        *name = must(strdup(text));
    return r;
}

void left_streams_forget(struct left_streams *left, const char *name)
{
    fd_store_remove(left->store, name);
}
