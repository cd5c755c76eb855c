#include "devicemgr/store/store_table.h"

#include <stdio.h>
#include <string.h>

#include "devicemgr/store/store_db.h"

#define SQL_BYTES_MAX 512

/* Columns have their names: a later release may add some. A checksum begins with the table's
 * number, and has always three keys, '' where the table has fewer. */
/* NOLINTBEGIN(bugprone-macro-parentheses): they are texts that are joined */
#define ROWS_OF(table, number, three, columns, values, where)                                      \
    .name = table, .keys = three, .sum = "row_checksum(" number ", " three ", value)",             \
    .put = "INSERT OR REPLACE INTO " table " (" columns ", value, checksum) VALUES (" values       \
           ", ?4, row_checksum(" number ", ?1, ?2, ?3, ?4))",                                      \
    .drop = "DELETE FROM " table " WHERE " where
/* NOLINTEND(bugprone-macro-parentheses) */
#define ONE_KEY(table, number, key) ROWS_OF(table, number, key ", '', ''", key, "?1", key " = ?1")
#define THREE_KEYS(table, number, a, b, c)                                                         \
    ROWS_OF(table, number, a ", " b ", " c, a ", " b ", " c, "?1, ?2, ?3",                         \
            a " = ?1 AND " b " = ?2 AND " c " = ?3")

const struct store_table store_tables[STORE_TABLES] = {
    [DEVICEMGR_RECORD_RESOURCE] = {ONE_KEY("resources", "0", "name")},
    [DEVICEMGR_RECORD_ALLOCATION] = {THREE_KEYS("allocations", "1", "pod_uid", "container",
                                                "resource")},
    [DEVICEMGR_RECORD_POD] = {ONE_KEY("pods", "2", "uid")},
    [DEVICEMGR_RECORD_ORDER] = {THREE_KEYS("orders", "4", "kind", "resource", "id"),
                                .make = "CREATE TABLE orders (kind TEXT, resource TEXT, id TEXT,"
                                        " value BLOB, checksum INTEGER,"
                                        " PRIMARY KEY (kind, resource, id))"},
    [DEVICEMGR_RECORD_DRIVER] = {ONE_KEY("drivers", "5", "name"),
                                 .make = "CREATE TABLE drivers (name TEXT PRIMARY KEY, value BLOB,"
                                         " checksum INTEGER)"},
    [DEVICEMGR_RECORD_CLAIM] = {ROWS_OF("claims", "6", "uid, driver, ''", "uid, driver", "?1, ?2",
                                        "uid = ?1 AND driver = ?2"),
                                .make = "CREATE TABLE claims (uid TEXT, driver TEXT, value BLOB,"
                                        " checksum INTEGER, PRIMARY KEY (uid, driver))"},
    [DEVICEMGR_RECORD_ENDING] = {ONE_KEY("endings", "7", "uid"),
                                 .make = "CREATE TABLE endings (uid TEXT PRIMARY KEY, value BLOB,"
                                         " checksum INTEGER)"},
    [DEVICEMGR_RECORD_SHUTDOWN] = {ONE_KEY("shutdowns", "8", "key"),
                                   .make = "CREATE TABLE shutdowns (key TEXT PRIMARY KEY,"
                                           " value BLOB, checksum INTEGER)"},
    [STORE_TABLE_META] = {ONE_KEY("meta", "3", "key")},
};

/* Whether the file has it. */
static int is_there(sqlite3 *db, const struct store_table *table, bool *there)
{
    char sql[SQL_BYTES_MAX];
    int n = 1, rc = SQLITE_OK;

    if (table->make) {
        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '%s'",
                 table->name);
        rc = store_db_query_int(db, sql, &n);
    }
    *there = n > 0;
    return rc;
}

int store_tables_prepare(sqlite3 *db, sqlite3_stmt *put[STORE_TABLES],
                         sqlite3_stmt *drop[STORE_TABLES])
{
    int rc = SQLITE_OK;

    for (int i = 0; i < STORE_TABLES && rc == SQLITE_OK; i++) {
        if (store_tables[i].make)
            continue; /* store_row_write_late() */
        rc = sqlite3_prepare_v2(db, store_tables[i].put, -1, &put[i], NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_prepare_v2(db, store_tables[i].drop, -1, &drop[i], NULL);
    }
    return rc;
}

int store_row_bind(sqlite3_stmt *stmt, const char *const key[3], const void *value, size_t bytes)
{
    int rc = SQLITE_OK;
    int parameters = sqlite3_bind_parameter_count(stmt);

    for (int i = 0; i < 3 && i < parameters && rc == SQLITE_OK; i++)
        rc = sqlite3_bind_text(stmt, i + 1, key[i], -1, SQLITE_STATIC);
    if (parameters > 3 && rc == SQLITE_OK)
        rc = sqlite3_bind_blob64(stmt, 4, bytes ? value : "", bytes, SQLITE_STATIC);
    return rc;
}

int store_tables_count(sqlite3 *db, int *out)
{
    int rc = SQLITE_OK;

    *out = 0;
    for (int i = 0; i < STORE_TABLE_META && rc == SQLITE_OK; i++) {
        char sql[SQL_BYTES_MAX];
        bool there;
        int n = 0;

        rc = is_there(db, &store_tables[i], &there);
        if (rc != SQLITE_OK || !there)
            continue;
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", store_tables[i].name);
        rc = store_db_query_int(db, sql, &n);
        *out += n;
    }
    return rc;
}

int store_rows_select(sqlite3 *db, const struct store_table *table, sqlite3_stmt **out)
{
    char sql[SQL_BYTES_MAX];
    bool there;
    int rc = is_there(db, table, &there);

    if (rc != SQLITE_OK)
        return rc;
    snprintf(sql, sizeof sql, "SELECT %s, value, checksum = %s FROM %s NOT INDEXED", table->keys,
             table->sum, table->name);
    return sqlite3_prepare_v2(db, there ? sql : "SELECT '', '', '', '', 1 WHERE 0", -1, out, NULL);
}

bool store_row_read(sqlite3_stmt *stmt, struct devicemgr_record *out)
{
    const void *value = sqlite3_column_blob(stmt, 3);

    for (int i = 0; i < 3; i++) {
        const char *key = (const char *)sqlite3_column_text(stmt, i);

        out->key[i] = key ? key : "";
    }
    out->value = value ? value : "";
    out->value_bytes = (size_t)sqlite3_column_bytes(stmt, 3);
    return sqlite3_column_int(stmt, 4);
}

bool store_meta_get(sqlite3 *db, const char *key, char *out, size_t out_bytes)
{
    sqlite3_stmt *stmt;
    bool found = false;

    if (store_rows_select(db, &store_tables[STORE_TABLE_META], &stmt) != SQLITE_OK)
        return false;
    while (!found && sqlite3_step(stmt) == SQLITE_ROW) {
        struct devicemgr_record row;

        if (!store_row_read(stmt, &row) || strcmp(row.key[0], key) != 0)
            continue;
        snprintf(out, out_bytes, "%.*s", (int)row.value_bytes, (const char *)row.value);
        found = true;
    }
    sqlite3_finalize(stmt);
    return found;
}

/* Puts a row, or drops it (`value` NULL). */
static int write_row(sqlite3 *db, const struct store_table *table, const char *const key[3],
                     const void *value, size_t bytes)
{
    sqlite3_stmt *stmt;
    int rc = sqlite3_prepare_v2(db, value ? table->put : table->drop, -1, &stmt, NULL);

    if (rc != SQLITE_OK)
        return rc;
    rc = store_row_bind(stmt, key, value, bytes);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int store_meta_put(sqlite3 *db, const char *key, const char *value)
{
    return write_row(db, &store_tables[STORE_TABLE_META], (const char *const[]){key, "", ""}, value,
                     strlen(value));
}

/* Without WHERE SQLite does not look at what it throws away, nor at a damaged index. */
int store_table_rewrite(sqlite3 *db, const struct store_table *table)
{
    char sql[SQL_BYTES_MAX];
    int rc;

    snprintf(sql, sizeof sql,
             "CREATE TEMP TABLE good AS SELECT * FROM main.%s NOT INDEXED WHERE checksum = %s",
             table->name, table->sum);
    rc = store_db_exec(db, sql);
    if (rc != SQLITE_OK)
        return rc;
    snprintf(sql, sizeof sql,
             "BEGIN IMMEDIATE;"
             "DELETE FROM main.%1$s;"
             "INSERT OR IGNORE INTO main.%1$s SELECT * FROM good;"
             "COMMIT",
             table->name);
    rc = store_db_exec(db, sql);
    if (!sqlite3_get_autocommit(db))
        store_db_exec(db, "ROLLBACK");
    store_db_exec(db, "DROP TABLE temp.good");
    return rc;
}

int store_tables_rewrite(sqlite3 *db)
{
    int rc = SQLITE_OK;

    for (int i = 0; i < STORE_TABLES && rc == SQLITE_OK; i++) {
        bool there;

        rc = is_there(db, &store_tables[i], &there);
        if (rc == SQLITE_OK && there)
            rc = store_table_rewrite(db, &store_tables[i]);
    }
    return rc;
}

/* ---- tables that may have to be made ---- */

static int make(sqlite3 *db, const struct store_table *table)
{
    int rc = store_db_exec(db, table->make);

    return rc == SQLITE_OK ? store_meta_put(db, table->name, "made") : rc;
}

/* Their names stand in the file's schema, of which nothing else is checked. */
static int check_late(sqlite3 *db, const struct store_table *table)
{
    const char *const statements[] = {table->put, table->drop};
    char made[8];
    bool there;
    int rc = is_there(db, table, &there);

    if (rc == SQLITE_OK && !there)
        return store_meta_get(db, table->name, made, sizeof made) ? SQLITE_ERROR : SQLITE_OK;
    for (size_t i = 0; i < 2 && rc == SQLITE_OK; i++) {
        sqlite3_stmt *stmt;

        rc = sqlite3_prepare_v2(db, statements[i], -1, &stmt, NULL);
        if (rc == SQLITE_OK)
            sqlite3_finalize(stmt);
    }
    return rc;
}

int store_late_tables_check(sqlite3 *db)
{
    int rc = SQLITE_OK;

    for (int i = 0; i < STORE_TABLES && rc == SQLITE_OK; i++) {
        if (store_tables[i].make)
            rc = check_late(db, &store_tables[i]);
    }
    return rc;
}

int store_row_write_late(sqlite3 *db, const struct store_table *table, const char *const key[3],
                         const void *value, size_t bytes)
{
    bool there;
    int rc = is_there(db, table, &there);

    if (rc == SQLITE_OK && !there && value)
        rc = make(db, table);
    if (rc != SQLITE_OK || (!there && !value))
        return rc;
    return write_row(db, table, key, value, bytes);
}
