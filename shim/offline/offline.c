#include "shim/offline/offline.h"

#include <stdio.h>
#include <string.h>

#include "shim/checkpoint_json.h"
#include "shim/checkpoint_report.h"
#include "shim/offline/say.h"
#include "shim/offline/source.h"

bool offline_output_parse(const char *name, enum offline_output *out)
{
    static const char *const NAMES[] = {
        [OFFLINE_TEXT] = "text", [OFFLINE_JSON] = "json", [OFFLINE_NAME] = "name"};

    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (strcmp(name, NAMES[i]) == 0) {
            *out = (enum offline_output)i;
            return true;
        }
    }
    return false;
}

/* ---- verify ---- */

static int say(const struct checkpoint_report *report, enum offline_output output)
{
    if (output == OFFLINE_JSON)
        return say_json(checkpoint_report_json(report));
    if (output == OFFLINE_NAME)
        checkpoint_report_put_name(stdout, report);
    else
        checkpoint_report_put(stdout, report);
    return say_flush();
}

int offline_verify(const char *path, const struct config *config, enum offline_output output)
{
    struct checkpoint_finding findings[ROWS_FINDINGS_MAX];
    char err[SOURCE_ERROR_BYTES_MAX];
    struct checkpoint_report report;
    struct source source;
    int rc;

    if (source_read(path, config, &source, err, sizeof err) < 0)
        return say_failure("%s", err);
    report = say_report(&source, path, findings);
    rc = say(&report, output);
    source_fini(&source);
    return rc;
}

/* ---- export ---- */

static json_t *document_of(const struct source *source)
{
    static const char *const KINDS[] = {
        [DEVICEMGR_RECORD_RESOURCE] = "resource", [DEVICEMGR_RECORD_ALLOCATION] = "allocation",
        [DEVICEMGR_RECORD_POD] = "pod",           [DEVICEMGR_RECORD_ORDER] = "order",
        [DEVICEMGR_RECORD_DRIVER] = "driver",     [DEVICEMGR_RECORD_CLAIM] = "claim",
        [DEVICEMGR_RECORD_ENDING] = "ending"}; /* a shutdown is of this boot and node */
    json_t *document = checkpoint_json_new();

    checkpoint_json_set_head(document, (uint64_t)source->version, source_is_sound(source));
    for (size_t i = 0; i < source->rows.len; i++) {
        const struct devicemgr_record *row = &source->rows.v[i];

        if (row->kind != DEVICEMGR_RECORD_SHUTDOWN)
            checkpoint_json_add(document, KINDS[row->kind], row->value, row->value_bytes);
    }
    return document;
}

int offline_export(const char *path, const struct config *config)
{
    char err[SOURCE_ERROR_BYTES_MAX];
    struct source source;
    int rc;

    if (source_read(path, config, &source, err, sizeof err) < 0)
        return say_failure("%s", err);
    rc = say_json(document_of(&source));
    source_fini(&source);
    return rc;
}
