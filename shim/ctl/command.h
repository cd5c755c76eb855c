/*
 * A command of cri-device-shimctl: what it is called, takes and does. commands.h has the table.
 */
#ifndef SHIM_CTL_COMMAND_H
#define SHIM_CTL_COMMAND_H

#include <stdbool.h>
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

#define COMMAND_OPTIONS_MAX 8

/* An option of one command; neither name nor letter is one that all commands have. */
struct command_option {
    const char *name;  /* --NAME */
    char letter;       /* 0: it has none */
    const char *value; /* what it takes, for --help: "TEXT"; NULL: nothing */
    const char *summary;
};

/* One that is asked for. */
struct command_run {
    const struct command *command;
    struct client *client;
    struct show show;
    char *const *arguments;
    size_t arguments_len;
    const char *options[COMMAND_OPTIONS_MAX]; /* in the command's order; command_given() */
};

struct list;

struct command {
    const char *name;      /* a word, or two: "grace extend" */
    const char *arguments; /* for --help: "POD [CONTAINER]" */
    const char *summary;
    size_t arguments_min, arguments_max;
    struct command_option options[COMMAND_OPTIONS_MAX]; /* the first without a name ends them */
    bool changes; /* it does not only read: not to be done again and again by --watch */
    /* Asks, and writes the answer. False: there is none, and `failure` says why. */
    bool (*run)(const struct command_run *run, struct client_failure *failure);
    const struct list *list; /* of list_run() */
};

size_t command_options_len(const struct command *command);

/* The value that --NAME, one of its command's options, was given; "" if it takes none. NULL: it was
 * not given. */
const char *command_given(const struct command_run *run, const char *name);

/* False: what was to be written to stdout was not taken, for this negative errno, and `failure`
 * says so; not a word of a reader who has enough. */
bool command_not_written(struct client_failure *failure, int err);

/* Of one that was to change something, and was not done: whether nobody knows that, it is said
 * behind. */
void command_say_unsure(struct client_failure *failure);

/* What such a failure ends with. */
enum command_exit command_exit_of(const struct client_failure *failure);

#endif
