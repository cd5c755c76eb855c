#include "shim/checkpoint_report.h"

#include <inttypes.h>

#include "shim/json_value.h"
#include "shim/must.h"
#include "shim/printable.h"

void checkpoint_report_put_text(FILE *out, const char *text)
{
    put_printable(out, text);
}

void checkpoint_report_put_counts(FILE *out, const struct checkpoint_report *report)
{
    fprintf(out,
            "%" PRIu64 " resources, %" PRIu64 " allocations, %" PRIu64 " pods, %" PRIu64
            " orders, %" PRIu64 " drivers, %" PRIu64 " claims, %" PRIu64 " endings",
            report->resources, report->allocations, report->pods, report->orders, report->drivers,
            report->claims, report->endings);
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

json_t *checkpoint_report_json(const struct checkpoint_report *report)
{
    json_t *all = must(json_object()), *findings = must(json_array());

    for (size_t i = 0; i < report->findings_len; i++) {
        json_t *one = must(json_object());

        json_value_set(one, "kind", json_value_text(report->findings[i].kind));
        json_value_set(one, "text", json_value_text(report->findings[i].text));
        if (json_array_append_new(findings, one) < 0)
            abort(); /* out of memory */
    }
    json_value_set(all, "file", json_value_text(report->path));
    json_value_set(all, "schemaVersion", json_value_number(report->schema_version));
    json_value_set(all, "sound", json_boolean(report->sound));
    json_value_set(all, "resources", json_value_number(report->resources));
    json_value_set(all, "allocations", json_value_number(report->allocations));
    json_value_set(all, "pods", json_value_number(report->pods));
    json_value_set(all, "orders", json_value_number(report->orders));
    json_value_set(all, "drivers", json_value_number(report->drivers));
    json_value_set(all, "claims", json_value_number(report->claims));
    json_value_set(all, "endings", json_value_number(report->endings));
    json_value_set(all, "findings", findings);
    json_value_set(all, "findingsTotal", json_value_number(report->findings_total));
    return all;
}
