#include "shim/metrics/status.h"

#include <jansson.h>
#include <unistd.h>

#include "shim/version.h"

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

char *status_text(const struct metrics_view *view)
{
    struct devicemgr_kept kept;
    char *text = NULL;
    json_t *status;

    devicemgr_kept(host_core(view->host), &kept);
    status =
        json_pack("{s:s, s:i, s:b, s:o, s:o, s:{s:I, s:I, s:I}}", "version", version_text, "pid",
                  (int)getpid(), "ready", view->not_ready == NULL, "not_ready",
                  text_or_null(view->not_ready), "degraded", text_or_null(view->settings->degraded),
                  "kept", "creates", (json_int_t)kept.creates, "allocations",
                  (json_int_t)kept.allocations, "pods", (json_int_t)kept.pods);
    if (status)
        text = json_dumps(status, JSON_INDENT(2));
    json_decref(status);
    return text;
}
