#include "shim/kubelet/open_streams.h"

#include <stdlib.h>

#include "shim/must.h"

static void stream_free(struct open_stream *stream)
{
    LIST_REMOVE(stream, entry);
    stream->streams->len--;
    free(stream);
}

static void on_cancelled(void *user)
{
    stream_free(user);
}

bool open_streams_add(struct open_streams *streams, struct rpc_incoming *call)
{
    struct open_stream *stream;

    if (streams->len == OPEN_STREAMS_MAX) {
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too many watch already");
        return false;
    }
    stream = must(calloc(1, sizeof *stream));
    stream->streams = streams;
    stream->call = call;
    LIST_INSERT_HEAD(&streams->list, stream, entry);
    streams->len++;
    rpc_incoming_on_cancel(call, on_cancelled, stream);
    return true;
}

void open_streams_fini(struct open_streams *streams)
{
    while (!LIST_EMPTY(&streams->list))
        stream_free(LIST_FIRST(&streams->list));
}
