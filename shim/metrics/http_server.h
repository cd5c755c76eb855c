/*
 * A small HTTP/1.1 server for those who watch the node: libmicrohttpd on our loop, without threads.
 *
 * GET and HEAD of paths that its owner knows; each answer is made whole when it is asked for.
 * Whoever is slow or hostile is bounded by the limits below: connections, the memory of each, and
 * their time without a byte. Who comes beyond that waits in the backlog.
 */
#ifndef SHIM_METRICS_HTTP_SERVER_H
#define SHIM_METRICS_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

/* Scrapers at once, and what libmicrohttpd keeps for each: head and answer's head. With an answer of
 * METRICS_BYTES_MAX for each that is 8 * (4 KiB + 256 KiB) = 2 MiB at the very most. */
#define HTTP_CONNECTIONS_MAX 8
#define HTTP_CONNECTION_BYTES_MAX 4096
#define HTTP_IDLE_S 10

struct http_server;

struct http_answer {
    unsigned status;
    const char *type; /* a literal */
    char *body;       /* malloc'ed; the server's from then on */
    size_t len;
};

struct http_server_ops {
    /* What is to be answered; false: there is no such path. From the loop. */
    bool (*get)(void *user, const char *path, struct http_answer *out);
};

/* Listens at `address` (config/listen_address.h), as long as it takes and as often as a socket's file
 * is removed (rpc/keeper.h): mode 0600. A socket that is bound to a unix path is made anew by each
 * process. `ops` and `user` are borrowed until http_server_stop(); `address` is copied. */
struct http_server *http_server_start(uv_loop_t *loop, const char *address,
                                      const struct http_server_ops *ops, void *user);

/* Ends all connections; frees it in a later turn of the loop. Accepts NULL. */
void http_server_stop(struct http_server *server);

#endif
