#include "devicemgr/store/store_schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devicemgr/store/store.h"
#include "devicemgr/store/store_db.h"
#include "devicemgr/store/store_file.h"
#include "devicemgr/store/store_table.h"

#define SQL_BYTES_MAX 128

/* Marks the file as ours (PRAGMA application_id): "CRDS". */
#define APPLICATION_ID 0x43524453

/*
 * schema_steps[i] lifts a file from version i to i + 1, so a new file takes them all and an older
 * one those it lacks. Never change a step that was released; append.
 *
 * Plain rowid tables without NOT NULL: a damaged key or value then costs its row, which the
 * checksum finds, and not the file.
 */
static const char *const schema_steps[] = {
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB, checksum INTEGER);"
    "CREATE TABLE resources (name TEXT PRIMARY KEY, value BLOB, checksum INTEGER);"
    "CREATE TABLE allocations (pod_uid TEXT, container TEXT, resource TEXT, value BLOB,"
    " checksum INTEGER, PRIMARY KEY (pod_uid, container, resource));"
    "CREATE TABLE pods (uid TEXT PRIMARY KEY, value BLOB, checksum INTEGER);",
#ifdef STORE_SCHEMA_NEXT /* of the release to come, in a test */
    STORE_SCHEMA_NEXT,
#endif
};
#define SCHEMA_VERSION ((int)(sizeof schema_steps / sizeof *schema_steps))

int store_version(void)
{
    return SCHEMA_VERSION;
}

/* `version` stands in the file's head and in meta: one flipped bit in the head must not pass for a
 * newer version. */
static int put_head(sqlite3 *db, int version)
{
    char sql[SQL_BYTES_MAX], text[16];
    int rc;

    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             APPLICATION_ID, version);
    rc = store_db_exec(db, sql);
    snprintf(text, sizeof text, "%d", version);
    return rc == SQLITE_OK ? store_meta_put(db, "schema_version", text) : rc;
}

int store_schema_migrate(sqlite3 *db, int version)
{
    int rc;

    if (version == SCHEMA_VERSION)
        return SQLITE_OK;
    rc = store_db_exec(db, "BEGIN IMMEDIATE");
    for (; version < SCHEMA_VERSION && rc == SQLITE_OK; version++)
        rc = store_db_exec(db, schema_steps[version]);
    if (rc == SQLITE_OK)
        rc = put_head(db, SCHEMA_VERSION);
    if (rc == SQLITE_OK)
        rc = store_db_exec(db, "COMMIT");
    return rc;
}

int store_schema_make_file(const char *dir, const char *path, bool lost, char *why,
                           size_t why_bytes)
{
    char beside[PATH_MAX];
    sqlite3 *db = NULL;
    int fd, rc;

    store_file_suffixed(beside, path, ".new");
    unlink(beside);
    fd = open(beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        snprintf(why, why_bytes, "%s", strerror(errno));
        return -1;
    }
    close(fd);
    rc = store_db_connect(beside, false, &db);
    if (rc == SQLITE_OK)
        rc = store_schema_migrate(db, 0);
    if (rc == SQLITE_OK && lost)
        rc = store_meta_put(db, STORE_META_LOST, "1");
    if (rc != SQLITE_OK)
        snprintf(why, why_bytes, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    if (rc == SQLITE_OK && (rename(beside, path) < 0 || store_file_sync_dir(dir) < 0)) {
        snprintf(why, why_bytes, "%s", strerror(errno));
        rc = SQLITE_IOERR;
    }
    if (rc != SQLITE_OK)
        unlink(beside);
    return rc == SQLITE_OK ? 0 : -1;
}

enum store_opened store_opened_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
        return STORE_OPENED;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return STORE_IN_USE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR: /* a table of ours is missing */
        return STORE_DAMAGED;
    default:
        return STORE_UNAVAILABLE;
    }
}

enum store_opened store_schema_check(sqlite3 *db, int *version, char *why, size_t why_bytes)
{
    int id = 0, rc = store_db_query_int(db, "PRAGMA application_id", &id);
    char text[16] = "";

    if (rc == SQLITE_OK)
        rc = store_db_query_int(db, "PRAGMA user_version", version);
    if (rc != SQLITE_OK)
        return store_opened_of(rc);
    if (id != APPLICATION_ID || *version < 1) {
        snprintf(why, why_bytes, "it is not a checkpoint");
        return STORE_DAMAGED;
    }
    if (*version <= SCHEMA_VERSION)
        return STORE_OPENED;
    if (!store_meta_get(db, "schema_version", text, sizeof text) ||
        strtol(text, NULL, 10) != *version) {
        snprintf(why, why_bytes, "its version makes no sense");
        return STORE_DAMAGED;
    }
    snprintf(why, why_bytes, "it has schema version %d, and this program knows up to %d", *version,
             SCHEMA_VERSION);
    return STORE_NEWER;
}
