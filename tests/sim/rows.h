/*
 * The rows of a store in a small world: what is durable there, or is to be.
 */
#ifndef TESTS_SIM_ROWS_H
#define TESTS_SIM_ROWS_H

#include <stddef.h>

#include "devicemgr/ports.h"

struct row {
    enum devicemgr_record_kind kind;
    char *key[3];
    void *value; /* NULL: it is to be deleted */
    size_t bytes;
    struct row *next;
};

/* A copy, put in front of the list. */
void rows_add(struct row **rows, const struct devicemgr_record *from);
/* `pending` is stored: each row in place of the one of its key. `pending` is empty afterwards. */
void rows_store(struct row **rows, struct row **pending);
void rows_free(struct row **rows);
/* As the core takes it; borrows from the row. */
struct devicemgr_record row_record(const struct row *row);

#endif
