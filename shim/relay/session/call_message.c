#include "shim/relay/session/call_message.h"

#include "shim/relay/frame.h"
#include "shim/relay/limits.h"
#include "shim/relay/session/stream.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"

size_t call_message_to_come(const struct buffer *b)
{
    size_t len = buffer_len(b);
    size_t whole = MESSAGE_HEAD_BYTES;

    if (len >= MESSAGE_HEAD_BYTES)
        whole += frame_read_u32(buffer_data(b) + 1);
    return whole > len ? whole - len : 0;
}

enum call_message_state call_message_measure(const struct buffer *b, size_t *bytes_out)
{
    const uint8_t *p = buffer_data(b);

    if (buffer_len(b) < MESSAGE_HEAD_BYTES)
        return CALL_MESSAGE_PARTIAL;
    *bytes_out = frame_read_u32(p + 1);
    if (*bytes_out > RELAY_MESSAGE_BYTES_MAX)
        return CALL_MESSAGE_TOO_LARGE;
    return buffer_len(b) - MESSAGE_HEAD_BYTES >= *bytes_out ? CALL_MESSAGE_WHOLE
                                                            : CALL_MESSAGE_PARTIAL;
}

int call_message_open(struct stream *st, const struct buffer *b, size_t bytes,
                      struct message_budget *room)
{
    const uint8_t *p = buffer_data(b);
    size_t len = MESSAGE_HEAD_BYTES + bytes;

    st->call.message = p + MESSAGE_HEAD_BYTES;
    st->call.message_bytes = bytes;
    if (p[0] == 0)
        return RPC_OK;
    if (st->encoding == MESSAGE_ENCODING_UNKNOWN)
        return RPC_UNIMPLEMENTED;
    if (p[0] > 1 || st->encoding != MESSAGE_GZIP)
        return RPC_INTERNAL;
    message_reader_init(&st->inflated, room);
    st->inflated.encoding = st->encoding;
    if (message_reader_feed(&st->inflated, &p, &len) != MESSAGE_READY)
        return st->inflated.fault_code == RPC_INTERNAL ? RPC_DATA_LOSS : st->inflated.fault_code;
    st->call.message = st->inflated.body;
    st->call.message_bytes = st->inflated.body_len;
    return RPC_OK;
}

void call_message_moved(struct stream *st)
{
    if (st->phase == STREAM_DECIDE && !st->inflated.budget)
        st->call.message = buffer_data(&st->queue) + MESSAGE_HEAD_BYTES;
}

void call_message_close(struct stream *st)
{
    if (st->inflated.budget)
        message_reader_fini(&st->inflated);
    st->inflated.budget = NULL;
    st->call.message = NULL;
    st->call.message_bytes = 0;
}
