/*
 * cri-device-shimctl: its arguments, and the command that they name.
 */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cri-proto/methods.h"
#include "shim/ctl/client.h"
#include "shim/ctl/command.h"
#include "shim/ctl/show.h"
#include "shim/version.h"

/* Names the daemon's socket where no --socket does. */
#define SOCKET_VARIABLE "CRI_DEVICE_SHIM_CONTROL"
#define WATCH_SECONDS 1

struct arguments {
    const char *socket;
    enum show_format format;
    bool watch;
    const struct command *command;
    char **rest; /* the command's own */
    size_t rest_len;
};

/* ---- the command line ---- */

static const struct option OPTIONS[] = {
    {"output", required_argument, NULL, 'o'}, {"socket", required_argument, NULL, 's'},
    {"watch", no_argument, NULL, 'w'},        {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},      {NULL, 0, NULL, 0},
};

static const char HELP[] =
    "\n"
    "Options:\n"
    "  -o, --output FORMAT  json, wide (more columns) or name, in place of a table\n"
    "  -w, --watch          ask again each second, and show what is new\n"
    "  -s, --socket PATH    the daemon's control.socket; else $" SOCKET_VARIABLE ", else\n"
    "                       " CONTROL_SOCKET_DEFAULT "\n"
    "  -h, --help           this, and end\n"
    "  -V, --version        the version, and end\n"
    "\n"
    "cri-device-shimctl(1) has more.\n";

static _Noreturn void help(void)
{
    const struct command *command;

    printf("Usage: cri-device-shimctl [OPTION]... COMMAND [ARGUMENT]...\n\n"
           "Shows what cri-device-shim does on this node, and why.\n\nCommands:\n");
    for (size_t i = 0; (command = command_at(i)); i++) {
        char use[64];

        snprintf(use, sizeof use, "%s %s", command->name, command->arguments);
        printf("  %-20s %s\n", use, command->summary);
    }
    fputs(HELP, stdout);
    exit(COMMAND_OK);
}

static _Noreturn void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void wrong(const char *format, ...)
{
    va_list args;

    fputs("error: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("; see cri-device-shimctl --help\n", stderr);
    exit(COMMAND_USAGE);
}

static void take_option(struct arguments *args, int option, char **argv)
{
    switch (option) {
    case 'o':
        if (!show_format_parse(optarg, &args->format))
            wrong("unknown format \"%s\"", optarg);
        return;
    case 's':
        args->socket = optarg;
        return;
    case 'w':
        args->watch = true;
        return;
    case 'h':
        help();
    case 'V':
        printf("cri-device-shimctl %s\n", version_text);
        exit(COMMAND_OK);
    case ':':
        wrong("%s needs a value", argv[optind - 1]);
    default:
        wrong("unknown option %s", argv[optind - 1]);
    }
}

static void take_command(struct arguments *args, char **rest, size_t rest_len)
{
    const struct command *command;

    if (rest_len == 0)
        wrong("no command");
    args->command = command = command_find(rest[0]);
    if (!command)
        wrong("unknown command \"%s\"", rest[0]);
    args->rest = rest + 1;
    args->rest_len = rest_len - 1;
    if (args->rest_len < command->arguments_min)
        wrong("an argument is missing: %s", command->arguments);
    if (args->rest_len > command->arguments_max)
        wrong("too many arguments for %s", command->name);
}

static void parse(struct arguments *args, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, ":o:s:whV", OPTIONS, NULL)) >= 0)
        take_option(args, option, argv);
    take_command(args, argv + optind, (size_t)(argc - optind));
}

/* ---- carrying it out ---- */

static bool wants_colors(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && term && strcmp(term, "dumb") != 0;
}

/* What is shown, in one piece, for the caller to free; NULL: nothing, and `failure` says why. */
static char *run_once(const struct arguments *args, struct client *client,
                      struct client_failure *failure)
{
    char *text = NULL;
    size_t len;
    struct show show = {.format = args->format, .colors = wants_colors()};
    bool done;

    show.out = open_memstream(&text, &len);
    if (!show.out)
        abort(); /* out of memory */
    done = args->command->run(client, &show, args->rest, args->rest_len, failure);
    if (fclose(show.out) != 0)
        abort();
    if (done)
        return text;
    free(text);
    return NULL;
}

static void say(const struct client_failure *failure)
{
    fprintf(stderr, "error: %s\n", failure->words);
}

/* On a terminal in the same place each time; elsewhere only what is new. */
static void repaint(const char *text, const char *before)
{
    if (isatty(STDOUT_FILENO))
        printf("\033[H\033[2J%s", text);
    else if (!before || strcmp(text, before) != 0)
        printf("%s%s", before ? "\n" : "", text);
    fflush(stdout);
}

/* Until somebody ends it. A daemon that restarts is not the end. */
static void watch(const struct arguments *args, struct client *client)
{
    char *before = NULL;

    while (!ferror(stdout)) {
        struct client_failure failure = {0};
        char *text = run_once(args, client, &failure);

        if (text) {
            repaint(text, before);
            free(before);
            before = text;
        } else {
            say(&failure);
        }
        sleep(WATCH_SECONDS);
    }
    free(before);
}

int main(int argc, char **argv)
{
    const char *named = getenv(SOCKET_VARIABLE);
    struct arguments args = {.socket = named && *named ? named : CONTROL_SOCKET_DEFAULT};
    struct client_failure failure = {0};
    struct client *client;
    char *text;

    opterr = 0; /* what is wrong is said here, in one line */
    parse(&args, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    client = client_new(args.socket);
    if (!client)
        abort(); /* out of memory */
    if (args.watch) {
        watch(&args, client);
        client_free(client);
        return COMMAND_FAILED;
    }
    text = run_once(&args, client, &failure);
    client_free(client);
    if (!text) {
        say(&failure);
        return (int)command_exit_of(&failure);
    }
    fputs(text, stdout);
    free(text);
    return fflush(stdout) == 0 ? COMMAND_OK : COMMAND_FAILED;
}
