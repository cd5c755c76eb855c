#include "shim/checkpoint_report.h"

#include <inttypes.h>

#include "shim/checkpoint_json.h"
#include "shim/must.h"
#include "shim/printable.h"

void checkpoint_report_put_text(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc(printable(*text), out);
}

void checkpoint_report_put_counts(FILE *out, const struct checkpoint_report *report)
{
    fprintf(out,
            "%" PRIu64 " resources, %" PRIu64 " allocations, %" PRIu64 " pods, %" PRIu64
            " orders, %" PRIu64 " drivers, %" PRIu64 " claims",
            report->resources, report->allocations, report->pods, report->orders, report->drivers,
            report->claims);
}

void checkpoint_report_put_findings(FILE *out, const struct checkpoint_report *report)
{
    for (size_t i = 0; i < report->findings_len; i++) {
        fprintf(out, "%s: ", report->findings[i].kind);
        checkpoint_report_put_text(out, report->findings[i].text);
        fputc('\n', out);
    }
    if (report->findings_total > report->findings_len)
        fprintf(out, "and %" PRIu64 " more\n", report->findings_total - report->findings_len);
}

void checkpoint_report_put(FILE *out, const struct checkpoint_report *report)
{
    checkpoint_report_put_text(out, report->path);
    fprintf(out, ": %s\nschema version %" PRIu64 "; rows: ", report->sound ? "sound" : "damaged",
            report->schema_version);
    checkpoint_report_put_counts(out, report);
    fputc('\n', out);
    checkpoint_report_put_findings(out, report);
}

void checkpoint_report_put_name(FILE *out, const struct checkpoint_report *report)
{
    fprintf(out, "checkpoint/%s\n", report->sound ? "sound" : "damaged");
}

static json_t *number(uint64_t is)
{
    return must(json_integer((json_int_t)is));
}

json_t *checkpoint_report_json(const struct checkpoint_report *report)
{
    json_t *all = must(json_object()), *findings = must(json_array());

    for (size_t i = 0; i < report->findings_len; i++) {
        json_t *one = must(json_object());

        checkpoint_json_set(one, "kind", checkpoint_json_text(report->findings[i].kind));
        checkpoint_json_set(one, "text", checkpoint_json_text(report->findings[i].text));
        if (json_array_append_new(findings, one) < 0)
            abort(); /* out of memory */
    }
    checkpoint_json_set(all, "file", checkpoint_json_text(report->path));
    checkpoint_json_set(all, "schemaVersion", number(report->schema_version));
    checkpoint_json_set(all, "sound", json_boolean(report->sound));
    checkpoint_json_set(all, "resources", number(report->resources));
    checkpoint_json_set(all, "allocations", number(report->allocations));
    checkpoint_json_set(all, "pods", number(report->pods));
    checkpoint_json_set(all, "orders", number(report->orders));
    checkpoint_json_set(all, "drivers", number(report->drivers));
    checkpoint_json_set(all, "claims", number(report->claims));
    checkpoint_json_set(all, "findings", findings);
    checkpoint_json_set(all, "findingsTotal", number(report->findings_total));
    return all;
}
