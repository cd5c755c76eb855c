#include "devicemgr/store/store_scan.h"

#include <string.h>

#include "devicemgr/store/store_db.h"
#include "devicemgr/store/store_table.h"

static void tell_row(sqlite3_stmt *stmt, int table, struct store_found *found,
                     void (*each)(void *user, const struct devicemgr_record *record, bool good),
                     void *user)
{
    struct devicemgr_record record = {.kind = (enum devicemgr_record_kind)table};
    bool good = store_row_read(stmt, &record);

    found->damaged += !good;
    each(user, &record, good);
}

static int look_at_table(sqlite3 *db, int table, struct store_found *found,
                         void (*each)(void *user, const struct devicemgr_record *record, bool good),
                         void *user)
{
    sqlite3_stmt *stmt;
    int rc = store_rows_select(db, &store_tables[table], &stmt);

    if (rc != SQLITE_OK)
        return rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
        tell_row(stmt, table, found, each, user);
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int store_db_scan(sqlite3 *db, struct store_found *found,
                  void (*each)(void *user, const struct devicemgr_record *record, bool good),
                  void *user)
{
    int rc;

    *found = (struct store_found){0};
    sqlite3_db_release_memory(db); /* else pages that were read before are not read again */
    rc = store_db_query_int(db, "PRAGMA user_version", &found->version);
    if (rc == SQLITE_OK)
        rc = store_db_check(db, "PRAGMA integrity_check(1)", found->words, sizeof found->words);
    if (found->words[0] != '\0')
        rc = SQLITE_OK;
    for (int i = 0; i < STORE_TABLE_META && rc == SQLITE_OK; i++)
        rc = look_at_table(db, i, found, each, user);
    if (rc == SQLITE_OK) {
        char value[sizeof STORE_LOST_NONE];

        found->lost = store_meta_get(db, STORE_META_LOST, value, sizeof value) &&
                      strcmp(value, STORE_LOST_NONE) != 0;
    }
    if ((rc & 0xff) == SQLITE_CORRUPT && found->words[0] != '\0')
        return SQLITE_OK; /* as it was found to be */
    return rc;
}
