/*
 * The command line: options, a command, its arguments.
 */
#ifndef SHIM_CTL_COMMAND_LINE_H
#define SHIM_CTL_COMMAND_LINE_H

#include <stddef.h>

#include "shim/ctl/command.h"
#include "shim/ctl/show.h"

/* Names the daemon's socket where no --socket does. */
#define COMMAND_LINE_SOCKET_VARIABLE "CRI_DEVICE_SHIM_CONTROL"
/* --watch without a number of seconds. */
#define COMMAND_LINE_WATCH_S 2

enum command_line_result {
    COMMAND_LINE_RUN,
    COMMAND_LINE_HELP, /* of line->command, or of all if it is NULL */
    COMMAND_LINE_VERSION,
    COMMAND_LINE_WRONG, /* line->wrong says what is */
};

/* Texts are borrowed from argv. */
struct command_line {
    const char *socket; /* NULL: none is named */
    enum show_format format;
    unsigned int watch_s; /* between two answers; 0: one is enough */
    const struct command *command;
    const char *options[COMMAND_OPTIONS_MAX]; /* as in struct command_run */
    char **arguments;
    size_t arguments_len;
    char wrong[256];
};

/* Options that all commands have may stand anywhere, a command's own behind it. `argv` is put into
 * another order. `commands` ends with NULL. */
enum command_line_result command_line_parse(struct command_line *line,
                                            const struct command *const *commands, int argc,
                                            char **argv);

/* The command that begins these words; *words: how many of them are its name. NULL: none. */
const struct command *command_line_find(const struct command *const *commands, char *const *rest,
                                        size_t rest_len, size_t *words);

/* One of the options that all commands have. */
struct command_line_common {
    const char *name;
    char letter;
    const char *value; /* what it takes, as for --help; NULL: nothing */
    bool may_be_alone; /* the value is optional, and written --NAME=VALUE */
    const char *summary;
};

#define COMMAND_LINE_COMMON_LEN 5
extern const struct command_line_common command_line_common[COMMAND_LINE_COMMON_LEN];

#endif
