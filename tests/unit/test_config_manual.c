/* config/manual.c: which comment is about which key, and how that is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/manual.h"

static struct manual manual;

static int read_nothing(void **state)
{
    (void)state;
    manual_init(&manual, "");
    return 0;
}

static int forget(void **state)
{
    (void)state;
    manual_fini(&manual);
    return 0;
}

static void read_text(const char *text)
{
    manual_fini(&manual);
    manual_init(&manual, text);
}

static const char *words_of(enum schema_section section, const char *name)
{
    const struct schema_key *key = schema_find(section, name, strlen(name));

    assert_non_null(key);
    return manual.words[manual.with[key - schema_keys]];
}

/* From the section's heading to the next one's; the caller frees it. */
static char *written(const char *heading)
{
    char *text = NULL, *begin, *end;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    manual_write(&manual, out);
    fclose(out);
    begin = strstr(text, heading);
    assert_non_null(begin);
    begin += strlen(heading);
    end = strstr(begin, ".SH ");
    memmove(text, begin, strlen(begin) + 1);
    if (end)
        text[end - begin] = '\0';
    return text;
}

static void a_comment_is_about_the_key_below_it(void **state)
{
    (void)state;
    read_text("# The file.\n"
              "\n"
              "# Where.\n"
              "listen = \"/x\"\n"
              "\n"
              "# How long,\n"
              "# and why.\n"
              "drain = \"10s\"\n"
              "[log]\n"
              "# How much.\n"
              "level = \"info\"");
    assert_string_equal(words_of(SECTION_TOP, "listen"), "Where.\n");
    assert_string_equal(words_of(SECTION_TOP, "drain"), "How long,\nand why.\n");
    assert_string_equal(words_of(SECTION_LOG, "level"), "How much.\n");
    assert_null(manual.about[SECTION_TOP]);
    assert_null(manual.about[SECTION_LOG]);
    assert_null(words_of(SECTION_LOG, "format"));
}

static void what_is_above_a_table_or_alone_is_about_it(void **state)
{
    (void)state;
    read_text("# The file.\n\n"
              "# Of all.\n\n"
              "# What is seen.\n"
              "[bridge]\n"
              "# Of shutdowns.\n\n"
              "[shutdown]\n"
              "# First.\n"
              "#\n"
              "# Second.\n"
              "\n"
              "# How long.\n"
              "grace = \"0s\"\n");
    assert_string_equal(manual.about[SECTION_TOP], "Of all.\n");
    assert_string_equal(manual.about[SECTION_BRIDGE], "What is seen.\n\nOf shutdowns.\n");
    assert_string_equal(manual.about[SECTION_SHUTDOWN], "First.\n\nSecond.\n");
    assert_string_equal(words_of(SECTION_SHUTDOWN, "grace"), "How long.\n");
}

static void keys_on_the_lines_below_share_it(void **state)
{
    (void)state;
    read_text("\n[bridge]\n"
              "# Whether, and how long.\n"
              "gate = true\n"
              "gate_timeout = \"10s\"\n"
              "\n"
              "enabled = true\n");
    assert_string_equal(words_of(SECTION_BRIDGE, "gate_timeout"), "Whether, and how long.\n");
    assert_null(words_of(SECTION_BRIDGE, "enabled"));
}

static void tables_that_are_commented_out_are_read(void **state)
{
    (void)state;
    read_text("\n"
              "# Devices.\n"
              "# [[device]]\n"
              "# # Its name.\n"
              "# resource = \"a.com/b\"\n"
              "#\n"
              "# [[device]]\n"
              "# # Said again.\n"
              "# resource = \"a.com/c\"\n"
              "# # Where.\n"
              "# path = \"/dev/c\"\n"
              "#\n"
              "# # Of one.\n"
              "# [[resource]]\n"
              "# # As elsewhere.\n"
              "# grace = \"5m\"\n"
              "# hold = \"5s\"\n");
    assert_string_equal(manual.about[SECTION_DEVICE], "Devices.\n");
    assert_string_equal(words_of(SECTION_DEVICE, "resource"), "Its name.\n");
    assert_string_equal(words_of(SECTION_DEVICE, "path"), "Where.\n");
    assert_string_equal(manual.about[SECTION_RESOURCE], "Of one.\n");
    assert_string_equal(manual.overrides, "As elsewhere.\n");
    assert_null(words_of(SECTION_PLUGINS, "grace"));
}

static void unknown_keys_are_passed_over(void **state)
{
    (void)state;
    read_text("\n# Of nothing.\nnothing = 1\nlisten = \"/x\"\n[none]\nNothing\n");
    assert_null(words_of(SECTION_TOP, "listen"));
}

static void the_first_key_without_words_is_told(void **state)
{
    (void)state;
    assert_ptr_equal(manual_lacks(&manual), schema_find(SECTION_TOP, "listen", 6));
    read_text("\n# Where.\nlisten = \"/x\"\n");
    assert_ptr_equal(manual_lacks(&manual), schema_find(SECTION_TOP, "runtime_endpoint", 16));
}

static void roff_has_default_and_reload(void **state)
{
    char *text;

    (void)state;
    read_text("\n[bridge]\n"
              "# \"a\" - one\n"
              "# .two \\ 'three\n"
              "#   four\n"
              "gate = true\n"
              "gate_timeout = \"10s\"\n"
              "\n"
              "# Names.\n"
              "kubelet_processes = [\"kubelet\"]\n");
    text = written(".SH \"[bridge]\"\n");
    assert_string_equal(text, ".TP\n.B \"gate = true\"\n"
                              ".TQ\n.B \"gate_timeout = \\(dq10s\\(dq\"\n"
                              ".br\n\\(dqa\\(dq \\- one\n"
                              "\\&.two \\e 'three\n"
                              "  four\n.br\n"
                              "A reload changes gate_timeout.\n"
                              ".TP\n.B \"kubelet_processes = [\\(dqkubelet\\(dq, "
                              "\\(dqk3s\\-server\\(dq, \\(dqk3s\\-agent\\(dq, "
                              "\\(dqkubelite\\(dq]\"\n"
                              "Names.\n");
    free(text);
}

static void roff_has_what_a_resource_may_have_of_its_own(void **state)
{
    char *text;

    (void)state;
    read_text("\n# One.\n[[resource]]\n# Two.\n\n# As there.\ngrace = \"5m\"\n");
    text = written(".SH \"[[resource]]\"\n");
    assert_string_equal(text, "One.\n.PP\nTwo.\n"
                              ".TP\n.B grace\n.TQ\n.B hold\n.TQ\n.B allocate_timeout\n"
                              ".TQ\n.B allocates_at_once\n"
                              ".TQ\n.B refresh_options\n.TQ\n.B taint_unhealthy_after\n"
                              "As there.\n");
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, read_nothing, forget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_comment_is_about_the_key_below_it),
        TEST(what_is_above_a_table_or_alone_is_about_it),
        TEST(keys_on_the_lines_below_share_it),
        TEST(tables_that_are_commented_out_are_read),
        TEST(unknown_keys_are_passed_over),
        TEST(the_first_key_without_words_is_told),
        TEST(roff_has_default_and_reload),
        TEST(roff_has_what_a_resource_may_have_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
