/* shim/ctl/command_line.c: what is understood, and what is said of what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/ctl/command_line.h"
#include "shim/ctl/commands.h"

static const struct command LIST = {
    .name = "list",
    .arguments = "[KIND]",
    .arguments_max = 1,
    .options = {{"follow", 'f', NULL, "go on"}, {"since", '\0', "DURATION", "not before"}}};
static const struct command EXTEND = {.name = "grace extend",
                                      .arguments = "RESOURCE DURATION",
                                      .arguments_min = 2,
                                      .arguments_max = 2,
                                      .changes = true};
static const struct command END = {.name = "grace end",
                                   .arguments = "RESOURCE",
                                   .arguments_min = 1,
                                   .arguments_max = 1,
                                   .changes = true};
static const struct command *const COMMANDS[] = {&LIST, &EXTEND, &END, NULL};

static struct command_line line;

#define ARGUMENTS_MAX 12

/* argv is put into another order: it lives as long as `line` does. */
static enum command_line_result parse(const char *words)
{
    static char text[256];
    static char *argv[ARGUMENTS_MAX + 2];
    int argc = 0;

    argv[argc++] = text;
    strcpy(text, "ctl ");
    strcpy(text + 4, words);
    strtok(text, " ");
    while ((argv[argc] = strtok(NULL, " "))) {
        argc++;
        assert_true(argc <= ARGUMENTS_MAX);
    }
    return command_line_parse(&line, COMMANDS, argc, argv);
}

static void assert_runs(const char *words, const struct command *command)
{
    assert_int_equal(parse(words), COMMAND_LINE_RUN);
    assert_ptr_equal(line.command, command);
}

static void assert_wrong(const char *words, const char *what)
{
    assert_int_equal(parse(words), COMMAND_LINE_WRONG);
    assert_string_equal(line.wrong, what);
}

static void a_command_of_one_word(void **state)
{
    (void)state;
    assert_runs("list", &LIST);
    assert_int_equal(line.arguments_len, 0);
    assert_null(line.options[0]);
    assert_null(line.options[1]);
    assert_null(line.socket);
    assert_int_equal(line.format, SHOW_TABLE);
    assert_int_equal(line.watch_s, 0);
}

static void a_command_of_two(void **state)
{
    (void)state;
    assert_runs("grace extend a.b/c 5m", &EXTEND);
    assert_int_equal(line.arguments_len, 2);
    assert_string_equal(line.arguments[0], "a.b/c");
    assert_string_equal(line.arguments[1], "5m");
    assert_runs("grace end a.b/c", &END);
    assert_string_equal(line.arguments[0], "a.b/c");
}

static void options_of_all_stand_anywhere(void **state)
{
    static const char *const WAYS[] = {"-o json -s /s list gpu", "list -o json gpu -s /s",
                                       "list gpu --output=json --socket /s",
                                       "-ojson list --socket=/s -- gpu"};

    (void)state;
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        assert_runs(WAYS[i], &LIST);
        assert_int_equal(line.format, SHOW_JSON);
        assert_string_equal(line.socket, "/s");
        assert_int_equal(line.arguments_len, 1);
        assert_string_equal(line.arguments[0], "gpu");
    }
}

static void a_commands_own_options(void **state)
{
    (void)state;
    assert_runs("list -f gpu --since 1h", &LIST);
    assert_string_equal(line.options[0], "");
    assert_string_equal(line.options[1], "1h");
    assert_string_equal(line.arguments[0], "gpu");
    assert_runs("list --follow", &LIST);
    assert_string_equal(line.options[0], "");
    assert_null(line.options[1]);
    assert_wrong("-f list", "unknown option -f");
    assert_wrong("list --since", "--since needs a value");
}

/* No command has an option that means something else everywhere, nor takes one twice. */
static void no_option_means_two_things(void **state)
{
    (void)state;
    for (size_t n = 0; commands[n]; n++) {
        const struct command_option *own = commands[n]->options;
        size_t len = command_options_len(commands[n]);

        for (size_t i = 0; i < len; i++) {
            for (size_t j = 0; j < COMMAND_LINE_COMMON_LEN; j++) {
                assert_string_not_equal(own[i].name, command_line_common[j].name);
                assert_int_not_equal(own[i].letter, command_line_common[j].letter);
            }
            for (size_t j = 0; j < i; j++) {
                assert_string_not_equal(own[i].name, own[j].name);
                assert_true(own[i].letter == '\0' || own[i].letter != own[j].letter);
            }
        }
    }
}

static void behind_two_dashes_is_no_option(void **state)
{
    (void)state;
    assert_runs("grace extend -- -a 5m", &EXTEND);
    assert_string_equal(line.arguments[0], "-a");
}

static void watching(void **state)
{
    (void)state;
    assert_runs("list -w", &LIST);
    assert_int_equal(line.watch_s, COMMAND_LINE_WATCH_S);
    assert_runs("list -w gpu", &LIST);
    assert_string_equal(line.arguments[0], "gpu");
    assert_runs("--watch=10 list", &LIST);
    assert_int_equal(line.watch_s, 10);
    assert_runs("list -w86400", &LIST);
    assert_wrong("list -w0", "\"0\" is no number of seconds from 1 to 86400");
    assert_wrong("list -w86401", "\"86401\" is no number of seconds from 1 to 86400");
    assert_wrong("list --watch=1s", "\"1s\" is no number of seconds from 1 to 86400");
    assert_wrong("list --watch=", "\"\" is no number of seconds from 1 to 86400");
    assert_wrong("grace end a.b/c -w", "grace end cannot be watched");
}

static void help_and_version(void **state)
{
    (void)state;
    assert_int_equal(parse("-h"), COMMAND_LINE_HELP);
    assert_null(line.command);
    assert_int_equal(parse("grace end --help"), COMMAND_LINE_HELP);
    assert_ptr_equal(line.command, &END);
    assert_int_equal(parse("list -V"), COMMAND_LINE_VERSION);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    assert_wrong("", "no command");
    assert_wrong("nonsense", "unknown command \"nonsense\"");
    assert_wrong("lis", "unknown command \"lis\"");
    assert_wrong("grace", "grace is followed by one of: extend, end");
    assert_wrong("grace prolong", "grace is followed by one of: extend, end");
    assert_wrong("grace end", "an argument is missing: RESOURCE");
    assert_wrong("list a b", "too many arguments for list");
    assert_wrong("list -o xml", "unknown format \"xml\"");
    assert_wrong("list -fz", "unknown option -z");
    assert_wrong("list --nonsense", "unknown option --nonsense");
    assert_wrong("list --follow=yes", "unknown option --follow=yes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_of_one_word),
        cmocka_unit_test(a_command_of_two),
        cmocka_unit_test(options_of_all_stand_anywhere),
        cmocka_unit_test(a_commands_own_options),
        cmocka_unit_test(no_option_means_two_things),
        cmocka_unit_test(behind_two_dashes_is_no_option),
        cmocka_unit_test(watching),
        cmocka_unit_test(help_and_version),
        cmocka_unit_test(what_is_wrong_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
