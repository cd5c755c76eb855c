#include "shim/ctl/command_line.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define WATCH_S_MAX (24 * 3600)
/* What getopt_long() returns for a command's own options: this, and their place. */
#define OWN 256

const struct command_line_common command_line_common[COMMAND_LINE_COMMON_LEN] = {
    {"output", 'o', "FORMAT", false, "json, wide (more columns) or name, in place of a table"},
    {"watch", 'w', "SECONDS", true, "ask again each 2 s, or so often, if the command only reads"},
    {"socket", 's', "PATH", false, "the daemon's control.socket"},
    {"help", 'h', NULL, false, "this, and end; of one command, behind its name"},
    {"version", 'V', NULL, false, "the version, and end"},
};

static enum command_line_result wrong(struct command_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum command_line_result wrong(struct command_line *line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(line->wrong, sizeof line->wrong, format, args);
    va_end(args);
    return COMMAND_LINE_WRONG;
}

/* ---- options ---- */

/* What getopt_long() is to know: the common ones, and a command's own. */
struct known {
    struct option longs[COMMAND_LINE_COMMON_LEN + COMMAND_OPTIONS_MAX + 1];
    size_t len;
    char letters[3 * (COMMAND_LINE_COMMON_LEN + COMMAND_OPTIONS_MAX) + 3];
};

static void know(struct known *known, const char *name, char letter, int argument, int value)
{
    static const char *const COLONS[] = {
        [no_argument] = "", [required_argument] = ":", [optional_argument] = "::"};
    const char text[] = {letter, '\0'};

    known->longs[known->len++] = (struct option){name, argument, NULL, value};
    if (letter == '\0')
        return;
    strcat(known->letters, text);
    strcat(known->letters, COLONS[argument]);
}

static void know_all(struct known *known, const struct command *command)
{
    *known = (struct known){0};
    /* Before the command it is the first word that ends the options. */
    strcpy(known->letters, command ? ":" : "+:");
    for (size_t i = 0; i < COMMAND_LINE_COMMON_LEN; i++) {
        const struct command_line_common *option = &command_line_common[i];

        know(known, option->name, option->letter,
             !option->value         ? no_argument
             : option->may_be_alone ? optional_argument
                                    : required_argument,
             option->letter);
    }
    for (size_t i = 0; command && i < command_options_len(command); i++) {
        const struct command_option *option = &command->options[i];

        know(known, option->name, option->letter, option->value ? required_argument : no_argument,
             OWN + (int)i);
    }
}

static int own_place(const struct command *command, int option)
{
    if (option >= OWN)
        return option - OWN;
    for (size_t i = 0; command && i < command_options_len(command); i++) {
        if (command->options[i].letter != '\0' && command->options[i].letter == option)
            return (int)i;
    }
    return -1;
}

static enum command_line_result take_watch(struct command_line *line)
{
    char *end;
    unsigned long seconds;

    if (!optarg) {
        line->watch_s = COMMAND_LINE_WATCH_S;
        return COMMAND_LINE_RUN;
    }
    seconds = strtoul(optarg, &end, 10);
    if (*end != '\0' || seconds < 1 || seconds > WATCH_S_MAX)
        return wrong(line, "\"%s\" is no number of seconds from 1 to %d", optarg, WATCH_S_MAX);
    line->watch_s = (unsigned int)seconds;
    return COMMAND_LINE_RUN;
}

static enum command_line_result take_option(struct command_line *line, int option, char **argv)
{
    int place = own_place(line->command, option);

    if (place >= 0) {
        line->options[place] = optarg ? optarg : "";
        return COMMAND_LINE_RUN;
    }
    switch (option) {
    case 'o':
        if (show_format_parse(optarg, &line->format))
            return COMMAND_LINE_RUN;
        return wrong(line, "unknown format \"%s\"", optarg);
    case 's':
        line->socket = optarg;
        return COMMAND_LINE_RUN;
    case 'w':
        return take_watch(line);
    case 'h':
        return COMMAND_LINE_HELP;
    case 'V':
        return COMMAND_LINE_VERSION;
    case ':':
        return wrong(line, "%s needs a value", argv[optind - 1]);
    default:
        if (optopt != 0 && optopt < OWN && strncmp(argv[optind - 1], "--", 2) != 0)
            return wrong(line, "unknown option -%c", optopt);
        return wrong(line, "unknown option %s", argv[optind - 1]);
    }
}

/* Up to the first word that is none if there is no command yet, else all. */
static enum command_line_result take_options(struct command_line *line, int argc, char **argv)
{
    struct known known;
    enum command_line_result result = COMMAND_LINE_RUN;
    int option;

    know_all(&known, line->command);
    opterr = 0; /* what is wrong is said by who calls this, in one line */
    optind = 0; /* getopt(3): begins anew */
    while (result == COMMAND_LINE_RUN &&
           (option = getopt_long(argc, argv, known.letters, known.longs, NULL)) >= 0)
        result = take_option(line, option, argv);
    return result;
}

/* ---- the command ---- */

static bool begins_with_word(const char *name, const char *word)
{
    size_t len = strlen(word);

    return strncmp(name, word, len) == 0 && (name[len] == '\0' || name[len] == ' ');
}

const struct command *command_line_find(const struct command *const *commands, char *const *rest,
                                        size_t rest_len, size_t *words)
{
    for (; *commands && rest_len > 0; commands++) {
        const char *second = strchr((*commands)->name, ' ');

        if (!begins_with_word((*commands)->name, rest[0]))
            continue;
        *words = second ? 2 : 1;
        if (!second || (rest_len > 1 && strcmp(second + 1, rest[1]) == 0))
            return *commands;
    }
    return NULL;
}

/* No command is called so: is it the first word of some? */
static enum command_line_result
wrong_command(struct command_line *line, const struct command *const *commands, const char *word)
{
    char seconds[128] = "";

    for (; *commands; commands++) {
        const char *second = strchr((*commands)->name, ' ');

        if (!second || !begins_with_word((*commands)->name, word))
            continue;
        snprintf(seconds + strlen(seconds), sizeof seconds - strlen(seconds), "%s%s",
                 *seconds ? ", " : "", second + 1);
    }
    if (*seconds)
        return wrong(line, "%s is followed by one of: %s", word, seconds);
    return wrong(line, "unknown command \"%s\"", word);
}

static enum command_line_result judge(struct command_line *line)
{
    const struct command *command = line->command;

    if (line->arguments_len < command->arguments_min)
        return wrong(line, "an argument is missing: %s", command->arguments);
    if (line->arguments_len > command->arguments_max)
        return wrong(line, "too many arguments for %s", command->name);
    if (line->watch_s > 0 && command->changes)
        return wrong(line, "%s cannot be watched", command->name);
    return COMMAND_LINE_RUN;
}

enum command_line_result command_line_parse(struct command_line *line,
                                            const struct command *const *commands, int argc,
                                            char **argv)
{
    enum command_line_result result;
    size_t words = 0;

    *line = (struct command_line){0};
    result = take_options(line, argc, argv);
    if (result != COMMAND_LINE_RUN)
        return result;
    if (optind == argc)
        return wrong(line, "no command");
    argc -= optind;
    argv += optind;
    line->command = command_line_find(commands, argv, (size_t)argc, &words);
    if (!line->command)
        return wrong_command(line, commands, argv[0]);
    argc -= (int)words - 1; /* getopt(3) leaves out the first */
    argv += words - 1;
    result = take_options(line, argc, argv);
    if (result != COMMAND_LINE_RUN)
        return result;
    line->arguments = argv + optind;
    line->arguments_len = (size_t)(argc - optind);
    return judge(line);
}
