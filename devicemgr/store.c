#include "devicemgr/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>
#include <zlib.h>

/* Takes the lock of locking_mode = EXCLUSIVE, which a file with a journal would get with its first
 * write only. */
#define LOCK_SQL "BEGIN IMMEDIATE; COMMIT"

/* Marks the file as ours (PRAGMA application_id): "CRDS". */
#define APPLICATION_ID 0x43524453

#define DIR_MODE 0700
#define PARENT_MODE 0755 /* less the umask */

#define TEXT_BYTES_MAX 1024
#define SQL_BYTES_MAX 512
/* Leaves room for every suffix. */
#define STORE_PATH_BYTES_MAX (PATH_MAX - 128)
/* "file:", a path of nothing but characters to escape, "?immutable=1". */
#define URI_BYTES_MAX (3 * PATH_MAX + 32)

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

/*
 * Parameters of put and drop: ?1..?3 the keys, ?4 the value. `sum` is what a row's checksum must
 * be. Everything that reads whole tables says NOT INDEXED: the rows count, an index may be damaged.
 */
struct table {
    const char *name;
    const char *keys; /* always three columns */
    const char *sum;
    const char *put;
    const char *drop;
};

enum { TABLE_META = DEVICEMGR_RECORD_POD + 1, TABLES };

static const struct table tables[TABLES] = {
    [DEVICEMGR_RECORD_RESOURCE] =
        {
            .name = "resources",
            .keys = "name, '', ''",
            .sum = "row_checksum(0, name, '', '', value)",
            .put = "INSERT OR REPLACE INTO resources"
                   " VALUES (?1, ?4, row_checksum(0, ?1, ?2, ?3, ?4))",
            .drop = "DELETE FROM resources WHERE name = ?1",
        },
    [DEVICEMGR_RECORD_ALLOCATION] =
        {
            .name = "allocations",
            .keys = "pod_uid, container, resource",
            .sum = "row_checksum(1, pod_uid, container, resource, value)",
            .put = "INSERT OR REPLACE INTO allocations"
                   " VALUES (?1, ?2, ?3, ?4, row_checksum(1, ?1, ?2, ?3, ?4))",
            .drop = "DELETE FROM allocations"
                    " WHERE pod_uid = ?1 AND container = ?2 AND resource = ?3",
        },
    [DEVICEMGR_RECORD_POD] =
        {
            .name = "pods",
            .keys = "uid, '', ''",
            .sum = "row_checksum(2, uid, '', '', value)",
            .put = "INSERT OR REPLACE INTO pods VALUES (?1, ?4, row_checksum(2, ?1, ?2, ?3, ?4))",
            .drop = "DELETE FROM pods WHERE uid = ?1",
        },
    [TABLE_META] =
        {
            .name = "meta",
            .keys = "key, '', ''",
            .sum = "row_checksum(3, key, '', '', value)",
            .put = "INSERT OR REPLACE INTO meta VALUES (?1, ?4, row_checksum(3, ?1, ?2, ?3, ?4))",
            .drop = "DELETE FROM meta WHERE key = ?1",
        },
};

struct store {
    struct store_options options;
    char path[STORE_PATH_BYTES_MAX];
    sqlite3 *db; /* NULL: not open, each commit tries again */
    sqlite3_stmt *put[TABLES];
    sqlite3_stmt *drop[TABLES];
    ino_t inode; /* of the open file, to notice that it was taken away */
    bool rebooted;
    bool lost_rows;    /* see store_lost_rows() */
    bool reset;        /* the file is a new one, and the owner of the rows does not know yet */
    bool boot_written; /* meta holds this boot's id */
    bool load_asked;   /* store_load() ran */
    bool loaded;       /* and could read the file */
};

enum opened {
    OPENED,
    OPEN_DAMAGED,     /* set it aside and make another */
    OPEN_UNAVAILABLE, /* the disk's fault: try later */
    OPEN_IN_USE,
    OPEN_NEWER,
};

static void report(const struct store *store, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void report(const struct store *store, int level, const char *format, ...)
{
    char text[TEXT_BYTES_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    store->options.report(store->options.user, level, text);
}

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

/*
 * row_checksum(kind, key, key, key, value): zlib's CRC-32. It guards against decay, not against an
 * attacker (who is root here), finds every burst of up to 32 bits, and zlib is linked anyway.
 */
static void row_checksum(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    unsigned char kind = (unsigned char)sqlite3_value_int(argv[0]);
    uLong sum = crc32(crc32(0, NULL, 0), &kind, 1);

    for (int i = 1; i < argc; i++)
        sum = checksum_part(sum, argv[i]);
    sqlite3_result_int64(context, (sqlite3_int64)sum);
}

/* ---- small SQL ---- */

static int exec(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* The first column of the first row as a number. */
static int query_int(sqlite3 *db, const char *sql, int *out)
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

/* Runs one of the PRAGMA checks; SQLITE_CORRUPT with its first finding in `why`. */
static int check(sqlite3 *db, const char *pragma, char *why, size_t why_bytes)
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

static int bind_record(sqlite3_stmt *stmt, const char *const key[3], const void *value,
                       size_t bytes)
{
    int rc = SQLITE_OK;
    int parameters = sqlite3_bind_parameter_count(stmt);

    for (int i = 0; i < 3 && i < parameters && rc == SQLITE_OK; i++)
        rc = sqlite3_bind_text(stmt, i + 1, key[i], -1, SQLITE_STATIC);
    if (parameters > 3 && rc == SQLITE_OK)
        rc = sqlite3_bind_blob64(stmt, 4, bytes ? value : "", bytes, SQLITE_STATIC);
    return rc;
}

static int write_row(const struct store *store, int table, const char *const key[3],
                     const void *value, size_t bytes)
{
    sqlite3_stmt *stmt = value ? store->put[table] : store->drop[table];
    int rc = bind_record(stmt, key, value, bytes);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- directories and files ---- */

static int sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc, saved;

    if (fd < 0)
        return -1;
    rc = fsync(fd);
    saved = errno;
    close(fd);
    errno = saved;
    return rc;
}

/* A directory that was just made is on the disk once its parent is. */
static int make_one(char *path, mode_t mode)
{
    char *slash = strrchr(path, '/');
    int rc;

    if (mkdir(path, mode) < 0)
        return errno == EEXIST ? 0 : -1;
    *slash = '\0';
    rc = sync_dir(slash == path ? "/" : path);
    *slash = '/';
    return rc;
}

/* `dir` is absolute. What is above it may be others' as well (/var/lib), and is not to be closed to
 * them because we came first. */
static int make_dir(const char *dir)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s", dir);
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        if (make_one(path, PARENT_MODE) < 0)
            return -1;
        *p = '/';
    }
    return make_one(path, DIR_MODE);
}

static void with_suffix(char out[PATH_MAX], const char *path, const char *suffix)
{
    snprintf(out, PATH_MAX, "%s%s", path, suffix);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Moves the file and what SQLite keeps beside it out of the way; under names by which SQLite still
 * finds them together. `what`: of the file, for the log. */
static int set_aside(struct store *store, const char *what, const char *why)
{
    static const char *const parts[] = {"", "-wal", "-shm", "-journal"};
    char base[PATH_MAX - 32], from[PATH_MAX], to[PATH_MAX], stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    int n = 1;

    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    do {
        /* A second one within the second gets a number. */
        if (n == 1)
            snprintf(base, sizeof base, "%s.damaged-%s", store->path, stamp);
        else
            snprintf(base, sizeof base, "%s.damaged-%s.%d", store->path, stamp, n);
        n++;
    } while (exists(base));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        with_suffix(from, store->path, parts[i]);
        with_suffix(to, base, parts[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            return -1;
    }
    if (sync_dir(store->options.dir) < 0)
        return -1;
    store->lost_rows = true;
    report(store, LOG_ERR, "checkpoint %s %s (%s); it was set aside as %s and a new one is made",
           store->path, what, why, base);
    return 0;
}

/* ---- schema ---- */

/* `version` stands in the file's head and in meta: one flipped bit in the head must not pass for a
 * newer version. */
static int put_head(sqlite3 *db, int version)
{
    sqlite3_stmt *stmt;
    char sql[SQL_BYTES_MAX], text[16];
    int rc;

    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             APPLICATION_ID, version);
    rc = exec(db, sql);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db, tables[TABLE_META].put, -1, &stmt, NULL);
    if (rc != SQLITE_OK)
        return rc;
    snprintf(text, sizeof text, "%d", version);
    rc = bind_record(stmt, (const char *const[]){"schema_version", "", ""}, text, strlen(text));
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int migrate(sqlite3 *db, int version)
{
    int rc = exec(db, "BEGIN IMMEDIATE");

    for (; version < SCHEMA_VERSION && rc == SQLITE_OK; version++)
        rc = exec(db, schema_steps[version]);
    if (rc == SQLITE_OK)
        rc = put_head(db, SCHEMA_VERSION);
    if (rc == SQLITE_OK)
        rc = exec(db, "COMMIT");
    return rc;
}

/* Steps through a whole table: three keys, the value, whether the checksum fits. */
static int select_rows(sqlite3 *db, const struct table *table, sqlite3_stmt **out)
{
    char sql[SQL_BYTES_MAX];

    snprintf(sql, sizeof sql, "SELECT %s, value, checksum = %s FROM %s NOT INDEXED", table->keys,
             table->sum, table->name);
    return sqlite3_prepare_v2(db, sql, -1, out, NULL);
}

/* A good meta row's value as text; false if there is none. */
static bool get_meta(sqlite3 *db, const char *key, char *out, size_t out_bytes)
{
    sqlite3_stmt *stmt;
    bool found = false;

    if (select_rows(db, &tables[TABLE_META], &stmt) != SQLITE_OK)
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

static enum opened opened_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
        return OPENED;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return OPEN_IN_USE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR: /* a table of ours is missing */
        return OPEN_DAMAGED;
    default:
        return OPEN_UNAVAILABLE;
    }
}

static enum opened check_version(sqlite3 *db, int *version, char *why, size_t why_bytes)
{
    int id = 0, rc = query_int(db, "PRAGMA application_id", &id);
    char text[16] = "";

    if (rc == SQLITE_OK)
        rc = query_int(db, "PRAGMA user_version", version);
    if (rc != SQLITE_OK)
        return opened_of(rc);
    if (id != APPLICATION_ID || *version < 1) {
        snprintf(why, why_bytes, "it is not a checkpoint");
        return OPEN_DAMAGED;
    }
    if (*version <= SCHEMA_VERSION)
        return OPENED;
    if (!get_meta(db, "schema_version", text, sizeof text) || atoi(text) != *version) {
        snprintf(why, why_bytes, "its version makes no sense");
        return OPEN_DAMAGED;
    }
    snprintf(why, why_bytes,
             "it has schema version %d, and this program knows up to %d: start the newer "
             "cri-device-shim again, or move the file away to begin with empty state",
             *version, SCHEMA_VERSION);
    return OPEN_NEWER;
}

/* ---- open ---- */

/* A file on a disk that is read-only now. Without a journal SQLite opens it only when told that
 * nobody can write it ("immutable", which needs the path as a URI). */
static bool is_immutable(const char *path)
{
    char wal[PATH_MAX];

    with_suffix(wal, path, "-wal");
    return access(path, W_OK) < 0 && errno == EROFS && !exists(wal);
}

static void put_uri(char out[URI_BYTES_MAX], const char *path)
{
    char *to = out + sprintf(out, "file:");

    for (const char *p = path; *p; p++)
        to += strchr("%?#", *p) ? sprintf(to, "%%%02x", (unsigned char)*p) : sprintf(to, "%c", *p);
    strcpy(to, is_immutable(path) ? "?immutable=1" : "");
}

/* `lock_first`: before anything is read, for which SQLite then needs no -shm file. That is how a
 * full disk can be read, but not one that is read-only, which gives no such lock. */
static int connect(const char *path, bool lock_first, sqlite3 **out)
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
        rc = exec(db, "PRAGMA locking_mode = EXCLUSIVE");
    /* The temporary copy of a repair must not need the disk. */
    if (rc == SQLITE_OK)
        rc = exec(db, "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY");
    *out = db;
    return rc;
}

static void disconnect(struct store *store)
{
    for (int i = 0; i < TABLES; i++) {
        sqlite3_finalize(store->put[i]);
        sqlite3_finalize(store->drop[i]);
        store->put[i] = store->drop[i] = NULL;
    }
    sqlite3_close(store->db);
    store->db = NULL;
}

/* Makes a whole new file beside its final name: under that name no half-made one is ever seen. */
static int make_file(const struct store *store, char *why, size_t why_bytes)
{
    char path[PATH_MAX];
    sqlite3 *db = NULL;
    int fd, rc;

    with_suffix(path, store->path, ".new");
    unlink(path);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        snprintf(why, why_bytes, "%s", strerror(errno));
        return -1;
    }
    close(fd);
    rc = connect(path, false, &db);
    if (rc == SQLITE_OK)
        rc = migrate(db, 0);
    if (rc != SQLITE_OK)
        snprintf(why, why_bytes, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    if (rc == SQLITE_OK && (rename(path, store->path) < 0 || sync_dir(store->options.dir) < 0)) {
        snprintf(why, why_bytes, "%s", strerror(errno));
        rc = SQLITE_IOERR;
    }
    if (rc != SQLITE_OK)
        unlink(path);
    return rc == SQLITE_OK ? 0 : -1;
}

/* Copies the good rows of a table out, empties it (without WHERE SQLite does not look at what it
 * throws away, nor at a damaged index) and copies them back. */
static int rewrite_table(sqlite3 *db, const struct table *table)
{
    char sql[SQL_BYTES_MAX];
    int rc;

    snprintf(sql, sizeof sql,
             "CREATE TEMP TABLE good AS SELECT * FROM main.%s NOT INDEXED WHERE checksum = %s",
             table->name, table->sum);
    rc = exec(db, sql);
    if (rc != SQLITE_OK)
        return rc;
    snprintf(sql, sizeof sql,
             "BEGIN IMMEDIATE;"
             "DELETE FROM main.%1$s;"
             "INSERT OR IGNORE INTO main.%1$s SELECT * FROM good;"
             "COMMIT",
             table->name);
    rc = exec(db, sql);
    if (!sqlite3_get_autocommit(db))
        exec(db, "ROLLBACK");
    exec(db, "DROP TABLE temp.good");
    return rc;
}

static int rewrite_tables(sqlite3 *db)
{
    int rc = SQLITE_OK;

    for (int i = 0; i < TABLES && rc == SQLITE_OK; i++)
        rc = rewrite_table(db, &tables[i]);
    return rc;
}

/* A finding of the quick check is the file's end; one of the full check alone lies in an index,
 * which is made anew from the rows. */
static int check_file(struct store *store, char *why, size_t why_bytes)
{
    int rc = check(store->db, "PRAGMA quick_check(1)", why, why_bytes);

    if (rc != SQLITE_OK)
        return rc;
    rc = check(store->db, "PRAGMA integrity_check(1)", why, why_bytes);
    if ((rc & 0xff) != SQLITE_CORRUPT)
        return rc;
    report(store, LOG_ERR, "checkpoint %s: an index is damaged (%s); it is made anew", store->path,
           why);
    store->lost_rows = true; /* those whose checksum does not fit go with it */
    return rewrite_tables(store->db);
}

static int prepare(struct store *store)
{
    int rc = SQLITE_OK;

    for (int i = 0; i < TABLES && rc == SQLITE_OK; i++) {
        rc = sqlite3_prepare_v2(store->db, tables[i].put, -1, &store->put[i], NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_prepare_v2(store->db, tables[i].drop, -1, &store->drop[i], NULL);
    }
    return rc;
}

/* SQLite falls back to reading where it may not write; so it does for one flipped bit in the head,
 * which no later moment would heal. */
static bool head_forbids_writing(const struct store *store)
{
    int fd;

    if (sqlite3_db_readonly(store->db, "main") != 1)
        return false;
    fd = open(store->path, O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* `why` is filled unless OPENED; it may have a better text already than SQLite's. */
static enum opened open_db(struct store *store, bool lock_first, char *why, size_t why_bytes)
{
    int version = 0, rc = connect(store->path, lock_first, &store->db);
    enum opened opened;

    if (rc == SQLITE_OK)
        rc = exec(store->db, "PRAGMA locking_mode = EXCLUSIVE");
    opened = rc == SQLITE_OK ? check_version(store->db, &version, why, why_bytes) : opened_of(rc);
    if (opened == OPEN_NEWER)
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (opened != OPENED)
        return opened;
    if (head_forbids_writing(store)) {
        snprintf(why, why_bytes, "its head makes no sense");
        return OPEN_DAMAGED;
    }
    if (!sqlite3_db_readonly(store->db, "main"))
        rc = exec(store->db, LOCK_SQL);
    if (rc == SQLITE_OK)
        rc = check_file(store, why, why_bytes);
    if (rc == SQLITE_OK && !sqlite3_db_readonly(store->db, "main"))
        rc = exec(store->db, "PRAGMA journal_mode = WAL");
    if (rc == SQLITE_OK && version < SCHEMA_VERSION)
        rc = migrate(store->db, version);
    if (rc == SQLITE_OK)
        rc = prepare(store);
    return opened_of(rc);
}

static enum opened open_file(struct store *store, char *why, size_t why_bytes)
{
    char wal[PATH_MAX];
    enum opened opened;
    struct stat st;

    *why = '\0';
    if (make_dir(store->options.dir) < 0) {
        snprintf(why, why_bytes, "%s", strerror(errno));
        return OPEN_UNAVAILABLE;
    }
    if (!exists(store->path)) {
        /* SQLite would play a journal that lost its file into the new one. */
        with_suffix(wal, store->path, "-wal");
        if (exists(wal) && set_aside(store, "is damaged", "only its journal is there") < 0) {
            snprintf(why, why_bytes, "%s", strerror(errno));
            return OPEN_UNAVAILABLE;
        }
        if (make_file(store, why, why_bytes) < 0)
            return OPEN_UNAVAILABLE;
    }
    opened = open_db(store, false, why, why_bytes);
    if (opened == OPEN_UNAVAILABLE) {
        disconnect(store);
        *why = '\0';
        opened = open_db(store, true, why, why_bytes);
    }
    if (opened == OPENED && stat(store->path, &st) == 0)
        store->inode = st.st_ino;
    if (opened == OPENED)
        return opened;
    if (*why == '\0')
        snprintf(why, why_bytes, "%s", sqlite3_errmsg(store->db));
    disconnect(store);
    return opened;
}

/* Whether a file that could not be opened may have rows in it; not if it is known to be a new one.
 */
static bool may_hold_rows(const struct store *store, bool is_new)
{
    return !is_new && (exists(store->path) || (errno != ENOENT && errno != ENOTDIR));
}

int store_open(const struct store_options *options, struct store **out, char *err, size_t err_bytes)
{
    struct store *store = calloc(1, sizeof *store);
    char why[STORE_ERROR_BYTES_MAX], boot[64];
    enum opened opened;
    bool is_new = false;

    if (!store) {
        snprintf(err, err_bytes, "out of memory");
        return -1;
    }
    store->options = *options;
    if (snprintf(store->path, sizeof store->path, "%s/" STORE_FILE, options->dir) >=
        (int)sizeof store->path) {
        snprintf(err, err_bytes, "checkpoint directory: %s", strerror(ENAMETOOLONG));
        free(store);
        return -1;
    }
    opened = open_file(store, why, sizeof why);
    if (opened == OPEN_DAMAGED) {
        opened = OPEN_UNAVAILABLE;
        is_new = set_aside(store, "is damaged", why) == 0;
        if (is_new)
            opened = open_file(store, why, sizeof why);
    }
    if (opened != OPENED && (opened != OPEN_UNAVAILABLE || may_hold_rows(store, is_new))) {
        snprintf(err, err_bytes, "checkpoint %s: %s", store->path,
                 opened == OPEN_IN_USE ? "another process has it open" : why);
        store_close(store);
        return -1;
    }
    if (opened != OPENED)
        report(store, LOG_ERR, "checkpoint %s cannot be made (%s); new allocations are refused",
               store->path, why);
    else if (get_meta(store->db, "boot_id", boot, sizeof boot))
        store->rebooted = boot[0] && options->boot_id[0] && strcmp(boot, options->boot_id) != 0;
    *out = store;
    return 0;
}

/* ---- load ---- */

/* True if the row is good. */
static bool load_row(const struct store *store, sqlite3_stmt *stmt, int table,
                     void (*each)(void *user, const struct devicemgr_record *), void *user)
{
    struct devicemgr_record record = {.kind = (enum devicemgr_record_kind)table};
    const void *value = sqlite3_column_blob(stmt, 3);

    for (int i = 0; i < 3; i++) {
        const char *key = (const char *)sqlite3_column_text(stmt, i);

        record.key[i] = key ? key : "";
    }
    if (!sqlite3_column_int(stmt, 4)) {
        report(store, LOG_ERR, "checkpoint %s: a damaged row of table %s (%s %s %s) is dropped",
               store->path, tables[table].name, record.key[0], record.key[1], record.key[2]);
        return false;
    }
    record.value = value ? value : "";
    record.value_bytes = (size_t)sqlite3_column_bytes(stmt, 3);
    each(user, &record);
    return true;
}

static int load_table(struct store *store, int table,
                      void (*each)(void *user, const struct devicemgr_record *), void *user)
{
    sqlite3_stmt *stmt;
    bool all_good = true;
    int rc = select_rows(store->db, &tables[table], &stmt);

    if (rc != SQLITE_OK)
        return rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
        all_good = load_row(store, stmt, table, each, user) && all_good;
    sqlite3_finalize(stmt);
    store->lost_rows = store->lost_rows || !all_good || rc != SQLITE_DONE;
    if (rc != SQLITE_DONE)
        return rc;
    return all_good ? SQLITE_OK : rewrite_table(store->db, &tables[table]);
}

void store_load(struct store *store, void (*each)(void *user, const struct devicemgr_record *),
                void *user)
{
    store->load_asked = true;
    if (!store->db)
        return;
    store->loaded = true;
    for (int i = 0; i < TABLE_META; i++) {
        if (load_table(store, i, each, user) != SQLITE_OK)
            report(store, LOG_ERR, "checkpoint %s: table %s: %s", store->path, tables[i].name,
                   sqlite3_errmsg(store->db));
    }
}

bool store_lost_rows(const struct store *store)
{
    return store->lost_rows;
}

bool store_rebooted(const struct store *store)
{
    return store->rebooted;
}

/* ---- commit ---- */

/* Rows that came to light after store_load(), or came from elsewhere, are unknown to the core;
 * writing on would mix two states. */
static bool holds_unread_rows(const struct store *store)
{
    int n = 0;

    return store->load_asked && (!store->loaded || store->reset) &&
           (query_int(store->db,
                      "SELECT (SELECT count(*) FROM resources) + (SELECT count(*) FROM allocations)"
                      " + (SELECT count(*) FROM pods)",
                      &n) != SQLITE_OK ||
            n > 0);
}

static int reopen(struct store *store, char *err, size_t err_bytes)
{
    char why[STORE_ERROR_BYTES_MAX];
    enum opened opened = open_file(store, why, sizeof why);

    if (opened == OPENED && holds_unread_rows(store)) {
        disconnect(store);
        opened = OPEN_UNAVAILABLE;
        snprintf(why, sizeof why, "its rows were not read at start");
        if (set_aside(store, "is left as it is", why) == 0) {
            store->reset = true;
            opened = open_file(store, why, sizeof why);
        }
    }
    if (opened != OPENED) {
        snprintf(err, err_bytes, "checkpoint %s: %s", store->path, why);
        return -1;
    }
    store->loaded = true;
    return 0;
}

/* What goes into a file that has lost its name is lost with this process. */
static bool has_name(const struct store *store)
{
    struct stat st;

    return stat(store->path, &st) == 0 && st.st_ino == store->inode;
}

/* Lets go of the file that has lost its name, and of what has that name now: neither is the state.
 * SQLite must not bring the journal, which may be another's by now, to an end. */
static int leave_file(struct store *store, char *err, size_t err_bytes)
{
    static const char why[] = "removed or replaced while in use";
    char wal[PATH_MAX];

    with_suffix(wal, store->path, "-wal");
    if ((exists(store->path) || exists(wal)) &&
        set_aside(store, "is not the one that was opened", why) < 0) {
        snprintf(err, err_bytes, "checkpoint %s was %s: %s", store->path, why, strerror(errno));
        return -1;
    }
    report(store, LOG_ERR, "checkpoint %s was %s; it is written anew", store->path, why);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    disconnect(store);
    store->reset = true;
    store->boot_written = false;
    return 0;
}

/* The file was let go, and there is a new one: its owner must hear of that before it writes. */
static int tell_reset(struct store *store, char *err, size_t err_bytes)
{
    store->reset = false;
    snprintf(err, err_bytes, "checkpoint %s was lost, and is written anew", store->path);
    return STORE_RESET;
}

static int write_all(struct store *store, const struct devicemgr_record *records, size_t n)
{
    static const char *const boot_key[3] = {"boot_id", "", ""};
    int rc = exec(store->db, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK && !store->boot_written)
        rc = write_row(store, TABLE_META, boot_key, store->options.boot_id,
                       strlen(store->options.boot_id));
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++)
        rc = write_row(store, (int)records[i].kind, records[i].key, records[i].value,
                       records[i].value_bytes);
    return rc == SQLITE_OK ? exec(store->db, "COMMIT") : rc;
}

/* The words are taken before anything else is asked of SQLite. */
static void put_failure(struct store *store, char *err, size_t err_bytes)
{
    int number = sqlite3_system_errno(store->db);

    snprintf(err, err_bytes, "checkpoint %s: %s%s%s%s", store->path, sqlite3_errmsg(store->db),
             number ? " (" : "", number ? strerror(number) : "", number ? ")" : "");
}

int store_commit(struct store *store, const struct devicemgr_record *records, size_t records_len,
                 char *err, size_t err_bytes)
{
    int rc;

    if (store->db && !has_name(store) && leave_file(store, err, err_bytes) < 0)
        return -1;
    if (!store->db && reopen(store, err, err_bytes) < 0)
        return -1;
    if (store->reset)
        return tell_reset(store, err, err_bytes);
    rc = write_all(store, records, records_len);
    if (rc == SQLITE_OK) {
        store->boot_written = true;
        return 0;
    }
    put_failure(store, err, err_bytes);
    if (!sqlite3_get_autocommit(store->db))
        exec(store->db, "ROLLBACK");
    /* SQLite opened the file for reading only; it can be written again only when opened anew. */
    if ((rc & 0xff) == SQLITE_READONLY)
        disconnect(store);
    return -1;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    disconnect(store);
    free(store);
}
