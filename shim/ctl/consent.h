/*
 * Commands that take something away: they say what they would do, and do it when they are told.
 */
#ifndef SHIM_CTL_CONSENT_H
#define SHIM_CTL_CONSENT_H

#include <stdbool.h>

#include "shim/ctl/command.h"

/* The options of such a command. */
/* clang-format off */
#define CONSENT_YES {"yes", 'y', NULL, "do it without a question"}
#define CONSENT_DRY_RUN {"dry-run", 0, NULL, "only say what would be done"}
/* clang-format on */

/* Whether it is to be done: --yes, or a person says so at a terminal, who is shown `plan`, lines,
 * and asked `question`. False: it is not, and `failure` says why. */
bool consent_given(const struct command_run *run, const char *plan, const char *question,
                   struct client_failure *failure);

#endif
