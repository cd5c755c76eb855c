#include "shim/ctl/help.h"

#include <stdlib.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/ctl/command_line.h"

#define OPTION_BYTES 48

/* ---- for people ---- */

static const char *option_text(char out[static OPTION_BYTES], const char *name, char letter,
                               const char *value, bool may_be_alone)
{
    char text[OPTION_BYTES] = "   ";

    if (letter != '\0')
        snprintf(text, sizeof text, "-%c,", letter);
    snprintf(out, OPTION_BYTES, may_be_alone ? "%s --%.20s[=%.16s]" : "%s --%.20s %.16s", text,
             name, value ? value : "");
    return out;
}

static void put_common(FILE *out)
{
    char text[OPTION_BYTES];

    for (size_t i = 0; i < COMMAND_LINE_COMMON_LEN; i++) {
        const struct command_line_common *option = &command_line_common[i];

        fprintf(
            out, "  %-23s %s\n",
            option_text(text, option->name, option->letter, option->value, option->may_be_alone),
            option->summary);
    }
}

static int use_of(const struct command *command, char *out, size_t size)
{
    return snprintf(out, size, "%s%s%s", command->name, command->arguments[0] ? " " : "",
                    command->arguments);
}

void help_of_all(FILE *out, const struct command *const *commands)
{
    char use[96];
    int width = 0;

    for (size_t i = 0; commands[i]; i++) {
        int len = use_of(commands[i], use, sizeof use);

        width = len > width ? len : width;
    }
    fputs("Usage: cri-device-shimctl [OPTION]... COMMAND [OPTION]... [ARGUMENT]...\n\n"
          "Shows what cri-device-shim does on this node, and why.\n\nCommands:\n",
          out);
    for (size_t i = 0; commands[i]; i++) {
        use_of(commands[i], use, sizeof use);
        fprintf(out, "  %-*s  %s\n", width, use, commands[i]->summary);
    }
    fputs("\nOptions:\n", out);
    put_common(out);
    fputs("\nWithout --socket it is $" COMMAND_LINE_SOCKET_VARIABLE
          ", or else\n" CONTROL_SOCKET_DEFAULT ". cri-device-shimctl(1) has more.\n",
          out);
}

void help_of(FILE *out, const struct command *command)
{
    size_t options_len = command_options_len(command);
    char text[OPTION_BYTES], use[96];

    use_of(command, use, sizeof use);
    fprintf(out, "Usage: cri-device-shimctl %s [OPTION]...\n\n%s: %s\n", use, command->name,
            command->summary);
    if (options_len > 0)
        fputs("\nOptions:\n", out);
    for (size_t i = 0; i < options_len; i++) {
        const struct command_option *option = &command->options[i];

        fprintf(out, "  %-23s %s\n",
                option_text(text, option->name, option->letter, option->value, false),
                option->summary);
    }
    fputs("\nOptions of all commands:\n", out);
    put_common(out);
}

/* ---- for a shell ---- */

/* Of the option that a word is, what it takes; NULL: it is none, or takes nothing, or has it. */
static const char *taken_by(const struct command *command, const char *word)
{
    bool is_long = strncmp(word, "--", 2) == 0, is_short = !is_long && word[0] == '-' && word[1];

    if (!is_long && (!is_short || word[2]))
        return NULL;
    for (size_t i = 0; i < COMMAND_LINE_COMMON_LEN; i++) {
        const struct command_line_common *option = &command_line_common[i];

        if (!option->may_be_alone &&
            (is_long ? strcmp(word + 2, option->name) == 0 : word[1] == option->letter))
            return option->value;
    }
    for (size_t i = 0; command && i < command_options_len(command); i++) {
        const struct command_option *option = &command->options[i];

        if (is_long ? strcmp(word + 2, option->name) == 0 : word[1] == option->letter)
            return option->value;
    }
    return NULL;
}

static void complete_value(FILE *out, const char *value)
{
    if (strcmp(value, "FORMAT") == 0)
        fputs("json\tfor programs\nname\tnames only\nwide\twith more columns\n", out);
    else if (strcmp(value, "PATH") == 0 || strcmp(value, "FILE") == 0)
        fputs(":files\n", out);
}

static void complete_option(FILE *out, const char *name, char letter, const char *summary)
{
    if (letter != '\0')
        fprintf(out, "-%c\t%s\n", letter, summary);
    fprintf(out, "--%s\t%s\n", name, summary);
}

static void complete_options(FILE *out, const struct command *command)
{
    for (size_t i = 0; i < COMMAND_LINE_COMMON_LEN; i++)
        complete_option(out, command_line_common[i].name, command_line_common[i].letter,
                        command_line_common[i].summary);
    for (size_t i = 0; command && i < command_options_len(command); i++)
        complete_option(out, command->options[i].name, command->options[i].letter,
                        command->options[i].summary);
}

/* The first words of names, or the second ones behind `first`. */
static void complete_command(FILE *out, const struct command *const *commands, const char *first)
{
    size_t first_len = first ? strlen(first) : 0;
    const char *before = "";

    for (; *commands; commands++) {
        const char *name = (*commands)->name;
        size_t len = strcspn(name, " ");
        bool again = strlen(before) >= len && strncmp(before, name, len) == 0;

        if (first && len == first_len && strncmp(name, first, len) == 0 && name[len] == ' ')
            fprintf(out, "%s\t%s\n", name + len + 1, (*commands)->summary);
        else if (!first && !again)
            fprintf(out, "%.*s\t%s\n", (int)len, name, name[len] ? "" : (*commands)->summary);
        before = name;
    }
}

/* What is typed already. */
struct typed {
    const struct command *command; /* NULL: not yet */
    char *names[2];                /* the words that may be its name */
    size_t names_len;
    size_t arguments_len; /* behind its name */
    const char *value;    /* the last word is an option's, and so called; NULL: it is none's */
};

static void read_typed(struct typed *typed, const struct command *const *commands,
                       char *const *words, size_t words_len)
{
    size_t ignored;

    for (size_t i = 0; i + 1 < words_len; i++) {
        if (typed->value || words[i][0] == '-') {
            typed->value = typed->value ? NULL : taken_by(typed->command, words[i]);
        } else if (!typed->command && typed->names_len < 2) {
            typed->names[typed->names_len++] = words[i];
            typed->command = command_line_find(commands, typed->names, typed->names_len, &ignored);
        } else {
            typed->arguments_len++;
        }
    }
}

/* The last word may be a file: the command's only argument is one. */
static bool may_be_file(const struct typed *typed)
{
    const char *arguments = typed->command ? typed->command->arguments : "";

    return typed->arguments_len == 0 &&
           (strcmp(arguments, "FILE") == 0 || strcmp(arguments, "[FILE]") == 0);
}

void help_complete(FILE *out, const struct command *const *commands, char *const *words,
                   size_t words_len)
{
    struct typed typed = {0};

    read_typed(&typed, commands, words, words_len);
    if (typed.value) {
        complete_value(out, typed.value);
        return;
    }
    if (!typed.command)
        complete_command(out, commands, typed.names[0]);
    if (may_be_file(&typed))
        fputs(":files\n", out);
    complete_options(out, typed.command);
}
