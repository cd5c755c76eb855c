#include "shim/metrics/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/metrics/exposition.h"
#include "shim/metrics/families.h"
#include "shim/metrics/http_server.h"
#include "shim/metrics/status.h"
#include "shim/must.h"

struct metrics {
    const struct metrics_ops *ops;
    void *user;
    struct http_server *server;
};

/* Takes `text`; NULL: out of memory. */
static void put(struct http_answer *out, unsigned status, const char *type, char *text)
{
    *out = (struct http_answer){.status = text ? status : 503, .type = type, .body = text};
    out->len = text ? strlen(text) : 0;
}

static void put_ready(struct http_answer *out, const struct metrics_view *view)
{
    char *text = NULL;

    if (view->not_ready && asprintf(&text, "%s\n", view->not_ready) < 0)
        text = NULL;
    put(out, view->not_ready ? 503 : 200, "text/plain; charset=utf-8",
        view->not_ready ? text : strdup("ok\n"));
}

static void put_metrics(const struct metrics *metrics, struct http_answer *out,
                        const struct metrics_view *view)
{
    struct exposition e = {0};
    struct report report = {0};

    metrics->ops->report(metrics->user, &report);
    families_put(&e, view, &report);
    *out = (struct http_answer){
        .status = e.text ? 200 : 503, .type = METRICS_TYPE, .body = e.text, .len = e.len};
}

static void put_status(const struct metrics *metrics, struct http_answer *out,
                       const struct metrics_view *view)
{
    struct report report = {0};

    metrics->ops->report(metrics->user, &report);
    put(out, 200, "application/json", status_text(view, &report));
}

static bool on_get(void *user, const struct http_request *request, struct http_answer *out)
{
    struct metrics *metrics = user;
    struct metrics_view view = {0};
    const char *path = request->path;

    metrics->ops->look(metrics->user, &view);
    if (strcmp(path, "/metrics") == 0)
        put_metrics(metrics, out, &view);
    else if (strcmp(path, "/healthz") == 0)
        put(out, 200, "text/plain; charset=utf-8", strdup("ok\n"));
    else if (strcmp(path, "/readyz") == 0)
        put_ready(out, &view);
    else if (strcmp(path, "/status.json") == 0)
        put_status(metrics, out, &view);
    else
        return metrics->ops->get && metrics->ops->get(metrics->user, request, out);
    return true;
}

static const struct http_server_ops HTTP_OPS = {.get = on_get};

struct metrics *metrics_start(uv_loop_t *loop, const char *address, const struct metrics_ops *ops,
                              void *user)
{
    struct metrics *metrics = must(calloc(1, sizeof *metrics));

    metrics->ops = ops;
    metrics->user = user;
    metrics->server = http_server_start(loop, address, &HTTP_OPS, metrics);
    return metrics;
}

void metrics_stop(struct metrics *metrics)
{
    if (!metrics)
        return;
    http_server_stop(metrics->server);
    free(metrics);
}
