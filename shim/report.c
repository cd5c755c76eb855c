#include "shim/report.h"

#include "cri-proto/utf8.h"

void report_trouble(struct report *report, enum report_part part, const char *why,
                    uint64_t since_ms)
{
    struct report_trouble *trouble = &report->troubles[report->troubles_len];

    if (report->troubles_len == REPORT_TROUBLES_MAX)
        return;
    report->troubles_len++;
    trouble->part = part;
    trouble->since_ms = since_ms;
    utf8_copy(trouble->why, sizeof trouble->why, why);
}

bool report_is_degraded(const struct report *report, enum report_part part)
{
    for (size_t i = 0; i < report->troubles_len; i++) {
        if (report->troubles[i].part == part)
            return true;
    }
    return false;
}

const char *report_part_name(enum report_part part)
{
    static const char *const names[] = {
        [REPORT_SETTINGS] = "settings",   [REPORT_RELAY] = "relay",
        [REPORT_REGISTRAR] = "registrar", [REPORT_FEED] = "feed",
        [REPORT_CONTROL] = "control",     [REPORT_STORE] = "store",
        [REPORT_EVENTS] = "events",       [REPORT_RUNTIME] = "runtime",
        [REPORT_BRIDGE] = "bridge",       [REPORT_CLUSTER] = "cluster",
        [REPORT_REGISTRY] = "registry",   [REPORT_SHUTDOWN] = "shutdown",
    };

    return names[part];
}
