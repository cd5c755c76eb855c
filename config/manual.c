#include "config/manual.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NO_KEY SIZE_MAX

/* Without memory there is no page: it is made in a build. */
static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* Adds a line to the text, which is NULL at first. */
static void add_line(char **text, const char *line, size_t len)
{
    size_t used = *text ? strlen(*text) : 0;

    *text = must(realloc(*text, used + len + 2));
    memcpy(*text + used, line, len);
    memcpy(*text + used + len, "\n", 2);
}

/* The comment becomes a paragraph of the text. */
static void move_paragraph(char **text, char **comment)
{
    if (*comment && *text)
        add_line(text, "", 0);
    if (*comment)
        add_line(text, *comment, strlen(*comment) - 1);
    free(*comment);
    *comment = NULL;
}

/* ---- reading ---- */

struct reader {
    struct manual *manual;
    enum schema_section section;
    bool begun;    /* past the first paragraph, which is about the file */
    char *comment; /* the lines since the last that was none */
    size_t last;   /* the key on the line before; NO_KEY: none is */
};

/* The name's length; 0: the line assigns to none. */
static size_t assigned_len(const char *line)
{
    size_t len = 0;

    while (islower((unsigned char)line[len]) || line[len] == '_')
        len++;
    return strncmp(line + len, " = ", 3) == 0 ? len : 0;
}

static void read_table(struct reader *reader, const char *line, size_t len)
{
    for (int section = 0; section < SECTIONS; section++) {
        const char *name = schema_tables[section].name;

        if (strlen(name) == len && strncmp(name, line, len) == 0)
            reader->section = (enum schema_section)section;
    }
    move_paragraph(&reader->manual->about[reader->section], &reader->comment);
}

/* Its words are the comment; without one, those of the key before. */
static void read_key(struct reader *reader, const struct schema_key *key)
{
    struct manual *manual = reader->manual;
    size_t index = (size_t)(key - schema_keys);

    if (key->section != reader->section)
        move_paragraph(&manual->overrides, &reader->comment);
    else if (reader->comment && !manual->words[index])
        move_paragraph(&manual->words[index], &reader->comment);
    else if (!reader->comment && !manual->words[index] && reader->last != NO_KEY)
        manual->with[index] = manual->with[reader->last];
    reader->last = index;
}

static void drop_comment(struct reader *reader)
{
    free(reader->comment);
    reader->comment = NULL;
}

static void read_line(struct reader *reader, const char *line, size_t len)
{
    const struct schema_key *key;
    const char *inner = line + 2;

    if (strncmp(line, "# ", 2) == 0 && (*inner == '#' || *inner == '[' || assigned_len(inner))) {
        line += 2;
        len -= 2;
    }
    if (!reader->begun && len <= 1) {
        reader->begun = true;
        drop_comment(reader);
    } else if (len <= 1) {
        move_paragraph(&reader->manual->about[reader->section], &reader->comment);
        reader->last = NO_KEY;
    } else if (*line == '#') {
        add_line(&reader->comment, line + 2, len - 2);
        reader->last = NO_KEY;
    } else if (*line == '[') {
        read_table(reader, line, len);
    } else {
        key = schema_find(reader->section, line, assigned_len(line));
        if (key)
            read_key(reader, key);
        drop_comment(reader);
    }
}

void manual_init(struct manual *manual, const char *example)
{
    struct reader reader = {.manual = manual, .last = NO_KEY};

    memset(manual, 0, sizeof *manual);
    manual->words = must(calloc(schema_keys_len, sizeof *manual->words));
    manual->with = must(calloc(schema_keys_len, sizeof *manual->with));
    for (size_t i = 0; i < schema_keys_len; i++)
        manual->with[i] = i;
    while (*example) {
        size_t len = strcspn(example, "\n");

        read_line(&reader, example, len);
        example += len + (example[len] == '\n');
    }
    drop_comment(&reader);
}

void manual_fini(struct manual *manual)
{
    for (int section = 0; section < SECTIONS; section++)
        free(manual->about[section]);
    for (size_t i = 0; i < schema_keys_len; i++)
        free(manual->words[i]);
    free(manual->words);
    free(manual->with);
    free(manual->overrides);
}

/* ---- what there is ---- */

/* Of one that is just an element of a key's array the key's words tell. */
static bool has_section(enum schema_section section)
{
    return section == SECTION_TOP || schema_tables[section].name[0] == '[';
}

/* Whether it is a key that a file assigns to, and not the name of tables. */
static bool has_words(const struct schema_key *key)
{
    bool of_tables = key->type == VALUE_TABLE || key->type == VALUE_TABLES;

    return has_section(key->section) && !(of_tables && has_section(key->inner));
}

const struct schema_key *manual_lacks(const struct manual *manual)
{
    for (size_t i = 0; i < schema_keys_len; i++) {
        if (has_words(&schema_keys[i]) && !manual->words[manual->with[i]])
            return &schema_keys[i];
    }
    return NULL;
}

/* ---- writing ---- */

static void write_escaped(const char *text, size_t len, FILE *out)
{
    if (len > 0 && (*text == '.' || *text == '\''))
        fputs("\\&", out);
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else if (text[i] == '"')
            fputs("\\(dq", out);
        else
            fputc(text[i], out);
    }
}

/* Between paragraphs `request`. A line that begins with spaces, which breaks the one before, or
 * with a value and a dash stands alone. */
static void write_text(const char *text, const char *request, FILE *out)
{
    while (text && *text) {
        size_t len = strcspn(text, "\n");
        bool is_value = *text == '"' && memmem(text, len, "- ", 2);

        if (len == 0) {
            fprintf(out, "%s\n", request);
        } else {
            fputs(is_value ? ".br\n" : "", out);
            write_escaped(text, len, out);
            fputs(*text == ' ' ? "\n.br\n" : "\n", out);
        }
        text += len + 1;
    }
}

/* As in a file. */
static void write_initial(const struct schema_key *key, FILE *out)
{
    const char *at = key->initial;
    bool bare = key->type == VALUE_FLAG || key->type == VALUE_COUNT || key->type == VALUE_INTEGER;
    bool list = key->type == VALUE_NAMES;

    fputs(list ? " = [" : bare ? " = " : " = \\(dq", out);
    while (list && *at) {
        size_t len = strcspn(at, ",");

        fputs("\\(dq", out);
        write_escaped(at, len, out);
        fputs(at[len] ? "\\(dq, " : "\\(dq", out);
        at += len + (at[len] == ',');
    }
    write_escaped(at, strlen(at), out);
    fputs(list ? "]" : bare ? "" : "\\(dq", out);
}

static void write_tag(const struct schema_key *key, bool first, FILE *out)
{
    fprintf(out, "%s\n.B \"", first ? ".TP" : ".TQ");
    write_escaped(key->name, strlen(key->name), out);
    if (key->initial)
        write_initial(key, out);
    fputs("\"\n", out);
}

/* With those that share its words. */
static void write_key(const struct manual *manual, size_t index, FILE *out)
{
    size_t n = 0, live = 0;

    for (size_t i = index; i < schema_keys_len; i++) {
        if (manual->with[i] == index) {
            write_tag(&schema_keys[i], i == index, out);
            n++;
            live += schema_keys[i].live;
        }
    }
    write_text(manual->words[index], ".IP", out);
    if (live == n)
        fprintf(out, "A reload changes %s.\n", n == 1 ? "it" : "them");
    for (size_t i = index; live < n && i < schema_keys_len; i++) {
        if (manual->with[i] == index && schema_keys[i].live)
            fprintf(out, "A reload changes %s.\n", schema_keys[i].name);
    }
}

static void write_overrides(const struct manual *manual, FILE *out)
{
    bool first = true;

    for (size_t i = 0; i < schema_keys_len; i++) {
        if (schema_keys[i].override) {
            fprintf(out, "%s\n.B %s\n", first ? ".TP" : ".TQ", schema_keys[i].name);
            first = false;
        }
    }
    write_text(manual->overrides, ".IP", out);
}

void manual_write(const struct manual *manual, FILE *out)
{
    for (int section = 0; section < SECTIONS; section++) {
        if (!has_section((enum schema_section)section))
            continue;
        fprintf(out, ".SH \"%s\"\n",
                section == SECTION_TOP ? "SETTINGS" : schema_tables[section].name);
        write_text(manual->about[section], ".PP", out);
        for (size_t i = 0; i < schema_keys_len; i++) {
            if ((int)schema_keys[i].section == section && has_words(&schema_keys[i]) &&
                manual->words[i])
                write_key(manual, i, out);
        }
        if (section == SECTION_RESOURCE)
            write_overrides(manual, out);
    }
}
