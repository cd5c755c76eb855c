/*
 * What cri-device-shim does with a checkpoint that no daemon has open, and then ends; for people,
 * and for cri-device-shimctl, which has no store.
 */
#ifndef SHIM_OFFLINE_OFFLINE_H
#define SHIM_OFFLINE_OFFLINE_H

#include <stdbool.h>

#include "config/config.h"

enum offline_output {
    OFFLINE_TEXT,
    OFFLINE_JSON,
    OFFLINE_NAME, /* one line, KIND/NAME */
};

/* False: there is none of this name (text, json, name). */
bool offline_output_parse(const char *name, enum offline_output *out);

/* All of these write the answer to stdout, or one line to stderr that says why there is none, with
 * -1. A FILE is what source.h reads. */

/* Whether FILE is sound, and its rows make sense; 0 also where not. */
int offline_verify(const char *path, const struct config *config, enum offline_output output)
    __attribute__((warn_unused_result));

/* The rows of FILE as a document (shim/checkpoint_json.h). */
int offline_export(const char *path, const struct config *config)
    __attribute__((warn_unused_result));

/*
 * Makes the rows of FILE those of the state directory, all or none (replace.h). `dry`: only says
 * what would be done. It is refused for a file in which anything is wrong, and while a daemon
 * serves the control socket, or has the checkpoint open. A document of a checkpoint that was
 * damaged is taken: it says itself that rows are missing.
 */
int offline_import(const char *path, const struct config *config, bool dry,
                   enum offline_output output) __attribute__((warn_unused_result));

#endif
