/*
 * A kubeconfig: where the API server is, and by whose credentials it is asked. Only its current
 * context. Files that it names are not read here (credentials.h); their paths are absolute, those
 * that were relative are relative to its own directory.
 */
#ifndef SHIM_AGENT_KUBECONFIG_H
#define SHIM_AGENT_KUBECONFIG_H

#include <stdbool.h>
#include <stddef.h>

#define KUBECONFIG_WORDS_BYTES_MAX 512

/* PEM, or any bytes; NULL: none. A NUL stands behind them, which does not count. */
struct kubeconfig_data {
    char *bytes;
    size_t len;
};

/* A credential plugin (client.authentication.k8s.io). */
struct kubeconfig_exec {
    char *command; /* NULL: there is none */
    char *api_version;
    char **args; /* without the command; NULL behind the last */
    char **env;  /* "NAME=value"; NULL behind the last */
    bool cluster_info;
};

/* Texts are NULL where there are none. Of a file and data the data count, as in client-go. */
struct kubeconfig {
    char *server; /* "https://...", without '/' at its end */
    char *tls_server_name;
    char *proxy_url;
    char *ca_file;
    struct kubeconfig_data ca;
    bool insecure; /* insecure-skip-tls-verify */
    char *certificate_file;
    struct kubeconfig_data certificate;
    char *key_file;
    struct kubeconfig_data key;
    char *token;
    char *token_file; /* counts before the token */
    struct kubeconfig_exec exec;
};

/* Reads the file's text. `path` is for relative paths. 0; or -1 with `words` filled, and `out`
 * untouched. The caller gives `out` to kubeconfig_fini(). No words have what authenticates. */
int kubeconfig_parse(const char *text, size_t len, const char *path, struct kubeconfig *out,
                     char words[KUBECONFIG_WORDS_BYTES_MAX]) __attribute__((warn_unused_result));

/* Accepts a zeroed struct. Overwrites what authenticates. */
void kubeconfig_fini(struct kubeconfig *config);

#endif
