#include "shim/agent/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "shim/agent/exec_plugin.h"
#include "shim/agent/limits.h"
#include "shim/boot_clock.h"
#include "shim/file.h"
#include "shim/file_identity.h"
#include "shim/log.h"
#include "shim/must.h"

enum part { PART_CONFIG, PART_CA, PART_CERTIFICATE, PART_KEY, PART_TOKEN };
#define PARTS (PART_TOKEN + 1)

/* What was read, all of it at one time. */
struct loaded {
    struct kubeconfig config;
    struct kubeconfig_data parts[PARTS]; /* of the files, where there are */
    struct file_identity files[PARTS];
};

struct credentials {
    uv_loop_t *loop;
    const char *path;
    bool insecure;
    const struct credentials_ops *ops;
    void *user;
    bool there; /* `now` is what counts */
    struct loaded now;
    bool again; /* it is to be read anew, whether a file has changed or not */
    char words[KUBECONFIG_WORDS_BYTES_MAX + 256];
    struct exec_plugin *plugin; /* at work */
    bool given;                 /* by the plugin: */
    struct kubeconfig_data token, certificate, key;
    uint64_t given_end_ms;  /* when it is to be asked anew; boot_now_ms() */
    uint64_t given_over_ms; /* until then what it gave is used meanwhile */
    uint64_t not_before_ms; /* nor sooner than that */
    char plugin_words[256]; /* why it gave nothing; "" */
};

/* ---- files ---- */

static void data_fini(struct kubeconfig_data *data)
{
    if (data->bytes)
        OPENSSL_cleanse(data->bytes, data->len);
    free(data->bytes);
    *data = (struct kubeconfig_data){0};
}

static void loaded_fini(struct loaded *loaded)
{
    for (int i = 0; i < PARTS; i++)
        data_fini(&loaded->parts[i]);
    kubeconfig_fini(&loaded->config);
}

/* 0 or a negative errno. Through symbolic links: that is how certificates are rotated. */
static int read_file(const char *path, struct kubeconfig_data *out, struct file_identity *identity)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), err = 0;
    struct stat st;
    char *bytes = NULL;
    size_t len = 0;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        err = -errno;
    else if (!S_ISREG(st.st_mode))
        err = -EINVAL;
    else if (st.st_size > CREDENTIAL_BYTES_MAX)
        err = -EFBIG;
    if (!err) {
        bytes = must(calloc(1, (size_t)st.st_size + 1));
        err = file_read(fd, bytes, (size_t)st.st_size, &len);
    }
    close(fd);
    if (err) {
        free(bytes);
        return err;
    }
    *out = (struct kubeconfig_data){bytes, len};
    *identity = file_identity_of(&st);
    return 0;
}

static const char *path_of(const struct credentials *c, const struct kubeconfig *config,
                           enum part part)
{
    switch (part) {
    case PART_CONFIG:
        return c->path;
    case PART_CA:
        return config->ca.bytes ? NULL : config->ca_file;
    case PART_CERTIFICATE:
        return config->certificate.bytes ? NULL : config->certificate_file;
    case PART_KEY:
        return config->key.bytes ? NULL : config->key_file;
    case PART_TOKEN:
        return config->token_file;
    }
    return NULL;
}

static struct file_identity look_at(const char *path)
{
    struct stat st;

    return path && stat(path, &st) == 0 ? file_identity_of(&st) : (struct file_identity){0};
}

/* ---- reading all of it ---- */

static int broken(struct credentials *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int broken(struct credentials *c, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(c->words, sizeof c->words, format, args);
    va_end(args);
    return -1;
}

static const struct kubeconfig_data *data_in(const struct loaded *l, enum part part)
{
    const struct kubeconfig_data *inline_data = part == PART_CA            ? &l->config.ca
                                                : part == PART_CERTIFICATE ? &l->config.certificate
                                                                           : &l->config.key;

    return inline_data->bytes ? inline_data : &l->parts[part];
}

static int check(struct credentials *c, const struct loaded *l)
{
    const struct kubeconfig_data *certificate = data_in(l, PART_CERTIFICATE);
    const struct kubeconfig_data *key = data_in(l, PART_KEY);
    const struct kubeconfig_data *token = &l->parts[PART_TOKEN];

    if (l->config.insecure && !c->insecure)
        return broken(c,
                      "%s: it says insecure-skip-tls-verify; that is followed only with "
                      "cluster.insecure_skip_tls_verify",
                      c->path);
    if (certificate->bytes &&
        !certificate_fits(certificate->bytes, certificate->len, key->bytes, key->len))
        return broken(c, "%s: the client certificate and its key are no pair", c->path);
    if (!certificate->bytes && !l->config.token && !token->bytes && !l->config.exec.command)
        return broken(c, "%s: its user has no credentials", c->path);
    if (token->bytes && (token->len == 0 || strpbrk(token->bytes, "\r\n")))
        return broken(c, "%s: no token", l->config.token_file);
    return 0;
}

static void cut_blanks(struct kubeconfig_data *token)
{
    while (token->len > 0 && strchr(" \t\r\n", token->bytes[token->len - 1]))
        token->bytes[--token->len] = '\0';
}

/* 0, or -1 with words. */
static int load(struct credentials *c, struct loaded *out)
{
    char words[KUBECONFIG_WORDS_BYTES_MAX];
    int err = read_file(c->path, &out->parts[PART_CONFIG], &out->files[PART_CONFIG]);

    if (err)
        return broken(c, "%s: %s", c->path, strerror(-err));
    if (kubeconfig_parse(out->parts[PART_CONFIG].bytes, out->parts[PART_CONFIG].len, c->path,
                         &out->config, words) < 0)
        return broken(c, "%s: %s", c->path, words);
    data_fini(&out->parts[PART_CONFIG]);
    for (enum part part = PART_CA; part < PARTS; part++) {
        const char *path = path_of(c, &out->config, part);

        err = path ? read_file(path, &out->parts[part], &out->files[part]) : 0;
        if (err)
            return broken(c, "%s: %s", path, strerror(-err));
    }
    cut_blanks(&out->parts[PART_TOKEN]);
    return check(c, out);
}

static bool has_changed(struct credentials *c)
{
    bool changed = c->again || !c->there;

    for (enum part part = PART_CONFIG; part < PARTS; part++) {
        struct file_identity is = look_at(path_of(c, &c->now.config, part));

        changed |= !file_identity_is(&is, &c->now.files[part]);
    }
    return changed;
}

/* What was there counts on, as long as what is new is not right. */
static void reload(struct credentials *c)
{
    struct loaded new = {0};
    bool was_there = c->there;

    if (!has_changed(c))
        return;
    c->again = load(c, &new) < 0;
    if (c->again) {
        loaded_fini(&new);
        if (was_there)
            log_debug("credentials: not taken over: %s", c->words);
        return;
    }
    loaded_fini(&c->now);
    c->now = new;
    c->there = true;
    c->given_end_ms = was_there ? c->given_end_ms : 0;
    log_info("credentials: read from %s", c->path);
}

/* ---- the plugin ---- */

static void take(struct kubeconfig_data *to, const char *text)
{
    data_fini(to);
    if (text)
        *to = (struct kubeconfig_data){must(strdup(text)), strlen(text)};
}

static void on_plugin_done(void *user, const struct exec_credential *given, const char *words)
{
    struct credentials *c = user;
    uint64_t now_ms = boot_now_ms();

    c->plugin = NULL;
    c->not_before_ms = now_ms + EXEC_PLUGIN_AGAIN_MS;
    snprintf(c->plugin_words, sizeof c->plugin_words, "%s", given ? "" : words);
    if (given && given->certificate &&
        !certificate_fits(given->certificate, strlen(given->certificate), given->key,
                          strlen(given->key))) {
        snprintf(c->plugin_words, sizeof c->plugin_words, "its certificate and key are no pair");
    } else if (given) {
        take(&c->token, given->token);
        take(&c->certificate, given->certificate);
        take(&c->key, given->certificate ? given->key : NULL);
        c->given = true;
        c->given_over_ms = given->lasts_ms == UINT64_MAX ? UINT64_MAX : now_ms + given->lasts_ms;
        if (given->lasts_ms == UINT64_MAX)
            c->given_end_ms = now_ms + EXEC_PLUGIN_ANEW_MS;
        else
            c->given_end_ms = now_ms + given->lasts_ms -
                              (given->lasts_ms > 2 * EXEC_PLUGIN_EARLY_MS ? EXEC_PLUGIN_EARLY_MS
                                                                          : given->lasts_ms / 2);
    }
    c->ops->changed(c->user);
}

static const struct exec_plugin_ops PLUGIN_OPS = {.done = on_plugin_done};

static enum credentials_state look_at_plugin(struct credentials *c)
{
    uint64_t now_ms = boot_now_ms();
    bool fresh = c->given && now_ms < c->given_end_ms;

    if (!fresh && !c->plugin && now_ms >= c->not_before_ms)
        c->plugin = exec_plugin_run(c->loop, &c->now.config, &PLUGIN_OPS, c);
    if (c->plugin && !(c->given && now_ms < c->given_over_ms))
        return CREDENTIALS_PENDING;
    if (c->given) /* what it gave last is better than nothing */
        return CREDENTIALS_READY;
    broken(c, "%s: its credential plugin %s: %s", c->path, c->now.config.exec.command,
           c->plugin_words);
    return CREDENTIALS_BROKEN;
}

/* ---- what there is ---- */

static void fill(const struct credentials *c, struct credentials_set *set)
{
    const struct kubeconfig *config = &c->now.config;

    *set = (struct credentials_set){
        .server = config->server,
        .tls_server_name = config->tls_server_name,
        .proxy_url = config->proxy_url,
        .insecure = config->insecure,
        .ca = *data_in(&c->now, PART_CA),
        .certificate = *data_in(&c->now, PART_CERTIFICATE),
        .key = *data_in(&c->now, PART_KEY),
        .token = c->now.parts[PART_TOKEN].bytes ? c->now.parts[PART_TOKEN].bytes : config->token};
    if (!config->exec.command)
        return;
    if (c->certificate.bytes) {
        set->certificate = c->certificate;
        set->key = c->key;
    }
    if (c->token.bytes)
        set->token = c->token.bytes;
}

enum credentials_state credentials_look(struct credentials *credentials,
                                        struct credentials_set *set, const char **words)
{
    enum credentials_state state = CREDENTIALS_READY;

    reload(credentials);
    *words = credentials->words;
    if (!credentials->there)
        return CREDENTIALS_BROKEN;
    if (credentials->now.config.exec.command)
        state = look_at_plugin(credentials);
    if (state == CREDENTIALS_READY)
        fill(credentials, set);
    return state;
}

void credentials_refused(struct credentials *credentials)
{
    credentials->again = true;
    credentials->given_end_ms = credentials->given_over_ms = 0;
}

bool credentials_node(struct credentials *credentials, char name[NODE_NAME_BYTES_MAX],
                      const char **words)
{
    struct credentials_set set;
    enum credentials_state state = credentials_look(credentials, &set, words);

    if (state == CREDENTIALS_READY && set.certificate.bytes &&
        certificate_node(set.certificate.bytes, set.certificate.len, name))
        return true;
    if (state == CREDENTIALS_READY)
        broken(credentials, "%s: no client certificate of a node; cluster.node_name is to be set",
               credentials->path);
    *words = state == CREDENTIALS_PENDING ? "" : credentials->words;
    return false;
}

struct credentials *credentials_new(uv_loop_t *loop, const char *path, bool insecure,
                                    const struct credentials_ops *ops, void *user)
{
    struct credentials *c = must(calloc(1, sizeof *c));

    c->loop = loop;
    c->path = path;
    c->insecure = insecure;
    c->ops = ops;
    c->user = user;
    return c;
}

void credentials_free(struct credentials *credentials)
{
    if (!credentials)
        return;
    exec_plugin_cancel(credentials->plugin);
    loaded_fini(&credentials->now);
    data_fini(&credentials->token);
    data_fini(&credentials->certificate);
    data_fini(&credentials->key);
    free(credentials);
}
