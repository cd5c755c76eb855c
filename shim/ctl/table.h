/*
 * A table for people, by libsmartcols: columns, rows, and a colour for what wants looking at.
 */
#ifndef SHIM_CTL_TABLE_H
#define SHIM_CTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/ctl/show.h"

struct table_column {
    const char *name;
    bool wide;  /* only with SHOW_WIDE */
    bool right; /* for numbers */
};

enum table_color {
    TABLE_PLAIN,
    TABLE_GOOD,
    TABLE_WARNING,
    TABLE_BAD,
};

struct table;

/* All is borrowed until table_print(). Out of memory ends the process. */
struct table *table_new(const struct show *show, const struct table_column *columns,
                        size_t columns_len);
/* Begins a row, all of it in this colour. */
void table_row(struct table *table, enum table_color color);
/* The text of the row's next column, copied; an empty one is shown as "-". */
void table_put(struct table *table, const char *text);
void table_put_number(struct table *table, unsigned long long number);
/* Writes it out, and frees it. */
void table_print(struct table *table);

#endif
