/*
 * By what the API server is asked: a kubeconfig, the files that it names, and what its plugin
 * gives.
 *
 * All files are looked at before each request, and read again when one has changed; a rotation that
 * is half done (a key that does not fit its certificate) changes nothing yet. They are small and of
 * this machine: they are read at once, blocking.
 */
#ifndef SHIM_AGENT_CREDENTIALS_H
#define SHIM_AGENT_CREDENTIALS_H

#include <stdbool.h>

#include <uv.h>

#include "shim/agent/certificate.h"
#include "shim/agent/kubeconfig.h"

struct credentials;

/* Borrowed until the loop's next turn. Data have no bytes, and texts are NULL, where there are
 * none. */
struct credentials_set {
    const char *server;
    const char *tls_server_name;
    const char *proxy_url;
    bool insecure;
    struct kubeconfig_data ca, certificate, key;
    const char *token;
};

enum credentials_state {
    CREDENTIALS_READY,
    CREDENTIALS_PENDING, /* a plugin is at work, and what it gave before, if anything, is over or
                          * was refused; changed() follows */
    CREDENTIALS_BROKEN,  /* there are none, and words say why */
};

struct credentials_ops {
    /* PENDING is over. From the loop. */
    void (*changed)(void *user);
};

/* Of the kubeconfig at `path`; one that asks for no verification is broken unless `insecure`. All
 * is borrowed until the end. */
struct credentials *credentials_new(uv_loop_t *loop, const char *path, bool insecure,
                                    const struct credentials_ops *ops, void *user);
/* Frees it in later turns of the loop. Accepts NULL. */
void credentials_free(struct credentials *credentials);

/* What there is now; `*words`, with BROKEN, are borrowed until the next call. */
enum credentials_state credentials_look(struct credentials *credentials,
                                        struct credentials_set *set, const char **words);

/* The server did not know them: all is read, and a plugin asked, again, before the next use; a
 * plugin not more often than each EXEC_PLUGIN_AGAIN_MS. */
void credentials_refused(struct credentials *credentials);

/* The node's name by the client certificate. False: there is none, or it says none; or there are no
 * credentials. *words, borrowed until the next call, say why; "": a plugin is at work. */
bool credentials_node(struct credentials *credentials, char name[NODE_NAME_BYTES_MAX],
                      const char **words);

#endif
