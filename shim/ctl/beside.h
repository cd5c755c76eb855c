/*
 * The daemon's own program, which lies beside this one and has what this one has not: the store. It
 * is run where no daemon runs that could be asked.
 */
#ifndef SHIM_CTL_BESIDE_H
#define SHIM_CTL_BESIDE_H

#include <limits.h>
#include <stdbool.h>

#include <jansson.h>

#include "shim/ctl/command.h"

/* The option that all commands have which run it. */
/* clang-format off */
#define BESIDE_CONFIG                                                                              \
    {"config", 'c', "FILE", "the daemon's settings, if they are not at their usual place"}
/* clang-format on */

/* Besides the file and the settings. */
#define BESIDE_ARGUMENTS_MAX 4

/* The program that lies at `name` as seen from this one's directory. False: it cannot be run, and
 * `failure` says why. */
bool beside_find(char path[static PATH_MAX], const char *name, struct client_failure *failure);

/*
 * Runs it on `file`, with `--OPTION=FILE`, the settings that the command names, and the others of
 * `more` (NULL ends them), and waits for its end. What it says on stdout, for the caller to free;
 * NULL: it has failed, or could not be run, and `failure` has its words, or why. What it says on
 * stderr besides passes.
 */
char *beside_run(const struct command_run *run, const char *option, const char *file,
                 const char *const more[BESIDE_ARGUMENTS_MAX], struct client_failure *failure);
/* The same, of one that answers with JSON. */
json_t *beside_ask(const struct command_run *run, const char *option, const char *file,
                   const char *const more[BESIDE_ARGUMENTS_MAX], struct client_failure *failure);

/* False, and `failure` says so: the settings are named, and no file is for which they would
 * count. */
bool beside_judge_config(const struct command_run *run, const char *file,
                         struct client_failure *failure);

#endif
