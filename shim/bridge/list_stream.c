#include "shim/bridge/list_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/bridge/limits.h"
#include "shim/log.h"

static void on_timer(uv_timer_t *timer)
{
    list_stream_update(timer->data);
}

void list_stream_init(struct list_stream *stream, uv_loop_t *loop, const char *resource,
                      const struct offer *offer, void (*changed)(void *user), void *user)
{
    *stream = (struct list_stream){
        .resource = resource, .offer = offer, .changed = changed, .user = user};
    uv_timer_init(loop, &stream->timer);
    stream->timer.data = stream;
}

void list_stream_open(struct list_stream *stream, struct kept_call *call, bool resumed)
{
    stream->call = call;
    stream->resumed = resumed;
}

struct list_note list_stream_noted(const struct kept_call *call)
{
    struct list_note note;

    memcpy(&note, kept_call_note(call), sizeof note);
    return note;
}

void list_stream_note(struct kept_call *call, const struct list_note *note)
{
    uint8_t bytes[KEPT_NOTE_BYTES] = {0};

    memcpy(bytes, note, sizeof *note);
    kept_call_set_note(call, bytes);
}

static void note_stored(const struct list_stream *stream, bool stored)
{
    struct list_note note = list_stream_noted(stream->call);

    if (note.stored == stored)
        return;
    note.stored = stored;
    list_stream_note(stream->call, &note);
}

static void wait_for(struct list_stream *stream, uint64_t ms)
{
    uv_timer_start(&stream->timer, on_timer, ms, 0);
}

/* How long a list that is not the stream's first must wait yet. */
static uint64_t wait_ms(const struct list_stream *stream)
{
    uint64_t age_ms = uv_now(stream->timer.loop) - stream->sent.at_ms;

    return stream->sent.health && age_ms < LIST_INTERVAL_MS ? LIST_INTERVAL_MS - age_ms : 0;
}

/* It is sent all the same: the kubelet at hand may take more. */
static void warn_if_large(struct list_stream *stream, size_t len)
{
    if (len <= KUBELET_LIST_BYTES_MAX || stream->told_large)
        return;
    log_warning("%s: its list has %zu bytes, and a kubelet takes no more than %u; it will end the "
                "stream",
                stream->resource, len, KUBELET_LIST_BYTES_MAX);
    stream->told_large = true;
}

/* The offer is what the kubelet has now: takes `health`. */
static void note_sent(struct list_stream *stream, uint8_t *health)
{
    const struct offer *offer = stream->offer;

    free(stream->sent.health);
    stream->sent.health = health;
    stream->sent.len = list_len(offer->list);
    stream->sent.devices = offer->devices;
    stream->sent.at_ms = uv_now(stream->timer.loop);
    stream->unstored++;
    stream->stored = false;
}

/* Whether the kubelet has it from a process before, and has stored it: only if it is sent again
 * does it tell of that again. */
static bool has_stored(const struct list_stream *stream, const struct packed *answer)
{
    return stream->resumed && list_stream_noted(stream->call).stored &&
           kept_call_sent(stream->call, answer->bytes, answer->len);
}

/* 0; 1: it was not necessary; or a negative errno. What is stored is the list before. */
static int send_with(struct list_stream *stream, const uint8_t *health)
{
    struct packed answer = {0};
    int err = list_answer(stream->offer->list, health, &answer);

    if (!err && has_stored(stream, &answer)) {
        packed_fini(&answer);
        return 1;
    }
    if (!err) {
        note_stored(stream, false);
        err = kept_call_send(stream->call, answer.bytes, answer.len);
    }
    if (!err)
        warn_if_large(stream, answer.len);
    packed_fini(&answer);
    return err;
}

/* Takes `health`; true if the kubelet has it now. */
static bool send_now(struct list_stream *stream, uint8_t *health)
{
    int err = send_with(stream, health);

    if (err >= 0) {
        note_sent(stream, health);
        stream->resumed = false;
        if (err > 0)
            list_stream_set_stored(stream);
        return true;
    }
    free(health);
    if (err != -EMSGSIZE)
        wait_for(stream, LIST_AGAIN_MS);
    else if (!stream->told_too_large)
        log_error("%s: its list of %zu devices is too large for the kubelet", stream->resource,
                  list_len(stream->offer->list));
    stream->told_too_large = stream->told_too_large || err == -EMSGSIZE;
    return false;
}

/* Sends the list if the kubelet does not have it, now or when its time has come; true if the
 * kubelet has it now. */
static bool bring(struct list_stream *stream)
{
    const struct offer *offer = stream->offer;
    size_t len = list_len(offer->list);
    uint8_t *health = malloc(len + 1);

    if (!health) {
        wait_for(stream, LIST_AGAIN_MS);
        return false;
    }
    list_health(offer->list, offer->masked, health);
    if (stream->sent.health && stream->sent.devices == offer->devices &&
        memcmp(stream->sent.health, health, len) == 0) {
        free(health);
        return true;
    }
    if (wait_ms(stream) == 0)
        return send_now(stream, health);
    free(health);
    wait_for(stream, wait_ms(stream));
    return false;
}

void list_stream_update(struct list_stream *stream)
{
    const struct offer *offer = stream->offer;
    bool has = stream->sent.health && stream->sent.devices == offer->devices &&
               stream->sent.seen == offer->health;

    if (!stream->call || !offer->list || (stream->resumed && !offer->version && !offer->masked))
        return;
    if (!has && kept_call_is_busy(stream->call)) {
        wait_for(stream, LIST_AGAIN_MS);
        return;
    }
    if (has || bring(stream)) {
        stream->sent.seen = offer->health;
        stream->version = offer->version;
    }
    stream->changed(stream->user);
}

void list_stream_forget_version(struct list_stream *stream)
{
    stream->version = 0;
}

void list_stream_set_stored(struct list_stream *stream)
{
    stream->stored = stream->sent.health;
    stream->unstored = 0;
    if (stream->stored)
        note_stored(stream, true);
}

void list_stream_clear(struct list_stream *stream)
{
    uv_timer_stop(&stream->timer);
    free(stream->sent.health);
    memset(&stream->sent, 0, sizeof stream->sent);
    stream->call = NULL;
    stream->resumed = false;
    stream->version = 0;
    stream->unstored = 0;
    stream->stored = false;
}

void list_stream_fini(struct list_stream *stream, uv_close_cb closed)
{
    list_stream_clear(stream);
    stream->timer.data = stream->user;
    uv_close((uv_handle_t *)&stream->timer, closed);
}
