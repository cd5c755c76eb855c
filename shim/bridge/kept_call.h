/*
 * A call that came on a kept connection (kept_connection.h), for who answers it. A process that
 * goes on with the connection is asked again what was not answered, and is told of streams that
 * were not ended: what is answered is answered once.
 */
#ifndef SHIM_BRIDGE_KEPT_CALL_H
#define SHIM_BRIDGE_KEPT_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <protobuf-c/protobuf-c.h>

struct kept_call;

/* A method's number is kept: another release has more of them, behind these. */
struct kept_method {
    const char *path;
    const ProtobufCMessageDescriptor *request;
    /* A call came with its one request message, borrowed until return; or, without one, NULL, a
     * stream on which a process before this has sent messages. Must end in kept_call_answer() or
     * kept_call_finish(), now or later. `user` is the server's. */
    void (*handle)(struct kept_call *call, const ProtobufCMessage *request, void *user);
};

/* As rpc_incoming_on_cancel(). */
void kept_call_on_cancel(struct kept_call *call, void (*cancelled)(void *user), void *user);

/* Credentials of the process that made the connection. */
void kept_call_peer(const struct kept_call *call, struct ucred *out);

/* Ends it with its one message, or with an error where that does not go. It is gone afterwards. */
void kept_call_answer(struct kept_call *call, const ProtobufCMessage *message);
/* There is no memory to answer it: as h2_reader_without_memory(). */
void kept_call_without_memory(const struct kept_call *call);
/* Ends it without a further message; `text` may be NULL. It is gone afterwards. */
void kept_call_finish(struct kept_call *call, int code, const char *text);

/* ---- of streams ---- */

/* One more message, packed; copied. 0; -EMSGSIZE: over RPC_MESSAGE_BYTES_MAX; -EAGAIN: the one
 * before is not taken yet; -ENOMEM. */
int kept_call_send(struct kept_call *call, const uint8_t *message, size_t len)
    __attribute__((warn_unused_result));
/* Whether a message would be -EAGAIN. */
bool kept_call_is_busy(const struct kept_call *call);
/* Whether the message that was sent last is that one. */
bool kept_call_sent(const struct kept_call *call, const uint8_t *message, size_t len);

/* What the answerer wants to know of it in the next process, KEPT_NOTE_BYTES; zero at first.
 * Another release's may be longer, its end zero in one that has less. */
#define KEPT_NOTE_BYTES 64
const void *kept_call_note(const struct kept_call *call);
void kept_call_set_note(struct kept_call *call, const void *note);

#endif
