#include "shim/agent/exec_plugin.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>
#include <openssl/crypto.h>

#include "shim/agent/limits.h"
#include "shim/must.h"

struct exec_plugin {
    uv_process_t process;
    uv_pipe_t out;
    uv_timer_t timer;
    const struct exec_plugin_ops *ops; /* NULL: told, or nobody waits */
    void *user;
    char *api_version;
    char *text; /* what it wrote so far; EXEC_PLUGIN_BYTES_MAX and one more */
    size_t len;
    bool ended, closed; /* the process; its output */
    int64_t status;
    int error; /* why it cannot be run or read; 0 */
    unsigned handles;
};

/* ---- what it is told ---- */

static json_t *cluster_info(const struct kubeconfig *config)
{
    json_t *cluster =
        json_pack("{s:s, s:s*, s:b}", "server", config->server, "tls-server-name",
                  config->tls_server_name, "insecure-skip-tls-verify", config->insecure);

    return must(cluster);
}

/* "KUBERNETES_EXEC_INFO=...": what is asked for. */
static char *exec_info(const struct kubeconfig *config)
{
    json_t *spec = must(json_pack("{s:b}", "interactive", 0));
    json_t *info;
    char *text, *variable;

    if (config->exec.cluster_info)
        json_object_set_new(spec, "cluster", cluster_info(config));
    info = must(json_pack("{s:s, s:s, s:o}", "apiVersion", config->exec.api_version, "kind",
                          "ExecCredential", "spec", spec));
    text = must(json_dumps(info, JSON_COMPACT));
    json_decref(info);
    if (asprintf(&variable, "KUBERNETES_EXEC_INFO=%s", text) < 0)
        abort();
    free(text);
    return variable;
}

static size_t list_len(char *const *list)
{
    size_t len = 0;

    while (list && list[len])
        len++;
    return len;
}

/* Whether both are of one name, "NAME=...". */
static bool is_same_variable(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");

    return strncmp(a, b, len) == 0 && b[len] == '=';
}

/* Unless there is one of its name. */
static void add_variable(char **all, size_t *len, char *variable)
{
    for (size_t i = 0; i < *len; i++) {
        if (is_same_variable(all[i], variable))
            return;
    }
    all[(*len)++] = variable;
}

/* Ours, its own, of which the later counts, and what the agent has besides. Each name once: of two
 * getenv(3) finds the first, and a shell takes the last. */
static char **environment(const struct kubeconfig *config, char *info)
{
    size_t own = list_len(config->exec.env), len = 0;
    char **all = must(calloc(own + list_len(environ) + 2, sizeof *all));

    add_variable(all, &len, info);
    while (own-- > 0)
        add_variable(all, &len, config->exec.env[own]);
    for (char **one = environ; one && *one; one++)
        add_variable(all, &len, *one);
    return all;
}

static char **command_line(const struct kubeconfig_exec *exec)
{
    size_t len = list_len(exec->args);
    char **all = must(calloc(len + 2, sizeof *all));

    all[0] = exec->command;
    memcpy(all + 1, exec->args, len * sizeof *all);
    return all;
}

/* ---- what it says ---- */

/* RFC 3339: in UTC ("Z"), or so far from it ("+02:00"). */
static uint64_t lasts_ms(const char *timestamp)
{
    struct tm tm = {0}, zone = {0};
    const char *rest = timestamp ? strptime(timestamp, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    time_t end, now = time(NULL);

    if (rest)
        rest = strptime(rest + strspn(rest, ".0123456789"), "%z", &zone);
    if (!rest || *rest != '\0')
        return UINT64_MAX;
    end = timegm(&tm) - zone.tm_gmtoff;
    return end > now ? (uint64_t)(end - now) * 1000 : 0;
}

static const char *string_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text && *text ? text : NULL;
}

static void tell(struct exec_plugin *plugin, const struct exec_credential *credential,
                 const char *words)
{
    const struct exec_plugin_ops *ops = plugin->ops;

    plugin->ops = NULL;
    if (ops)
        ops->done(plugin->user, credential, words);
}

static void tell_output(struct exec_plugin *plugin)
{
    json_error_t error;
    json_t *root = json_loadb(plugin->text, plugin->len, 0, &error);
    const json_t *status = json_object_get(root, "status");
    const char *version = string_of(root, "apiVersion");
    const struct exec_credential credential = {
        .token = string_of(status, "token"),
        .certificate = string_of(status, "clientCertificateData"),
        .key = string_of(status, "clientKeyData"),
        .lasts_ms = lasts_ms(string_of(status, "expirationTimestamp"))};

    if (!version || strcmp(version, plugin->api_version) != 0)
        tell(plugin, NULL,
             "what it wrote is no ExecCredential of the apiVersion that was asked for");
    else if (!credential.token && !(credential.certificate && credential.key))
        tell(plugin, NULL, "it gave neither a token nor a certificate with its key");
    else if (credential.token && strpbrk(credential.token, "\r\n"))
        tell(plugin, NULL, "it gave a token with the end of a line in it");
    else
        tell(plugin, &credential, "");
    json_decref(root);
}

static void tell_end(struct exec_plugin *plugin)
{
    char words[128];

    if (plugin->error)
        snprintf(words, sizeof words, "%s", uv_strerror(plugin->error));
    else if (plugin->status != 0)
        snprintf(words, sizeof words, "it ended with status %d", (int)plugin->status);
    else {
        tell_output(plugin);
        return;
    }
    tell(plugin, NULL, words);
}

/* ---- its life ---- */

static void on_freed(uv_handle_t *handle)
{
    struct exec_plugin *plugin = handle->data;

    if (--plugin->handles > 0)
        return;
    OPENSSL_cleanse(plugin->text, plugin->len);
    free(plugin->text);
    free(plugin->api_version);
    free(plugin);
}

/* It has ended, and all that it wrote is read. */
static void look_for_end(struct exec_plugin *plugin)
{
    if (!plugin->ended || !plugin->closed)
        return;
    tell_end(plugin);
    uv_close((uv_handle_t *)&plugin->process, on_freed);
    uv_close((uv_handle_t *)&plugin->out, on_freed);
    uv_close((uv_handle_t *)&plugin->timer, on_freed);
}

static void on_ended(uv_process_t *process, int64_t status, int signal_number)
{
    struct exec_plugin *plugin = process->data;

    plugin->ended = true;
    plugin->status = signal_number ? 128 + signal_number : status;
    look_for_end(plugin);
}

/* With what it has started: a script waits for another program, which would stay. Its number is its
 * group's, and nobody else's as long as it has not ended. */
static void end_with(struct exec_plugin *plugin, int error)
{
    plugin->error = plugin->error ? plugin->error : error;
    if (!plugin->ended)
        uv_kill(-plugin->process.pid, SIGKILL);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    struct exec_plugin *plugin = handle->data;

    (void)size;
    *buf = uv_buf_init(plugin->text + plugin->len,
                       (unsigned)(EXEC_PLUGIN_BYTES_MAX + 1 - plugin->len));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct exec_plugin *plugin = stream->data;

    (void)buf;
    if (n > 0)
        plugin->len += (size_t)n;
    if (n >= 0 && plugin->len <= EXEC_PLUGIN_BYTES_MAX)
        return;
    uv_read_stop(stream);
    plugin->closed = true;
    if (n != UV_EOF)
        end_with(plugin, n < 0 ? (int)n : UV_EMSGSIZE);
    look_for_end(plugin);
}

/* Whoever it has started may hold its output open. */
static void on_timeout(uv_timer_t *timer)
{
    struct exec_plugin *plugin = timer->data;

    uv_read_stop((uv_stream_t *)&plugin->out);
    plugin->closed = true;
    end_with(plugin, UV_ETIMEDOUT);
    look_for_end(plugin);
}

static void on_not_run(uv_timer_t *timer)
{
    struct exec_plugin *plugin = timer->data;

    plugin->ended = plugin->closed = true;
    look_for_end(plugin);
}

static int spawn(struct exec_plugin *plugin, const struct kubeconfig *config)
{
    char *info = exec_info(config);
    char **env = environment(config, info), **args = command_line(&config->exec);
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&plugin->out},
        {.flags = UV_INHERIT_FD, .data.fd = 2}};
    const uv_process_options_t options = {.exit_cb = on_ended,
                                          .file = config->exec.command,
                                          .args = args,
                                          .env = env,
                                          .flags = UV_PROCESS_DETACHED, /* a group of its own */
                                          .stdio_count = 3,
                                          .stdio = stdio};
    int err = uv_spawn(plugin->timer.loop, &plugin->process, &options);

    free(args);
    free(env);
    free(info);
    return err ? err : uv_read_start((uv_stream_t *)&plugin->out, on_alloc, on_read);
}

struct exec_plugin *exec_plugin_run(uv_loop_t *loop, const struct kubeconfig *config,
                                    const struct exec_plugin_ops *ops, void *user)
{
    struct exec_plugin *plugin = must(calloc(1, sizeof *plugin));

    plugin->ops = ops;
    plugin->user = user;
    plugin->api_version = must(strdup(config->exec.api_version));
    plugin->text = must(malloc(EXEC_PLUGIN_BYTES_MAX + 1));
    uv_timer_init(loop, &plugin->timer);
    uv_pipe_init(loop, &plugin->out, 0);
    plugin->timer.data = plugin->process.data = plugin->out.data = plugin;
    plugin->handles = 3;
    plugin->error = spawn(plugin, config);
    uv_timer_start(&plugin->timer, plugin->error ? on_not_run : on_timeout,
                   plugin->error ? 0 : EXEC_PLUGIN_TIMEOUT_MS, 0);
    return plugin;
}

void exec_plugin_cancel(struct exec_plugin *plugin)
{
    if (!plugin)
        return;
    plugin->ops = NULL;
    if (!plugin->error)
        uv_timer_start(&plugin->timer, on_timeout, 0, 0);
}
