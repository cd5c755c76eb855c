#include "devicemgr/store/store_table.h"

#include <stdio.h>
#include <string.h>

#include "devicemgr/store/store_db.h"

#define SQL_BYTES_MAX 512

/* Columns have their names: a later release may add some. */
const struct store_table store_tables[STORE_TABLES] = {
    [DEVICEMGR_RECORD_RESOURCE] =
        {
            .name = "resources",
            .keys = "name, '', ''",
            .sum = "row_checksum(0, name, '', '', value)",
            .put = "INSERT OR REPLACE INTO resources (name, value, checksum)"
                   " VALUES (?1, ?4, row_checksum(0, ?1, ?2, ?3, ?4))",
            .drop = "DELETE FROM resources WHERE name = ?1",
        },
    [DEVICEMGR_RECORD_ALLOCATION] =
        {
            .name = "allocations",
            .keys = "pod_uid, container, resource",
            .sum = "row_checksum(1, pod_uid, container, resource, value)",
            .put =
                "INSERT OR REPLACE INTO allocations (pod_uid, container, resource, value, checksum)"
                " VALUES (?1, ?2, ?3, ?4, row_checksum(1, ?1, ?2, ?3, ?4))",
            .drop = "DELETE FROM allocations"
                    " WHERE pod_uid = ?1 AND container = ?2 AND resource = ?3",
        },
    [DEVICEMGR_RECORD_POD] =
        {
            .name = "pods",
            .keys = "uid, '', ''",
            .sum = "row_checksum(2, uid, '', '', value)",
            .put = "INSERT OR REPLACE INTO pods (uid, value, checksum)"
                   " VALUES (?1, ?4, row_checksum(2, ?1, ?2, ?3, ?4))",
            .drop = "DELETE FROM pods WHERE uid = ?1",
        },
    [STORE_TABLE_META] =
        {
            .name = "meta",
            .keys = "key, '', ''",
            .sum = "row_checksum(3, key, '', '', value)",
            .put = "INSERT OR REPLACE INTO meta (key, value, checksum)"
                   " VALUES (?1, ?4, row_checksum(3, ?1, ?2, ?3, ?4))",
            .drop = "DELETE FROM meta WHERE key = ?1",
        },
};

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

int store_rows_select(sqlite3 *db, const struct store_table *table, sqlite3_stmt **out)
{
    char sql[SQL_BYTES_MAX];

    snprintf(sql, sizeof sql, "SELECT %s, value, checksum = %s FROM %s NOT INDEXED", table->keys,
             table->sum, table->name);
    return sqlite3_prepare_v2(db, sql, -1, out, NULL);
}

bool store_meta_get(sqlite3 *db, const char *key, char *out, size_t out_bytes)
{
    sqlite3_stmt *stmt;
    bool found = false;

    if (store_rows_select(db, &store_tables[STORE_TABLE_META], &stmt) != SQLITE_OK)
        return false;
    while (!found && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(stmt, 0);
        const char *value = sqlite3_column_blob(stmt, 3);

        if (!sqlite3_column_int(stmt, 4) || !name || strcmp(name, key) != 0)
            continue;
        snprintf(out, out_bytes, "%.*s", sqlite3_column_bytes(stmt, 3), value ? value : "");
        found = true;
    }
    sqlite3_finalize(stmt);
    return found;
}

int store_meta_put(sqlite3 *db, const char *key, const char *value)
{
    sqlite3_stmt *stmt;
    int rc = sqlite3_prepare_v2(db, store_tables[STORE_TABLE_META].put, -1, &stmt, NULL);

    if (rc != SQLITE_OK)
        return rc;
    rc = store_row_bind(stmt, (const char *const[]){key, "", ""}, value, strlen(value));
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
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

    for (int i = 0; i < STORE_TABLES && rc == SQLITE_OK; i++)
        rc = store_table_rewrite(db, &store_tables[i]);
    return rc;
}
