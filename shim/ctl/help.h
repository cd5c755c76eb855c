/*
 * How cri-device-shimctl is used, made from the table of its commands; and what a shell may
 * complete.
 */
#ifndef SHIM_CTL_HELP_H
#define SHIM_CTL_HELP_H

#include <stdio.h>

#include "shim/ctl/command.h"

/* All commands (ended by NULL), and the options that they have in common. */
void help_of_all(FILE *out, const struct command *const *commands);
/* One, with its options. */
void help_of(FILE *out, const struct command *command);

/* What may stand in place of the last of these words, which are what was typed after the program's
 * name: a line each, with a tab and what it means. A line ":files" is for a file's name. */
void help_complete(FILE *out, const struct command *const *commands, char *const *words,
                   size_t words_len);

#endif
