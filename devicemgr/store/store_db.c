#include "devicemgr/store/store_db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "devicemgr/store/store_file.h"

/* "file://", a path of nothing but characters to escape, "?immutable=1". */
#define URI_BYTES_MAX (3 * PATH_MAX + 32)

/* ---- checksum ---- */

static uLong checksum_part(uLong sum, sqlite3_value *value)
{
    const void *bytes = sqlite3_value_blob(value);
    uint32_t n = (uint32_t)sqlite3_value_bytes(value);
    unsigned char head[4] = {(unsigned char)n, (unsigned char)(n >> 8), (unsigned char)(n >> 16),
                             (unsigned char)(n >> 24)};

    /* The length goes in too: else ("ab", "c") and ("a", "bc") were the same row. */
    sum = crc32(sum, head, sizeof head);
    return n ? crc32(sum, bytes, n) : sum;
}

static void row_checksum(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    unsigned char kind = (unsigned char)sqlite3_value_int(argv[0]);
    uLong sum = crc32(crc32(0, NULL, 0), &kind, 1);

    for (int i = 1; i < argc; i++)
        sum = checksum_part(sum, argv[i]);
    sqlite3_result_int64(context, (sqlite3_int64)sum);
}

/* ---- opening ---- */

/* A file on a disk that is read-only now. Without a journal SQLite opens it only when told that
 * nobody can write it ("immutable", which needs the path as a URI). */
static bool is_immutable(const char *path)
{
    char wal[PATH_MAX];

    store_file_suffixed(wal, path, "-wal");
    return access(path, W_OK) < 0 && errno == EROFS && !store_file_exists(wal);
}

/* An absolute path stands behind an empty authority: else the first name of one that begins with
 * two slashes would be taken for it (https://www.sqlite.org/uri.html). */
static void put_uri(char out[URI_BYTES_MAX], const char *path)
{
    char *to = out + sprintf(out, "file:%s", *path == '/' ? "//" : "");

    for (const char *p = path; *p; p++)
        to += strchr("%?#", *p) ? sprintf(to, "%%%02x", (unsigned char)*p) : sprintf(to, "%c", *p);
    strcpy(to, is_immutable(path) ? "?immutable=1" : "");
}

int store_db_connect(const char *path, bool lock_first, sqlite3 **out)
{
    char uri[URI_BYTES_MAX];
    sqlite3 *db;
    int rc;

    put_uri(uri, path);
    rc = sqlite3_open_v2(uri, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_URI,
                         NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(db, "row_checksum", 5,
                                     SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL,
                                     row_checksum, NULL, NULL);
    if (rc == SQLITE_OK && lock_first)
        rc = store_db_exec(db, "PRAGMA locking_mode = EXCLUSIVE");
    /* The temporary copy of a repair must not need the disk. */
    if (rc == SQLITE_OK)
        rc = store_db_exec(db, "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY");
    *out = db;
    return rc;
}

/* ---- small SQL ---- */

int store_db_exec(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

int store_db_query_int(sqlite3 *db, const char *sql, int *out)
{
    sqlite3_stmt *stmt;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    return rc == SQLITE_ROW ? SQLITE_OK : rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
}

int store_db_check(sqlite3 *db, const char *pragma, char *why, size_t why_bytes)
{
    sqlite3_stmt *stmt;
    int rc = sqlite3_prepare_v2(db, pragma, -1, &stmt, NULL);

    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);

        rc = text && strcmp(text, "ok") == 0 ? SQLITE_OK : SQLITE_CORRUPT;
        if (rc != SQLITE_OK)
            snprintf(why, why_bytes, "%s", text ? text : "no result");
    }
    sqlite3_finalize(stmt);
    return rc;
}

void store_db_failure(sqlite3 *db, const char *path, char *err, size_t err_bytes)
{
    int number = sqlite3_system_errno(db);

    snprintf(err, err_bytes, "checkpoint %s: %s%s%s%s", path, sqlite3_errmsg(db),
             number ? " (" : "", number ? strerror(number) : "", number ? ")" : "");
}

bool store_db_head_forbids_writing(sqlite3 *db, const char *path)
{
    int fd;

    if (sqlite3_db_readonly(db, "main") != 1)
        return false;
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}
