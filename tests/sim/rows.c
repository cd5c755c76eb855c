#include "tests/sim/rows.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/heap.h"

static void row_free(struct row *row)
{
    for (size_t i = 0; i < 3; i++)
        free(row->key[i]);
    free(row->value);
    free(row);
}

void rows_free(struct row **rows)
{
    while (*rows) {
        struct row *row = *rows;

        *rows = row->next;
        row_free(row);
    }
}

void rows_add(struct row **rows, const struct devicemgr_record *from)
{
    struct row *row = heap_alloc(1, sizeof *row);

    row->kind = from->kind;
    row->bytes = from->value_bytes;
    for (size_t i = 0; i < 3; i++)
        row->key[i] = heap_strdup(from->key[i]);
    if (from->value) {
        row->value = heap_alloc(from->value_bytes + 1, 1);
        memcpy(row->value, from->value, from->value_bytes);
    }
    row->next = *rows;
    *rows = row;
}

static bool is_same(const struct row *a, const struct row *b)
{
    return a->kind == b->kind && strcmp(a->key[0], b->key[0]) == 0 &&
           strcmp(a->key[1], b->key[1]) == 0 && strcmp(a->key[2], b->key[2]) == 0;
}

/* Takes it. */
static void store(struct row **rows, struct row *row)
{
    for (struct row **at = rows; *at; at = &(*at)->next) {
        struct row *is = *at;

        if (!is_same(is, row))
            continue;
        *at = is->next;
        row_free(is);
        break;
    }
    if (!row->value) {
        row_free(row);
        return;
    }
    row->next = *rows;
    *rows = row;
}

void rows_store(struct row **rows, struct row **pending)
{
    while (*pending) {
        struct row *row = *pending;

        *pending = row->next;
        store(rows, row);
    }
}

struct devicemgr_record row_record(const struct row *row)
{
    return (struct devicemgr_record){
        row->kind, {row->key[0], row->key[1], row->key[2]}, row->value, row->bytes};
}
