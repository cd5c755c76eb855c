/*
 * Requests to the API server: with the credentials of now, and told by what is to be done next.
 */
#ifndef SHIM_AGENT_API_CLIENT_H
#define SHIM_AGENT_API_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "shim/agent/certificate.h"
#include "shim/agent/limits.h"
#include "shim/agent/transport.h"

struct api_client;
struct api_request;

enum api_outcome {
    API_DONE,      /* 2xx, and the whole of the answer has come */
    API_NOT_FOUND, /* 404 */
    API_CONFLICT,  /* 409 and 422: it is no more as it was taken to be */
    API_GONE,      /* 410: what was to be gone on from is too old */
    API_REFUSED,   /* 403, and 4xx else: final as long as nothing changes there */
    API_AGAIN,     /* no answer, 401, 429, 5xx, or credentials that are not there */
};

struct api_result {
    enum api_outcome outcome;
    long status;             /* of HTTP; 0: no answer */
    uint64_t retry_after_ms; /* 0: the server does not say */
    const char *words;       /* why; for people; borrowed until done() returns */
    bool torn;               /* transport.h: nothing is said by it of the server */
};

struct api_ops {
    /* Some of a good answer (2xx), borrowed until it returns; first nothing, when it begins. False:
     * it cannot be of use, and the request ends with API_AGAIN. NULL: it is not needed. */
    bool (*body)(void *user, const char *bytes, size_t len);
    /* Once, from the loop, after which the request is gone. */
    void (*done)(void *user, const struct api_result *result);
};

struct api_client_ops {
    /* Whether the server answers has changed; `words`: why not, or "". From the loop. */
    void (*reached)(void *user, bool reached, const char *words);
};

/* By the kubeconfig at `path`; see credentials_new(). NULL: libcurl is not to be had. */
struct api_client *api_client_new(uv_loop_t *loop, const char *path, bool insecure,
                                  const struct api_client_ops *ops, void *user);
/* Ends all requests without a callback. Accepts NULL. */
void api_client_free(struct api_client *client);

/* credentials_node(). */
bool api_client_node(struct api_client *client, char name[NODE_NAME_BYTES_MAX], const char **words);

/* transport_server_boot_ms(). */
uint64_t api_client_server_boot_ms(const struct api_client *client);

/* `call` is copied. `ops` and `user` are borrowed until done(), or the cancel. */
struct api_request *api_client_start(struct api_client *client, const struct transport_call *call,
                                     const struct api_ops *ops, void *user);
/* No callback follows. Accepts NULL. Not from its own body(), which returns false instead. */
void api_request_cancel(struct api_request *request);

#endif
