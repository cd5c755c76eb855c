/*
 * A small HTTP/1.1 server for those who watch the node: libmicrohttpd on our loop, without threads.
 *
 * GET and HEAD of paths that its owner knows; each answer is made whole when it is asked for.
 * Whoever is slow or hostile is bounded by the limits below: connections, the memory of each, and
 * their time without a byte. Who comes beyond that waits in the backlog, where nobody waits for
 * ever: as long as all places are taken, the oldest connection ends when it is HTTP_FULL_MS old.
 */
#ifndef SHIM_METRICS_HTTP_SERVER_H
#define SHIM_METRICS_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

/* Scrapers at once, and what libmicrohttpd keeps for each: head and answer's head. A browser sends
 * the cookies of all that is on its "localhost", some KiB. With an answer of METRICS_BYTES_MAX for
 * each that is 8 * (16 KiB + 256 KiB), 2 MiB and a bit; with those of shim/page/limits.h 8 * 2 MiB
 * at the very most. */
#define HTTP_CONNECTIONS_MAX 8
#define HTTP_CONNECTION_BYTES_MAX (16 * 1024)
#define HTTP_IDLE_S 10
/* A scraper gives up after 10 s by default, and before it there may be as many who say nothing as
 * the backlog takes. Each answer is made whole when it is asked for, so that hardly any is under
 * way. */
#define HTTP_FULL_MS 1000
/* Who could not be taken, for want of descriptors, say, is tried again after so long. */
#define HTTP_AGAIN_MS 100

struct http_server;

/* One that has come, borrowed until get() returns. */
struct http_request {
    const char *path; /* without what is behind a '?' */
    const char *host; /* the Host field; "": there is none */

    /* private */
    const struct microhttpd *http;
    struct MHD_Connection *connection;
};

/* Calls `each` with what is behind the '?', before it returns, in order: "a=1&b" is ("a", "1"),
 * ("b", ""). Escapes are resolved; a text lives as long as the request. */
void http_request_arguments(const struct http_request *request,
                            void (*each)(void *user, const char *name, const char *value),
                            void *user);

struct http_header {
    const char *name, *value;
};

/* It is zeroed when it is asked for. */
struct http_answer {
    unsigned status;
    const char *type;    /* a literal */
    char *body;          /* malloc'ed; the server's from then on */
    const void *lasting; /* in place of it: lives as long as the process */
    size_t len;
    const struct http_header *headers; /* literals, up to one without a name; NULL: none */
    bool tagged; /* it has an ETag, and who says that he has it already is sent nothing (RFC 9110
                  * section 13.1.2) */
};

struct http_server_ops {
    /* What is to be answered; false: there is no such path. From the loop. */
    bool (*get)(void *user, const struct http_request *request, struct http_answer *out);
};

/* Listens at `address` (config/listen_address.h), as long as it takes and as often as a socket's
 * file is removed (rpc/keeper.h): mode 0600. A socket that is bound to a unix path is made anew by
 * each process. `ops` and `user` are borrowed until http_server_stop(); `address` is copied. */
struct http_server *http_server_start(uv_loop_t *loop, const char *address,
                                      const struct http_server_ops *ops, void *user);

/* Ends all connections; frees it in a later turn of the loop. Accepts NULL. */
void http_server_stop(struct http_server *server);

#endif
