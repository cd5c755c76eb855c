/*
 * The commands, each a row of one table.
 */
#ifndef SHIM_CTL_COMMAND_H
#define SHIM_CTL_COMMAND_H

#include <stddef.h>

#include "shim/ctl/client.h"
#include "shim/ctl/show.h"

/* How it ends; what the manual page says. */
enum command_exit {
    COMMAND_OK = 0,
    COMMAND_FAILED = 1,      /* the daemon's answer is an error */
    COMMAND_USAGE = 2,       /* the command line is wrong */
    COMMAND_NOT_FOUND = 3,   /* there is no such thing */
    COMMAND_UNREACHABLE = 4, /* the daemon does not answer */
    COMMAND_DENIED = 5,      /* this user may not */
};

struct command {
    const char *name;
    const char *arguments; /* for --help: "POD [CONTAINER]" */
    const char *summary;
    size_t arguments_min, arguments_max;
    /* Asks, and writes the answer. False: there is none, and `failure` says why. */
    bool (*run)(struct client *client, const struct show *show, char *const *arguments,
                size_t arguments_len, struct client_failure *failure);
};

/* NULL: there is none of that name. */
const struct command *command_find(const char *name);
/* The n-th, from 0; NULL: no more. */
const struct command *command_at(size_t n);

/* What such a failure ends with. */
enum command_exit command_exit_of(const struct client_failure *failure);

#endif
