#include "devicemgr/store/store_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "devicemgr/store/store_db.h"
#include "devicemgr/store/store_table.h"

/* SQLite writes into a file that is there and empty, and so with the mode that this has. */
static int open_beside(const char *beside)
{
    unlink(beside); /* of one that was ended in the middle */
    return open(beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static int copy_rows(sqlite3 *db, const char *beside)
{
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", beside);
    int rc = sql ? store_db_exec(db, sql) : SQLITE_NOMEM;

    sqlite3_free(sql);
    return rc;
}

/* VACUUM INTO does not wait for the disk. */
static int make_durable(const char *dir, int fd, const char *beside, const char *base)
{
    return fsync(fd) < 0 || rename(beside, base) < 0 ? -1 : store_file_sync_dir(dir);
}

int store_copy_make(sqlite3 *db, const char *dir, const char *path,
                    char base[STORE_ASIDE_BYTES_MAX], char *err, size_t err_bytes)
{
    char beside[PATH_MAX];
    int fd, rc, rows = 0;

    *base = '\0';
    if (store_tables_count(db, &rows) == SQLITE_OK && rows == 0)
        return 0;
    store_file_suffixed(beside, path, ".copy");
    fd = open_beside(beside);
    if (fd < 0) {
        snprintf(err, err_bytes, "%s: %s", beside, strerror(errno));
        return -1;
    }
    rc = copy_rows(db, beside);
    if (rc != SQLITE_OK)
        snprintf(err, err_bytes, "%s: %s", beside, sqlite3_errmsg(db));
    store_file_name_aside(path, "replaced", base);
    if (rc == SQLITE_OK && make_durable(dir, fd, beside, base) < 0) {
        snprintf(err, err_bytes, "%s: %s", base, strerror(errno));
        rc = SQLITE_IOERR;
    }
    close(fd);
    if (rc == SQLITE_OK)
        return 0;
    unlink(beside);
    *base = '\0';
    return -1;
}
