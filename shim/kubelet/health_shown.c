#include "shim/kubelet/health_shown.h"

#include <stdlib.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "shim/boot_clock.h"
#include "shim/must.h"

/* For the status of pods. */
#define OVER "its driver is away, or says no more of its health"

void health_shown_init(struct health_shown *shown)
{
    *shown = (struct health_shown){0};
    health_words_init(&shown->words);
}

void health_shown_say(struct health_shown *shown, const char *driver, uint64_t instance,
                      const DraHealth__V1alpha1__NodeWatchResourcesResponse *health)
{
    uint64_t now_ms = boot_now_ms();

    if (!health)
        health_words_end(&shown->words, driver, instance, now_ms, OVER);
    for (size_t i = 0; health && i < health->n_devices; i++)
        health_words_say(&shown->words, driver, instance, now_ms, health->devices[i]);
}

/* ---- streams ---- */

bool health_shown_add(struct health_shown *shown, struct rpc_incoming *call)
{
    return open_streams_add(&shown->streams, call);
}

/* ---- the message ---- */

/* What it points to is the word's. */
static void add(Bridge__V1__WatchHealthResponse *message, const struct health_word *word)
{
    Bridge__V1__DeviceHealth *out = must(malloc(sizeof *out));

    bridge__v1__device_health__init(out);
    out->driver = (char *)(uintptr_t)word->driver;
    out->said_ms = word->said_ms;
    out->over = word->over;
    out->health = (ProtobufCBinaryData){.len = word->len, .data = word->bytes};
    message->devices =
        must(realloc(message->devices, (message->n_devices + 1) * sizeof *message->devices));
    message->devices[message->n_devices++] = out;
}

static void message_fini(Bridge__V1__WatchHealthResponse *message)
{
    for (size_t i = 0; i < message->n_devices; i++)
        free(message->devices[i]);
    free(message->devices);
}

/* Words from `word` on, as many as one message takes; returns the number of the last. */
static uint64_t fill(Bridge__V1__WatchHealthResponse *message, const struct health_word *word,
                     uint64_t now_ms)
{
    uint64_t number = 0;
    size_t bytes = 0;

    for (; word && bytes < HEALTH_SHOWN_MESSAGE_BYTES; word = health_word_next(word)) {
        number = word->number;
        if (!health_word_is_fresh(word, now_ms))
            continue;
        add(message, word);
        bytes += word->len;
    }
    return number;
}

/* False: it does not take all of it now. */
static bool stream_update(const struct health_shown *shown, struct open_stream *stream,
                          uint64_t now_ms)
{
    const struct health_word *word;
    bool sent = true;

    while (sent && (word = health_words_after(&shown->words, stream->sent))) {
        Bridge__V1__WatchHealthResponse message = BRIDGE__V1__WATCH_HEALTH_RESPONSE__INIT;
        uint64_t number = fill(&message, word, now_ms);

        sent = message.n_devices == 0 ||
               (rpc_incoming_queued(stream->call) <= HEALTH_SHOWN_QUEUED_BYTES_MAX &&
                rpc_incoming_send(stream->call, &message.base) == 0);
        if (sent)
            stream->sent = number;
        message_fini(&message);
    }
    return sent;
}

bool health_shown_update(struct health_shown *shown)
{
    uint64_t now_ms = boot_now_ms();
    struct open_stream *stream;
    bool all = true;

    LIST_FOREACH(stream, &shown->streams.list, entry) {
        if (!stream_update(shown, stream, now_ms))
            all = false;
    }
    return all;
}

void health_shown_fini(struct health_shown *shown)
{
    open_streams_fini(&shown->streams);
    health_words_fini(&shown->words);
}
