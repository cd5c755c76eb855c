#include "shim/agent/kubeconfig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <yaml.h>

#include "shim/must.h"

/* Arguments and variables of a plugin. */
#define ELEMENTS_MAX 256

struct reader {
    yaml_document_t document;
    const char *dir; /* of the file, with '/' at its end */
    char *words;
    bool wrong;
};

static void refuse(struct reader *r, const char *what, const char *name)
{
    if (!r->wrong)
        snprintf(r->words, KUBECONFIG_WORDS_BYTES_MAX, "%s%s%s", what, name ? " " : "",
                 name ? name : "");
    r->wrong = true;
}

/* ---- nodes ---- */

static bool node_is(const yaml_node_t *node, const char *text)
{
    return node && node->type == YAML_SCALAR_NODE && node->data.scalar.length == strlen(text) &&
           memcmp(node->data.scalar.value, text, node->data.scalar.length) == 0;
}

/* NULL: there is none, or `map` is none. */
static yaml_node_t *get(struct reader *r, yaml_node_t *map, const char *key)
{
    if (!map || map->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top;
         pair++) {
        if (node_is(yaml_document_get_node(&r->document, pair->key), key))
            return yaml_document_get_node(&r->document, pair->value);
    }
    return NULL;
}

static size_t elements(const yaml_node_t *list)
{
    if (!list || list->type != YAML_SEQUENCE_NODE)
        return 0;
    return (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
}

static yaml_node_t *element(struct reader *r, yaml_node_t *list, size_t i)
{
    return yaml_document_get_node(&r->document, list->data.sequence.items.start[i]);
}

static bool is_null(const yaml_node_t *node)
{
    return !node || node_is(node, "") || node_is(node, "null") || node_is(node, "~");
}

/* A copy; NULL: none, or empty. */
static char *text_of(struct reader *r, yaml_node_t *map, const char *key)
{
    const yaml_node_t *node = get(r, map, key);
    const char *bytes;

    if (is_null(node))
        return NULL;
    bytes = (const char *)node->data.scalar.value;
    if (node->type != YAML_SCALAR_NODE || strlen(bytes) != node->data.scalar.length) {
        refuse(r, "no text:", key);
        return NULL;
    }
    return must(strdup(bytes));
}

/* Behind the file's directory; `path` is taken. */
static char *in_dir(const struct reader *r, char *path)
{
    char *whole = must(malloc(strlen(r->dir) + strlen(path) + 1));

    strcpy(stpcpy(whole, r->dir), path);
    free(path);
    return whole;
}

static char *path_of(struct reader *r, yaml_node_t *map, const char *key)
{
    char *path = text_of(r, map, key);

    return path && path[0] != '/' ? in_dir(r, path) : path;
}

static bool flag_of(struct reader *r, yaml_node_t *map, const char *key)
{
    const yaml_node_t *node = get(r, map, key);

    if (!is_null(node) && !node_is(node, "true") && !node_is(node, "false"))
        refuse(r, "neither true nor false:", key);
    return node_is(node, "true");
}

/* Go's decoder, and so client-go, looks over them. */
static void drop_line_ends(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        if (*from != '\r' && *from != '\n')
            *to++ = *from;
    }
    *to = '\0';
}

/* base64 (RFC 4648), with its padding. */
static struct kubeconfig_data data_of(struct reader *r, yaml_node_t *map, const char *key)
{
    struct kubeconfig_data data = {0};
    char *text = text_of(r, map, key);
    size_t whole, len;
    int bytes = -1;

    if (!text)
        return data;
    whole = strlen(text);
    drop_line_ends(text);
    len = strlen(text);
    data.bytes = must(calloc(1, len / 4 * 3 + 4));
    if (len > 0 && len % 4 == 0)
        bytes = EVP_DecodeBlock((unsigned char *)data.bytes, (unsigned char *)text, (int)len);
    if (bytes < 0) {
        refuse(r, "no base64:", key);
        bytes = 0;
    } else {
        bytes -= (text[len - 1] == '=') + (text[len - 2] == '='); /* it decodes that as zeros */
        data.bytes[bytes] = '\0';
    }
    data.len = (size_t)bytes;
    OPENSSL_cleanse(text, whole);
    free(text);
    return data;
}

/* ---- parts ---- */

/* The element of `list` with that name, and in it what is called `inner`. */
static yaml_node_t *named(struct reader *r, yaml_node_t *root, const char *list, const char *name,
                          const char *inner)
{
    yaml_node_t *all = get(r, root, list);

    for (size_t i = 0; i < elements(all); i++) {
        yaml_node_t *one = element(r, all, i);

        if (node_is(get(r, one, "name"), name))
            return get(r, one, inner);
    }
    return NULL;
}

static void read_cluster(struct reader *r, yaml_node_t *cluster, struct kubeconfig *out)
{
    size_t len;

    out->server = text_of(r, cluster, "server");
    out->tls_server_name = text_of(r, cluster, "tls-server-name");
    out->proxy_url = text_of(r, cluster, "proxy-url");
    out->ca_file = path_of(r, cluster, "certificate-authority");
    out->ca = data_of(r, cluster, "certificate-authority-data");
    out->insecure = flag_of(r, cluster, "insecure-skip-tls-verify");
    if (!out->server) {
        refuse(r, "the current context's cluster has no server", NULL);
        return;
    }
    len = strlen(out->server);
    while (len > 0 && out->server[len - 1] == '/')
        out->server[--len] = '\0';
    if (strncmp(out->server, "https://", 8) != 0 || len == 8)
        refuse(r, "the server's address does not begin with https://", NULL);
}

static char **texts_of(struct reader *r, yaml_node_t *map, const char *key)
{
    yaml_node_t *list = get(r, map, key);
    size_t len = elements(list);
    char **out = must(calloc(len + 1, sizeof *out));

    if (len > ELEMENTS_MAX || (!is_null(list) && list->type != YAML_SEQUENCE_NODE)) {
        refuse(r, "no list of texts:", key);
        return out;
    }
    for (size_t i = 0; i < len; i++) {
        const yaml_node_t *one = element(r, list, i);

        out[i] = must(strdup(one->type == YAML_SCALAR_NODE ? (char *)one->data.scalar.value : ""));
    }
    return out;
}

static char **variables_of(struct reader *r, yaml_node_t *exec)
{
    yaml_node_t *list = get(r, exec, "env");
    size_t len = elements(list), n = 0;
    char **out = must(calloc(len + 1, sizeof *out));

    if (len > ELEMENTS_MAX) {
        refuse(r, "too many variables:", "env");
        return out;
    }
    for (size_t i = 0; i < len; i++) {
        char *name = text_of(r, element(r, list, i), "name");
        char *value = text_of(r, element(r, list, i), "value");

        if (name && asprintf(&out[n++], "%s=%s", name, value ? value : "") < 0)
            abort();
        free(name);
        free(value);
    }
    return out;
}

static void read_exec(struct reader *r, yaml_node_t *exec, struct kubeconfig_exec *out)
{
    if (is_null(exec))
        return;
    out->command = text_of(r, exec, "command");
    out->api_version = text_of(r, exec, "apiVersion");
    out->args = texts_of(r, exec, "args");
    out->env = variables_of(r, exec);
    out->cluster_info = flag_of(r, exec, "provideClusterInfo");
    if (!out->command)
        refuse(r, "the user's exec has no command", NULL);
    else if (strchr(out->command, '/') && out->command[0] != '/')
        out->command = in_dir(r, out->command);
    if (!out->api_version ||
        (strcmp(out->api_version, "client.authentication.k8s.io/v1") != 0 &&
         strcmp(out->api_version, "client.authentication.k8s.io/v1beta1") != 0))
        refuse(r,
               "the user's exec is of another apiVersion than v1 and v1beta1 of "
               "client.authentication.k8s.io",
               NULL);
}

static void read_user(struct reader *r, yaml_node_t *user, struct kubeconfig *out)
{
    out->certificate_file = path_of(r, user, "client-certificate");
    out->certificate = data_of(r, user, "client-certificate-data");
    out->key_file = path_of(r, user, "client-key");
    out->key = data_of(r, user, "client-key-data");
    out->token = text_of(r, user, "token");
    out->token_file = path_of(r, user, "tokenFile");
    if (out->token && strpbrk(out->token, "\r\n")) /* it goes into a header */
        refuse(r, "the user's token has the end of a line in it", NULL);
    read_exec(r, get(r, user, "exec"), &out->exec);
    if (!is_null(get(r, user, "auth-provider")) || !is_null(get(r, user, "username")))
        refuse(r, "the user has neither a certificate, a token nor exec, but something older",
               NULL);
    if (!(out->certificate_file || out->certificate.bytes) != !(out->key_file || out->key.bytes))
        refuse(r, "the user has a certificate or a key, but not both", NULL);
}

static void read_root(struct reader *r, struct kubeconfig *out)
{
    yaml_node_t *root = yaml_document_get_root_node(&r->document), *context;
    char *current = text_of(r, root, "current-context"), *cluster, *user;

    context = current ? named(r, root, "contexts", current, "context") : NULL;
    cluster = text_of(r, context, "cluster");
    user = text_of(r, context, "user");
    if (!context)
        refuse(r, "it has no current context", NULL);
    else {
        read_cluster(r, cluster ? named(r, root, "clusters", cluster, "cluster") : NULL, out);
        read_user(r, user ? named(r, root, "users", user, "user") : NULL, out);
    }
    free(current);
    free(cluster);
    free(user);
}

/* ---- all of it ---- */

/* Aliases are followed by libyaml without end, and no kubeconfig has any. */
static bool has_alias(const char *text, size_t len)
{
    yaml_parser_t parser;
    bool found = false, ended = false;

    if (!yaml_parser_initialize(&parser))
        abort();
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    while (!found && !ended) {
        yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event))
            break; /* told by who loads it */
        found = event.type == YAML_ALIAS_EVENT;
        ended = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return found;
}

static char *directory_of(const char *path)
{
    const char *end = strrchr(path, '/');

    return must(end ? strndup(path, (size_t)(end - path) + 1) : strdup("./"));
}

int kubeconfig_parse(const char *text, size_t len, const char *path, struct kubeconfig *out,
                     char words[KUBECONFIG_WORDS_BYTES_MAX])
{
    struct kubeconfig config = {0};
    struct reader r = {.words = words};
    yaml_parser_t parser;
    char *dir;

    if (has_alias(text, len)) {
        snprintf(words, KUBECONFIG_WORDS_BYTES_MAX, "it has aliases");
        return -1;
    }
    if (!yaml_parser_initialize(&parser))
        abort();
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    if (!yaml_parser_load(&parser, &r.document)) {
        snprintf(words, KUBECONFIG_WORDS_BYTES_MAX, "line %zu: no YAML: %s",
                 parser.problem_mark.line + 1, parser.problem ? parser.problem : "no memory");
        yaml_parser_delete(&parser);
        return -1;
    }
    r.dir = dir = directory_of(path);
    read_root(&r, &config);
    yaml_document_delete(&r.document);
    yaml_parser_delete(&parser);
    free(dir);
    if (r.wrong) {
        kubeconfig_fini(&config);
        return -1;
    }
    *out = config;
    return 0;
}

static void free_secret(char *text, size_t len)
{
    if (text)
        OPENSSL_cleanse(text, len);
    free(text);
}

static void free_list(char **list)
{
    for (char **one = list; one && *one; one++)
        free_secret(*one, strlen(*one));
    free(list);
}

void kubeconfig_fini(struct kubeconfig *config)
{
    free(config->server);
    free(config->tls_server_name);
    free(config->proxy_url);
    free(config->ca_file);
    free(config->ca.bytes);
    free(config->certificate_file);
    free(config->certificate.bytes);
    free(config->key_file);
    free_secret(config->key.bytes, config->key.len);
    free_secret(config->token, config->token ? strlen(config->token) : 0);
    free(config->token_file);
    free(config->exec.command);
    free(config->exec.api_version);
    free_list(config->exec.args);
    free_list(config->exec.env);
    *config = (struct kubeconfig){0};
}
