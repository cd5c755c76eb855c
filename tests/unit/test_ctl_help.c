/* shim/ctl/help.c: what is said of commands and their options, and what a shell may complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/ctl/help.h"

static const struct command LIST = {.name = "list",
                                    .arguments = "",
                                    .summary = "what there is",
                                    .options = {{"follow", 'f', NULL, "go on"},
                                                {"reason", '\0', "TEXT", "why"},
                                                {"file", '\0', "FILE", "where"}}};
static const struct command EXTEND = {
    .name = "grace extend", .arguments = "RESOURCE DURATION", .summary = "it lasts longer"};
static const struct command END = {
    .name = "grace end", .arguments = "RESOURCE", .summary = "it is over"};
static const struct command TAKE = {.name = "take", .arguments = "FILE", .summary = "from it"};
static const struct command *const COMMANDS[] = {&LIST, &EXTEND, &END, &TAKE, NULL};

static char *said; /* by the last of these */

#define SAYS(say)                                                                                  \
    do {                                                                                           \
        size_t len_;                                                                               \
        FILE *out;                                                                                 \
                                                                                                   \
        free(said);                                                                                \
        out = open_memstream(&said, &len_);                                                        \
        assert_non_null(out);                                                                      \
        say;                                                                                       \
        assert_int_equal(fclose(out), 0);                                                          \
    } while (0)

static void assert_said(const char *words)
{
    if (!strstr(said, words))
        fail_msg("\"%s\" is not in:\n%s", words, said);
}

static void of_all(void **state)
{
    (void)state;
    SAYS(help_of_all(out, COMMANDS));
    assert_said("\n  list                            what there is\n");
    assert_said("\n  grace extend RESOURCE DURATION  it lasts longer\n");
    assert_said("\n  -o, --output FORMAT ");
    assert_said("\n  -w, --watch[=SECONDS] ");
    assert_null(strstr(said, "--follow"));
}

static void of_one(void **state)
{
    (void)state;
    SAYS(help_of(out, &LIST));
    assert_said("Usage: cri-device-shimctl list [OPTION]...\n\nlist: what there is\n");
    assert_said("\nOptions:\n  -f, --follow            go on\n      --reason TEXT       why\n");
    assert_said("\nOptions of all commands:\n  -o, --output");
    SAYS(help_of(out, &END));
    assert_null(strstr(said, "\nOptions:\n"));
}

/* ---- completion ---- */

static void complete(const char *words)
{
    static char nothing[1];
    char text[256], *argv[16];
    size_t argc = 0;

    strcpy(text, words);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = strcmp(word, "''") == 0 ? nothing : word;
    SAYS(help_complete(out, COMMANDS, argv, argc));
}

static void commands_first(void **state)
{
    (void)state;
    complete("''");
    assert_int_equal(strncmp(said, "list\twhat there is\ngrace\t\ntake\tfrom it\n-o\t", 41), 0);
    assert_said("\n--output\tjson, wide");
    assert_null(strstr(said, "--follow"));
}

static void then_their_second_words(void **state)
{
    (void)state;
    complete("-o json grace ''");
    assert_int_equal(strncmp(said, "extend\tit lasts longer\nend\tit is over\n-o\t", 41), 0);
    complete("grace end ''");
    assert_int_equal(strncmp(said, "-o\t", 3), 0);
}

static void then_their_options(void **state)
{
    (void)state;
    complete("list --f");
    assert_said("\n-f\tgo on\n--follow\tgo on\n--reason\twhy\n");
    complete("grace end ''");
    assert_null(strstr(said, "--follow"));
}

static void files(void **state)
{
    (void)state;
    complete("take ''");
    assert_int_equal(strncmp(said, ":files\n", 7), 0);
    assert_said("--output");
    complete("take -o name ''");
    assert_int_equal(strncmp(said, ":files\n", 7), 0);
    complete("take one ''");
    assert_null(strstr(said, ":files"));
    complete("grace end ''");
    assert_null(strstr(said, ":files"));
}

static void values(void **state)
{
    (void)state;
    complete("-o ''");
    assert_int_equal(strncmp(said, "json\t", 5), 0);
    complete("list --output w");
    assert_int_equal(strncmp(said, "json\t", 5), 0);
    complete("list --socket ''");
    assert_string_equal(said, ":files\n");
    complete("list --file ''");
    assert_string_equal(said, ":files\n");
    complete("list --reason ''"); /* anything */
    assert_string_equal(said, "");
    complete("list -w ''"); /* it stands alone, or its value with it */
    assert_said("--reason\twhy\n");
    complete("list --output=json ''");
    assert_said("--reason\twhy\n");
    complete("list --reason -o ''"); /* -o is the reason */
    assert_said("--reason\twhy\n");
}

static int forget(void **state)
{
    (void)state;
    free(said);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_all),
        cmocka_unit_test(of_one),
        cmocka_unit_test(commands_first),
        cmocka_unit_test(then_their_second_words),
        cmocka_unit_test(then_their_options),
        cmocka_unit_test(files),
        cmocka_unit_test(values),
    };

    return cmocka_run_group_tests(tests, NULL, forget);
}
