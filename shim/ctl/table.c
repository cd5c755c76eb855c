#include "shim/ctl/table.h"

#include <stdlib.h>

#include <libsmartcols.h>

#include "shim/must.h"

struct table {
    const struct show *show;
    const struct table_column *columns;
    struct libscols_table *rows;
    struct libscols_line *row;
    size_t next;  /* column of the row, of all */
    size_t shown; /* likewise, of those that are shown */
};

static bool is_shown(const struct table *table, size_t column)
{
    return !table->columns[column].wide || table->show->format == SHOW_WIDE;
}

struct table *table_new(const struct show *show, const struct table_column *columns,
                        size_t columns_len)
{
    struct table *table = must(calloc(1, sizeof *table));

    table->show = show;
    table->columns = columns;
    table->rows = must(scols_new_table());
    scols_table_set_stream(table->rows, show->out);
    scols_table_enable_colors(table->rows, show->colors);
    scols_table_set_termforce(table->rows, SCOLS_TERMFORCE_NEVER); /* nothing is cut */
    for (size_t i = 0; i < columns_len; i++) {
        if (is_shown(table, i))
            must(scols_table_new_column(table->rows, columns[i].name, 0,
                                        columns[i].right ? SCOLS_FL_RIGHT : 0));
    }
    return table;
}

void table_row(struct table *table, enum table_color color)
{
    static const char *const COLORS[] = {
        [TABLE_GOOD] = "green", [TABLE_WARNING] = "yellow", [TABLE_BAD] = "red"};

    table->row = must(scols_table_new_line(table->rows, NULL));
    table->next = table->shown = 0;
    if (color != TABLE_PLAIN)
        scols_line_set_color(table->row, COLORS[color]);
}

void table_put(struct table *table, const char *text)
{
    if (!is_shown(table, table->next++))
        return;
    if (scols_line_set_data(table->row, table->shown++, text[0] ? text : "-") < 0)
        abort(); /* out of memory */
}

void table_put_number(struct table *table, unsigned long long number)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", number);
    table_put(table, text);
}

void table_print(struct table *table)
{
    scols_print_table(table->rows);
    scols_unref_table(table->rows);
    free(table);
}
