#include "shim/bridge/dra/health_streams.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "shim/boot_clock.h"
#include "shim/bridge/limits.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"

/* Field 1 of NodeWatchResourcesResponse, of a length: its devices. */
#define DEVICES_TAG 0x0a
/* The tag, and a varint of HEALTH_WORD_BYTES_MAX. */
#define HEAD_BYTES_MAX 3
_Static_assert(HEALTH_WORD_BYTES_MAX < 1 << 14, "its length is two bytes of a varint");

struct kubelet_stream {
    LIST_ENTRY(kubelet_stream) entry;
    struct health_streams *streams;
    struct kept_call *call;
    pid_t pid;       /* who has it */
    uint64_t number; /* of the last word that was sent */
    bool resumed;
};

/* ---- the message, of words as they are ---- */

/* That something holds no longer is for those that may have been told it. */
static bool is_for(const struct health_word *word, const struct kubelet_stream *stream,
                   uint64_t now_ms)
{
    return strcmp(word->driver, stream->streams->driver) == 0 &&
           health_word_is_fresh(word, now_ms) &&
           (!word->over || stream->number > 0 || stream->resumed);
}

static uint8_t *put(uint8_t *at, const struct health_word *word)
{
    *at++ = DEVICES_TAG;
    if (word->len >= 0x80)
        *at++ = (uint8_t)(0x80 | (word->len & 0x7f));
    *at++ = (uint8_t)(word->len >= 0x80 ? word->len >> 7 : word->len);
    memcpy(at, word->bytes, word->len);
    return at + word->len;
}

/* What the stream has not got, to be freed; NULL: nothing. */
static uint8_t *make_message(const struct kubelet_stream *stream, size_t *len)
{
    const struct health_streams *streams = stream->streams;
    const struct health_word *first = health_words_after(streams->words, stream->number), *word;
    uint64_t now_ms = boot_now_ms();
    size_t room = 0;
    uint8_t *message, *at;

    for (word = first; word; word = health_word_next(word))
        room += is_for(word, stream, now_ms) ? HEAD_BYTES_MAX + word->len : 0;
    if (room == 0)
        return NULL;
    at = message = must(malloc(room));
    for (word = first; word; word = health_word_next(word)) {
        if (is_for(word, stream, now_ms))
            at = put(at, word);
    }
    *len = (size_t)(at - message);
    return message;
}

/* ---- streams ---- */

static void stream_look(struct kubelet_stream *stream)
{
    uint64_t number = stream->streams->words->number;
    size_t len = 0;
    uint8_t *message;

    if (stream->number == number || kept_call_is_busy(stream->call))
        return;
    message = make_message(stream, &len);
    if (!message || kept_call_send(stream->call, message, len) == 0)
        stream->number = number;
    free(message);
}

static void stream_free(struct kubelet_stream *stream)
{
    LIST_REMOVE(stream, entry);
    stream->streams->len--;
    free(stream);
}

static void on_cancelled(void *user)
{
    stream_free(user);
}

static size_t count_of(const struct health_streams *streams, pid_t pid)
{
    const struct kubelet_stream *stream;
    size_t count = 0;

    LIST_FOREACH(stream, &streams->list, entry)
        count += stream->pid == pid;
    return count;
}

/* For one more of `pid`: the oldest ends of the process that has most of them, that one counted, so
 * that no process keeps another out. */
static void make_room(struct health_streams *streams, pid_t pid)
{
    struct kubelet_stream *stream, *found = NULL;
    struct kept_call *call;
    size_t most = 0;

    LIST_FOREACH(stream, &streams->list, entry) {
        size_t count = count_of(streams, stream->pid) + (stream->pid == pid);

        if (count < most)
            continue;
        found = stream;
        most = count;
    }
    assert(found);
    log_debug("driver %s: a stream of its health of pid %d ends for another", streams->driver,
              (int)found->pid);
    call = found->call;
    stream_free(found);
    kept_call_finish(call, RPC_RESOURCE_EXHAUSTED, "too many streams");
}

void health_streams_add(struct health_streams *streams, struct kept_call *call, bool resumed)
{
    struct kubelet_stream *stream = must(calloc(1, sizeof *stream));
    struct ucred peer;

    kept_call_peer(call, &peer);
    if (streams->len == STAND_IN_STREAMS_MAX)
        make_room(streams, peer.pid);
    stream->streams = streams;
    stream->call = call;
    stream->pid = peer.pid;
    stream->resumed = resumed;
    LIST_INSERT_HEAD(&streams->list, stream, entry);
    streams->len++;
    kept_call_on_cancel(call, on_cancelled, stream);
    stream_look(stream);
}

void health_streams_look(struct health_streams *streams)
{
    struct kubelet_stream *stream, *next;

    for (stream = LIST_FIRST(&streams->list); stream; stream = next) {
        next = LIST_NEXT(stream, entry);
        stream_look(stream);
    }
}

void health_streams_end(struct health_streams *streams)
{
    while (!LIST_EMPTY(&streams->list)) {
        struct kubelet_stream *stream = LIST_FIRST(&streams->list);
        struct kept_call *call = stream->call;

        stream_free(stream);
        kept_call_finish(call, RPC_OK, NULL);
    }
}

void health_streams_clear(struct health_streams *streams)
{
    while (!LIST_EMPTY(&streams->list))
        stream_free(LIST_FIRST(&streams->list));
}
