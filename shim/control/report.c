#include "shim/control/report.h"

#include <stdio.h>

void report_trouble(struct report *report, const char *what, const char *why, uint64_t since_ms)
{
    struct report_trouble *trouble = &report->troubles[report->troubles_len];

    if (report->troubles_len == CONTROL_TROUBLES_MAX)
        return;
    report->troubles_len++;
    trouble->what = what;
    trouble->since_ms = since_ms;
    snprintf(trouble->why, sizeof trouble->why, "%s", why);
}
