/*
 * The tables of a store's database, and their rows.
 *
 * A row is good if its checksum fits. Everything that reads whole tables says NOT INDEXED: the rows
 * count, an index may be damaged. The functions give SQLite's result codes.
 */
#ifndef DEVICEMGR_STORE_STORE_TABLE_H
#define DEVICEMGR_STORE_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

#include "devicemgr/ports.h"

struct store_table {
    const char *name;
    const char *keys; /* always three columns */
    const char *sum;  /* what a row's checksum must be */
    /* Statements; their parameters: ?1..?3 the keys, ?4 the value. */
    const char *put;
    const char *drop;
    /* Makes it, and meta says so then, if it is not there: in a file of an older release, which an
     * older one may find again, and which does not mind a table that it does not know. NULL: it is
     * always there. */
    const char *make;
};

/* After one table for each kind of record: what the store keeps of itself, and one row of the
 * core's. */
enum { STORE_TABLE_META = DEVICEMGR_RECORD_LOSS, STORE_TABLES };

/* There: rows were lost, and the core has not said yet that it knows what runs without them. It is
 * the key of its DEVICEMGR_RECORD_LOSS. */
#define STORE_META_LOST "rows_lost"

extern const struct store_table store_tables[STORE_TABLES];

/* Prepares both for each table that is always there; what was prepared before an error is the
 * caller's to finalize, too. */
int store_tables_prepare(sqlite3 *db, sqlite3_stmt *put[STORE_TABLES],
                         sqlite3_stmt *drop[STORE_TABLES]);
/* Whether tables that may have to be made are as they must be, if they were made: SQLITE_ERROR. */
int store_late_tables_check(sqlite3 *db);
/* Writes a row of a table that may have to be made, or deletes it (`value` NULL). */
int store_row_write_late(sqlite3 *db, const struct store_table *table, const char *const key[3],
                         const void *value, size_t bytes);
/* The parameters of `put` or `drop`; borrowed until they are cleared. */
int store_row_bind(sqlite3_stmt *stmt, const char *const key[3], const void *value, size_t bytes);
/* Steps through a whole table: three keys, the value, whether the checksum fits. */
int store_rows_select(sqlite3 *db, const struct store_table *table, sqlite3_stmt **out);
/* The row stepped to, but for its kind; borrowed until the next step. False: its checksum does not
 * fit. */
bool store_row_read(sqlite3_stmt *stmt, struct devicemgr_record *out);
/* How many rows there are of all kinds of records. */
int store_tables_count(sqlite3 *db, int *out);
/* Copies the good rows of a table out, empties it and copies them back. */
int store_table_rewrite(sqlite3 *db, const struct store_table *table);
int store_tables_rewrite(sqlite3 *db);

/* A good row of the meta table as text; false if there is none. */
bool store_meta_get(sqlite3 *db, const char *key, char *out, size_t out_bytes);
int store_meta_put(sqlite3 *db, const char *key, const char *value);

#endif
