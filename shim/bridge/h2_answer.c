/* What goes to the client: see h2_state.h. */
#include "shim/bridge/h2_state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "shim/bridge/h2_put.h"

/* Bytes that have come are credited when they are so many. */
#define CREDIT_BYTES (1024 * 1024)
/* The most that a read makes us put: a PING of 17 bytes is answered with as many, a request, of 9
 * if there is nothing in it, with an RST_STREAM of 13; and a GOAWAY. What h2_pump() puts comes on
 * top of it. */
#define REACTION_BYTES_MAX (2 * KEPT_READ_BYTES_MAX)
/* A DATA frame, which is longer than the frames that begin or end a call. */
#define PUMPED_BYTES_MAX (H2_FRAME_HEAD_BYTES + H2_FRAME_BYTES_MAX)

static bool has_room_for(const struct kept_socket *kept, size_t bytes)
{
    return kept_socket_room(kept) >= REACTION_BYTES_MAX + bytes;
}

bool h2_has_room(const struct kept_socket *kept)
{
    return has_room_for(kept, 0);
}

static size_t data_bytes(const struct h2_state *state, const struct h2_stream *stream)
{
    int64_t n = (int64_t)stream->message_bytes - stream->message_put;

    if (n > H2_FRAME_BYTES_MAX)
        n = H2_FRAME_BYTES_MAX;
    if (n > state->window)
        n = state->window;
    if (n > stream->window)
        n = stream->window;
    return n > 0 ? (size_t)n : 0;
}

static bool put_data(struct kept_socket *kept, struct h2_state *state, struct h2_stream *stream)
{
    size_t n = data_bytes(state, stream);
    const uint8_t *message =
        n > 0 ? kept_socket_area(kept, 2 * (size_t)(stream - state->streams) + stream->place)
              : NULL;

    if (!message)
        return false;
    h2_put_head(kept, n, NGHTTP2_DATA, 0, stream->id);
    kept_socket_put(kept, message + stream->message_put, n);
    stream->message_put += (uint32_t)n;
    stream->window -= (int64_t)n;
    state->window -= (int64_t)n;
    return true;
}

/* And to a client that still sends, that nobody listens (RFC 9113 §8.1). */
static void put_end(struct kept_socket *kept, const struct h2_state *state,
                    struct h2_stream *stream)
{
    const struct h2_words *words = &state->words[stream - state->streams];

    h2_put_status(kept, stream->id, stream->code, words->text, !stream->headed);
    if (!stream->ended)
        h2_put_number(kept, NGHTTP2_RST_STREAM, stream->id, NGHTTP2_NO_ERROR);
    stream->phase = H2_NONE;
}

static bool credit(struct kept_socket *kept, uint32_t stream_id, uint32_t *received)
{
    if (*received < CREDIT_BYTES)
        return false;
    h2_put_number(kept, NGHTTP2_WINDOW_UPDATE, stream_id, *received);
    *received = 0;
    return true;
}

/* Whether something was put. */
static bool pump_stream(struct kept_socket *kept, struct h2_state *state, struct h2_stream *stream)
{
    if (stream->phase == H2_REQUEST)
        return credit(kept, stream->id, &stream->received);
    if (stream->phase != H2_ANSWERING && stream->phase != H2_FINISHED)
        return false;
    if (stream->message_bytes > 0 && !stream->headed) {
        h2_put_headers(kept, stream->id);
        stream->headed = true;
        return true;
    }
    if (stream->message_put < stream->message_bytes)
        return put_data(kept, state, stream);
    if (stream->phase != H2_FINISHED)
        return false;
    put_end(kept, state, stream);
    return true;
}

static bool pumps(struct kept_socket *kept, struct h2_state *state)
{
    bool any = credit(kept, 0, &state->received);

    for (size_t i = 0; i < H2_STREAMS_MAX; i++) {
        while (has_room_for(kept, PUMPED_BYTES_MAX) && pump_stream(kept, state, &state->streams[i]))
            any = true;
    }
    return any;
}

bool h2_pump(struct kept_socket *kept)
{
    struct h2_state *state;
    bool any;

    if (!has_room_for(kept, PUMPED_BYTES_MAX))
        return false;
    state = kept_socket_edit(kept);
    any = !state->over && pumps(kept, state);
    if (any)
        kept_socket_commit(kept);
    else
        kept_socket_abandon(kept);
    return any;
}

/* ---- a stream's answer ---- */

uint8_t *h2_place(struct kept_socket *kept, size_t i)
{
    const struct h2_state *state = kept_socket_state(kept);

    return kept_socket_area(kept, 2 * i + !state->streams[i].place);
}

void h2_answer(struct kept_socket *kept, size_t i, size_t bytes, bool finishes)
{
    struct h2_state *state = kept_socket_edit(kept);
    struct h2_stream *stream = &state->streams[i];

    assert(stream->message_put == stream->message_bytes && bytes <= H2_MESSAGE_BYTES_MAX);
    stream->phase = H2_ANSWERING;
    stream->place = !stream->place;
    stream->message_bytes = (uint32_t)bytes;
    stream->message_put = 0;
    if (finishes)
        h2_stream_finish(state, stream, RPC_OK, "");
    kept_socket_commit(kept);
}

void h2_finish(struct kept_socket *kept, size_t i, int code, const char *text)
{
    struct h2_state *state = kept_socket_edit(kept);

    h2_stream_finish(state, &state->streams[i], code, text);
    kept_socket_commit(kept);
}

void h2_note(struct kept_socket *kept, size_t i, const void *note)
{
    struct h2_state *state = kept_socket_edit(kept);

    memcpy(state->words[i].note, note, H2_NOTE_BYTES_MAX);
    kept_socket_commit(kept);
}
