/* config/schema.c against config/example.toml: every key, its default and its bounds. */
#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "config/schema.h"
#include "config/toml.hpp"

/* Behind all that is C++: its fail() is a macro, and a function of every stream. */
extern "C" {
#include <cmocka.h>
}

/* The example with its tables that are commented out made real: all behind the first "# [[". */
static char text[32768];
static toml::table root;

static int read_example(void **state)
{
    FILE *file = fopen(EXAMPLE_TOML, "rb");
    char *from, *to;

    (void)state;
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_true(feof(file));
    fclose(file);
    from = to = strstr(text, "# [[device]]");
    assert_non_null(from);
    while (*from) {
        size_t line = strcspn(from, "\n") + (strchr(from, '\n') != NULL);
        size_t skip = strncmp(from, "# ", 2) == 0 ? 2 : 0;

        memmove(to, from + skip, line - skip);
        to += line - skip;
        from += line;
    }
    *to = '\0';
    root = toml::parse(text);
    return 0;
}

/* ---- the tables of a section ---- */

using visit_fn = std::function<void(enum schema_section section, const toml::table &table)>;

static void visit(enum schema_section section, const toml::table &table, const visit_fn &fn)
{
    const struct schema_key *key = NULL;

    fn(section, table);
    while ((key = schema_next(section, key))) {
        const toml::node *node = table.get(key->name);

        if (node && key->type == VALUE_TABLE)
            visit(key->inner, *node->as_table(), fn);
        if (!node || key->type != VALUE_TABLES)
            continue;
        for (const toml::node &element : *node->as_array()) {
            if (element.is_table())
                visit(key->inner, *element.as_table(), fn);
        }
    }
}

/* The first there is. */
static const toml::node *find(enum schema_section wanted, const struct schema_key *key)
{
    const toml::node *found = NULL;

    visit(SECTION_TOP, root, [&](enum schema_section section, const toml::table &table) {
        if (section == wanted && !found)
            found = table.get(key->name);
    });
    return found;
}

/* As the table writes a default. */
static std::string write_value(const toml::node &node)
{
    std::string out;

    if (const auto *flag = node.as_boolean())
        return flag->get() ? "true" : "false";
    if (const auto *number = node.as_integer())
        return std::to_string(number->get());
    if (const auto *array = node.as_array()) {
        for (const toml::node &element : *array)
            out += (out.empty() ? "" : ",") + element.value_or<std::string>("a table");
    }
    return node.value_or(out);
}

static void the_example_has_each_key_with_its_default(void **state)
{
    size_t n = 0;

    (void)state;
    for (int section = 0; section < SECTIONS; section++) {
        const struct schema_key *key = NULL;

        while ((key = schema_next((enum schema_section)section, key))) {
            const toml::node *node = find((enum schema_section)section, key);

            if (!node)
                fail_msg("example.toml lacks %s in %s", key->name, schema_tables[section].name);
            if (key->initial && write_value(*node) != key->initial)
                fail_msg("%s in %s is %s, its default %s", key->name, schema_tables[section].name,
                         write_value(*node).c_str(), key->initial);
            n++;
        }
    }
    assert_true(n > schema_keys_len); /* those of [[resource]] twice */
}

static void each_key_of_the_example_is_in_the_table(void **state)
{
    size_t n = 0;

    (void)state;
    visit(SECTION_TOP, root, [&](enum schema_section section, const toml::table &table) {
        for (const auto &[name, node] : table) {
            if (!schema_find(section, name.str().data(), name.str().size()))
                fail_msg("%s in %s", name.str().data(), schema_tables[section].name);
            n++;
        }
    });
    assert_true(n > schema_keys_len);
}

static void a_key_has_one_row(void **state)
{
    (void)state;
    for (int section = 0; section < SECTIONS; section++) {
        const struct schema_key *a = NULL, *b;

        while ((a = schema_next((enum schema_section)section, a))) {
            for (b = a; (b = schema_next((enum schema_section)section, b));)
                assert_string_not_equal(a->name, b->name);
        }
    }
}

/* ---- bounds ---- */

/* As the comment above the key says it; "" where it need not. */
static void write_bounds(const struct schema_key *key, char *out, size_t size)
{
    bool path = key->type == VALUE_SOCKET || key->type == VALUE_DIRECTORY;

    *out = '\0';
    if (key->type == VALUE_DURATION && key->min)
        snprintf(out, size, "from \"%s\" to \"%s\"", key->min, key->max);
    else if (key->type == VALUE_DURATION)
        snprintf(out, size, "at most \"%s\"", key->max);
    else if (key->type == VALUE_COUNT)
        snprintf(out, size, "%s to %s", key->min, key->max);
    else if (path && key->limit <= SOCKET_BYTES_MAX) /* any path has the system's bound */
        snprintf(out, size, "at most %zu bytes", key->limit);
    else if (!path && key->limit > 0)
        snprintf(out, size, "at most %zu", key->limit);
}

static const struct schema_key *key_of_line(enum schema_section section, const char *line)
{
    const struct schema_key *key = NULL;

    while ((key = schema_next(section, key))) {
        size_t len = strlen(key->name);

        if (strncmp(line, key->name, len) == 0 && strncmp(line + len, " = ", 3) == 0)
            return key;
    }
    return NULL;
}

static enum schema_section section_of_line(const char *line)
{
    for (int section = 0; section < SECTIONS; section++) {
        if (strcmp(schema_tables[section].name, line) == 0)
            return (enum schema_section)section;
    }
    fail_msg("%s", line);
    return SECTION_TOP;
}

static size_t count(const char *in, const char *word)
{
    size_t n = 0;

    for (; (in = strcasestr(in, word)); in++)
        n++;
    return n;
}

/* In the comment above the key, or above those that stand with it. And no other: each phrase of a
 * duration is one key's. */
static void the_example_states_the_bounds(void **state)
{
    char *rest = strdup(text), *next = rest, *line, comment[4096] = "", bounds[64];
    enum schema_section section = SECTION_TOP;
    bool key_before = false;
    size_t durations = 0, checked = 0;

    (void)state;
    while ((line = strsep(&next, "\n"))) {
        const struct schema_key *key = key_of_line(section, line);

        if (line[0] == '#') {
            if (key_before)
                comment[0] = '\0';
            assert_true(strlen(comment) + strlen(line) < sizeof comment);
            strcat(comment, line + 1);
        } else if (!key) {
            comment[0] = '\0';
        }
        key_before = key != NULL;
        if (line[0] == '[')
            section = section_of_line(line);
        if (!key || (section == SECTION_RESOURCE && key->section != section))
            continue; /* "as in [plugins]" */
        write_bounds(key, bounds, sizeof bounds);
        if (!strcasestr(comment, bounds))
            fail_msg("%s: \"%s\" is not in \"%s\"", key->name, bounds, comment);
        durations += key->type == VALUE_DURATION;
        checked += *bounds != '\0';
    }
    free(rest);
    assert_int_equal(count(text, "at most \"") + count(text, "from \""), durations);
    assert_true(checked >= 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_has_each_key_with_its_default),
        cmocka_unit_test(each_key_of_the_example_is_in_the_table),
        cmocka_unit_test(a_key_has_one_row),
        cmocka_unit_test(the_example_states_the_bounds),
    };

    return cmocka_run_group_tests(tests, read_example, NULL);
}
