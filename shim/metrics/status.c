#include "shim/metrics/status.h"

#include <jansson.h>
#include <unistd.h>

#include "shim/boot_clock.h"
#include "shim/json_value.h"
#include "shim/version.h"

static json_t *degraded_of(const struct report *report)
{
    uint64_t now_ms = boot_now_ms();
    json_t *all = json_array();

    for (size_t i = 0; i < report->troubles_len; i++) {
        const struct report_trouble *trouble = &report->troubles[i];

        json_array_append_new(all,
                              json_pack("{s:s, s:o, s:I}", "what", report_part_name(trouble->part),
                                        "why", json_value_text(trouble->why), "for_seconds",
                                        (json_int_t)(now_ms - trouble->since_ms) / 1000));
    }
    return all;
}

char *status_text(const struct metrics_view *view, const struct report *report)
{
    struct devicemgr_kept kept;
    char *text = NULL;
    json_t *status;

    devicemgr_kept(host_core(view->host), &kept);
    status = json_pack("{s:s, s:i, s:b, s:o, s:o, s:{s:I, s:I, s:I}}", "version", version_text,
                       "pid", (int)getpid(), "ready", view->not_ready == NULL, "not_ready",
                       json_value_text_or_null(view->not_ready ? view->not_ready : ""), "degraded",
                       degraded_of(report), "kept", "creates", (json_int_t)kept.creates,
                       "allocations", (json_int_t)kept.allocations, "pods", (json_int_t)kept.pods);
    if (status)
        text = json_dumps(status, JSON_INDENT(2));
    json_decref(status);
    return text;
}
