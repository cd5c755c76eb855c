#include "devicemgr/store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "devicemgr/store/store_db.h"
#include "devicemgr/store/store_file.h"
#include "devicemgr/store/store_scan.h"
#include "devicemgr/store/store_schema.h"

/* With SQLite's lock, for which it makes no file of its own, or, on a disk that gives none,
 * without.
 */
static enum store_opened open_it(const char *path, bool lock_first, sqlite3 **db, char *why,
                                 size_t why_bytes)
{
    int version, rc = store_db_connect(path, lock_first, db);

    *why = '\0';
    return rc == SQLITE_OK ? store_schema_check(*db, &version, why, why_bytes)
                           : store_opened_of(rc);
}

int store_look_at(const char *path, struct store_found *found,
                  void (*each)(void *user, const struct devicemgr_record *record, bool good),
                  void *user, char *err, size_t err_bytes)
{
    char wal[PATH_MAX], why[STORE_ERROR_BYTES_MAX];
    enum store_opened opened;
    bool has_wal;
    sqlite3 *db;

    if (strlen(path) >= STORE_PATH_BYTES_MAX) {
        snprintf(err, err_bytes, "%.64s...: %s", path, strerror(ENAMETOOLONG));
        return -1;
    }
    store_file_suffixed(wal, path, "-wal");
    has_wal = store_file_exists(wal);
    opened = open_it(path, true, &db, why, sizeof why);
    if (opened == STORE_UNAVAILABLE) {
        sqlite3_close(db);
        opened = open_it(path, false, &db, why, sizeof why);
    }
    if (opened == STORE_OPENED)
        opened = store_opened_of(store_db_scan(db, found, each, user));
    if (opened != STORE_OPENED)
        snprintf(err, err_bytes, "%s: %s", path,
                 opened == STORE_IN_USE ? "another process has it open"
                 : *why                 ? why
                                        : sqlite3_errmsg(db));
    if (has_wal && db) /* else it is SQLite's of just now, and goes with it */
        sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(db);
    return opened == STORE_OPENED ? 0 : opened == STORE_IN_USE ? STORE_IN_USE_ELSEWHERE : -1;
}
