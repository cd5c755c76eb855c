/*
 * HTTPS requests: libcurl's multi interface on the loop. One connection for all of them where the
 * server speaks HTTP/2, as the API server does; over HTTP/1.1 CONNECTIONS_MAX at most.
 *
 * No redirect is followed, no other protocol spoken, nothing kept of an answer.
 */
#ifndef SHIM_AGENT_TRANSPORT_H
#define SHIM_AGENT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "shim/agent/credentials.h"

struct transport;
struct transport_request;

struct transport_result {
    long status;             /* of HTTP; 0: there was no whole answer, and `words` say why */
    uint64_t retry_after_ms; /* the server's word; 0: none */
    const char *words;       /* borrowed until done() returns */
    bool torn;               /* status 0: a good answer had begun, whose connection has ended */
};

struct transport_ops {
    /* Some of the answer's body, borrowed until it returns; first nothing, when the answer's head
     * is there. False: enough of it, the request ends with status 0. `status` is the answer's. */
    bool (*body)(void *user, long status, const char *bytes, size_t len);
    /* It is over: once, from the loop, after which the request is gone. */
    void (*done)(void *user, const struct transport_result *result);
};

struct transport_call {
    const char *method;              /* a literal, "GET" */
    const char *path;                /* with its query; from '/' on */
    const char *content_type, *body; /* NULL: none */
    uint64_t timeout_ms;             /* until it must be over; 0: it need not end */
    /* Without a byte of an answer, after which it is over; 0: it may be silent. */
    unsigned silence_s;
};

/* What the server's clock showed, in milliseconds since 1970, when boot_now_ms() was 0: by the Date
 * of the last answer that had one, to some seconds. 0: none had. */
uint64_t transport_server_boot_ms(const struct transport *transport);

/* NULL: libcurl cannot be had, with a log line. */
struct transport *transport_new(uv_loop_t *loop);
/* Ends all requests without a callback; freed in later turns of the loop. Accepts NULL. */
void transport_free(struct transport *transport);

/* `set` and `call` are copied as far as they are needed later; `ops` and `user` are borrowed until
 * done(), or the cancel. What fails at once is told by done(), too. */
struct transport_request *transport_start(struct transport *transport,
                                          const struct credentials_set *set,
                                          const struct transport_call *call,
                                          const struct transport_ops *ops, void *user);

/* No callback follows. Accepts NULL. May be called from any callback. */
void transport_cancel(struct transport_request *request);

#endif
