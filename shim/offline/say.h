/*
 * Answers on stdout: a program reads them, so one that was not taken as a whole is an error.
 */
#ifndef SHIM_OFFLINE_SAY_H
#define SHIM_OFFLINE_SAY_H

#include <jansson.h>

#include "shim/checkpoint_report.h"
#include "shim/offline/source.h"

/* One line to stderr, whatever bytes are in it; -1. */
int say_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Takes the document. 0; or -1, and stderr says why. */
int say_json(json_t *document) __attribute__((warn_unused_result));
/* What was written to stdout is out: 0; or -1, and stderr says why not. */
int say_flush(void) __attribute__((warn_unused_result));

/* What is found in it, as it is shown; `findings` has room for all that are told one by one. Texts
 * are the source's. */
struct checkpoint_report say_report(const struct source *source, const char *path,
                                    struct checkpoint_finding findings[ROWS_FINDINGS_MAX]);

#endif
