#include "shim/offline/rows.h"

#include <stdlib.h>
#include <string.h>

#include "shim/must.h"

void rows_add(struct rows *rows, const struct devicemgr_record *record)
{
    struct devicemgr_record *copy;
    void *value = NULL;

    if (rows->len == rows->size) {
        rows->size = rows->size ? 2 * rows->size : 64;
        rows->v = must(realloc(rows->v, rows->size * sizeof *rows->v));
    }
    copy = &rows->v[rows->len++];
    *copy = *record;
    for (size_t i = 0; i < 3; i++)
        copy->key[i] = must(strdup(record->key[i]));
    if (record->value) {
        value = must(malloc(record->value_bytes + 1)); /* never of no bytes */
        memcpy(value, record->value, record->value_bytes);
    }
    copy->value = value;
    if (record->kind < ROWS_KINDS)
        rows->counts[record->kind]++;
}

void rows_fini(struct rows *rows)
{
    for (size_t i = 0; i < rows->len; i++) {
        for (size_t k = 0; k < 3; k++)
            free((char *)(uintptr_t)rows->v[i].key[k]);
        free((void *)(uintptr_t)rows->v[i].value);
    }
    free(rows->v);
    *rows = (struct rows){0};
}
