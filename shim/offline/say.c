#include "shim/offline/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int say_failure(const char *format, ...)
{
    char *words;
    va_list args;

    va_start(args, format);
    if (vasprintf(&words, format, args) < 0)
        abort(); /* out of memory */
    va_end(args);
    checkpoint_report_put_text(stderr, words);
    fputc('\n', stderr);
    free(words);
    return -1;
}

int say_flush(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return say_failure("stdout: %s", strerror(errno));
}

int say_json(json_t *document)
{
    int rc = json_dumpf(document, stdout, JSON_INDENT(2));

    json_decref(document);
    putchar('\n');
    return rc < 0 ? say_failure("stdout: %s", strerror(errno)) : say_flush();
}

struct checkpoint_report say_report(const struct source *source, const char *path,
                                    struct checkpoint_finding findings[ROWS_FINDINGS_MAX])
{
    static const char *const KINDS[] = {[ROWS_FINDING_FILE] = "file",
                                        [ROWS_FINDING_ROW] = "row",
                                        [ROWS_FINDING_LOST] = "lost",
                                        [ROWS_FINDING_DEVICE] = "device"};
    const struct rows_found *found = &source->found;
    const size_t *counts = source->rows.counts;

    for (size_t i = 0; i < found->len; i++)
        findings[i] = (struct checkpoint_finding){KINDS[found->v[i].kind], found->v[i].text};
    return (struct checkpoint_report){.path = path,
                                      .schema_version = (uint64_t)source->version,
                                      .sound = source_is_sound(source),
                                      .resources = counts[DEVICEMGR_RECORD_RESOURCE],
                                      .allocations = counts[DEVICEMGR_RECORD_ALLOCATION],
                                      .pods = counts[DEVICEMGR_RECORD_POD],
                                      .orders = counts[DEVICEMGR_RECORD_ORDER],
                                      .drivers = counts[DEVICEMGR_RECORD_DRIVER],
                                      .claims = counts[DEVICEMGR_RECORD_CLAIM],
                                      .endings = counts[DEVICEMGR_RECORD_ENDING],
                                      .findings = findings,
                                      .findings_len = found->len,
                                      .findings_total = found->total};
}
