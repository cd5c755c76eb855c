/*
 * The connection to the daemon's control socket, and calls on it, one after the other: each blocks
 * until its answer is there.
 */
#ifndef SHIM_CTL_CLIENT_H
#define SHIM_CTL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

/* How long one call may take. The daemon answers from memory. */
#define CLIENT_CALL_MS_MAX 10000

#define CLIENT_WORDS_BYTES_MAX 1280

/* Why there is no answer. */
struct client_failure {
    int code; /* an rpc_code; UNAVAILABLE also for a daemon that is not reached */
    char words[CLIENT_WORDS_BYTES_MAX]; /* one line, for people; "": there is nothing to say */
    bool unanswered; /* the daemon was asked, and may do what it was asked for yet */
};

/* False, with `failure` saying so. */
bool client_fail(struct client_failure *failure, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct client;

/* Connects when it is first asked, and again after a connection was lost. `path` borrowed. NULL:
 * out of memory. */
struct client *client_new(const char *path);
/* Accepts NULL. */
void client_free(struct client *client);

/* Lets go of the connection until it asks again: before a wait in which nobody answers the daemon's
 * pings, for which who is silent hangs (rpc_server_set_pings()). */
void client_rest(struct client *client);

/* The answer, for protobuf_c_message_free_unpacked(); NULL: none, and `failure` says why. */
ProtobufCMessage *client_ask(struct client *client, const char *method,
                             const ProtobufCMessage *request,
                             const ProtobufCMessageDescriptor *response,
                             struct client_failure *failure) __attribute__((warn_unused_result));

/* Calls `each` with every message of a server's stream, borrowed until it returns, until its end,
 * or until it returns false: it wants no more. `deadline_ms` 0: it may take as long as it likes,
 * and as somebody reads stdout (show_is_unread()). False: it did not end well, and `failure` says
 * why. */
bool client_listen(struct client *client, const char *method, const ProtobufCMessage *request,
                   const ProtobufCMessageDescriptor *response, uint64_t deadline_ms,
                   bool (*each)(void *user, const ProtobufCMessage *message), void *user,
                   struct client_failure *failure) __attribute__((warn_unused_result));

#endif
