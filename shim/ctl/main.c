/*
 * cri-device-shimctl: its arguments, and the command that they name.
 */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cri-proto/methods.h"
#include "shim/ctl/client.h"
#include "shim/ctl/command_line.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/help.h"
#include "shim/ctl/show.h"
#include "shim/standard_fds.h"
#include "shim/version.h"

/* In place of a command: what may follow the words behind it, for a shell. */
#define COMPLETE "__complete"

/* ---- carrying it out ---- */

static bool wants_colors(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && term && strcmp(term, "dumb") != 0;
}

/* What is shown, in one piece, for the caller to free; NULL: nothing, and `failure` says why. */
static char *run_once(const struct command_line *line, struct client *client,
                      struct client_failure *failure)
{
    struct command_run run = {
        .command = line->command,
        .client = client,
        .show = {.format = line->format, .colors = wants_colors(), .one_line = line->watch_s > 0},
        .arguments = line->arguments,
        .arguments_len = line->arguments_len};
    char *text = NULL;
    size_t len;
    bool done;

    memcpy(run.options, line->options, sizeof run.options);
    run.show.out = open_memstream(&text, &len);
    if (!run.show.out)
        abort(); /* out of memory */
    done = line->command->run(&run, failure);
    client_rest(client); /* who reads may be slow, and who watches sleeps */
    if (fclose(run.show.out) != 0)
        abort();
    if (done)
        return text;
    free(text);
    return NULL;
}

static void say(const struct client_failure *failure, const char *besides)
{
    if (failure->words[0])
        fprintf(stderr, "error: %s%s\n", failure->words, besides);
}

/* On a terminal in the same place each time; elsewhere only if it differs from the one before, and
 * JSON a line each. 0 or a negative errno. */
static int repaint(const struct command_line *line, const char *text, const char *before)
{
    if (isatty(STDOUT_FILENO) && line->format != SHOW_JSON)
        fputs("\033[H\033[2J", stdout);
    else if (before && strcmp(text, before) == 0)
        return show_is_unread() ? -EPIPE : 0;
    else if (before && line->format != SHOW_JSON)
        fputc('\n', stdout);
    return show_write_out(text);
}

/* Until somebody ends it, or nobody reads it. A daemon that restarts is not the end. */
static enum command_exit watch(const struct command_line *line, struct client *client)
{
    struct client_failure failure;
    char *before = NULL;
    int err = 0;

    while (err == 0) {
        char *text;

        failure = (struct client_failure){0};
        text = run_once(line, client, &failure);
        if (text) {
            err = repaint(line, text, before);
            free(before);
            before = text;
        } else {
            say(&failure, "");
            err = show_is_unread() ? -EPIPE : 0;
        }
        if (err == 0)
            sleep(line->watch_s);
    }
    free(before);
    command_not_written(&failure, err);
    say(&failure, "");
    return command_exit_of(&failure);
}

static enum command_exit run(const struct command_line *line, struct client *client)
{
    struct client_failure failure = {0};
    char *text;
    int err;

    if (line->watch_s > 0)
        return watch(line, client);
    text = run_once(line, client, &failure);
    if (!text) {
        say(&failure, "");
        return command_exit_of(&failure);
    }
    err = show_write_out(text);
    free(text);
    if (!err)
        return COMMAND_OK;
    command_not_written(&failure, err);
    say(&failure, line->command->changes ? "; the command has done what it was to do" : "");
    return command_exit_of(&failure);
}

static const char *socket_of(const struct command_line *line)
{
    const char *named = getenv(COMMAND_LINE_SOCKET_VARIABLE);

    if (line->socket)
        return line->socket;
    return named && *named ? named : CONTROL_SOCKET_DEFAULT;
}

static enum command_exit carry_out(const struct command_line *line)
{
    struct client *client = client_new(socket_of(line));
    enum command_exit status;

    if (!client)
        abort(); /* out of memory */
    status = run(line, client);
    client_free(client);
    return status;
}

int main(int argc, char **argv)
{
    struct command_line line;

    standard_fds_open();
    setlocale(LC_CTYPE, "C.UTF-8"); /* what is told is UTF-8, and is printed so: in tables, too */
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && strcmp(argv[1], COMPLETE) == 0) {
        help_complete(stdout, commands, argv + 2, (size_t)argc - 2);
        return COMMAND_OK;
    }
    switch (command_line_parse(&line, commands, argc, argv)) {
    case COMMAND_LINE_HELP:
        if (line.command)
            help_of(stdout, line.command);
        else
            help_of_all(stdout, commands);
        return COMMAND_OK;
    case COMMAND_LINE_VERSION:
        printf("cri-device-shimctl %s\n", version_text);
        return COMMAND_OK;
    case COMMAND_LINE_WRONG:
        fprintf(stderr, "error: %s; see cri-device-shimctl %s%s--help\n", line.wrong,
                line.command ? line.command->name : "", line.command ? " " : "");
        return COMMAND_USAGE;
    case COMMAND_LINE_RUN:
        break;
    }
    return (int)carry_out(&line);
}
