#include "devicemgr/store/store.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <sqlite3.h>

#include "devicemgr/store/store_copy.h"
#include "devicemgr/store/store_db.h"
#include "devicemgr/store/store_file.h"
#include "devicemgr/store/store_scan.h"
#include "devicemgr/store/store_schema.h"
#include "devicemgr/store/store_table.h"

/* Takes the lock of locking_mode = EXCLUSIVE, which a file with a journal would get with its first
 * write only. */
#define LOCK_SQL "BEGIN IMMEDIATE; COMMIT"

#define REPORT_BYTES_MAX 1024

/* What the core has of the rows in the file. */
enum store_rows {
    ROWS_UNASKED,  /* store_load() has not run: what is there does not matter */
    ROWS_UNREAD,   /* it ran when there was no file to read: what comes to light later is unknown */
    ROWS_READ,     /* all of them */
    ROWS_WRITTEN,  /* all of them, and meta holds this boot's id */
    ROWS_NEW_FILE, /* the file is a new one, and the core, which does not know yet, has others */
};

struct store {
    struct store_options options;
    char path[STORE_PATH_BYTES_MAX], journal[PATH_MAX];
    sqlite3 *db; /* NULL: not open, each commit tries again */
    sqlite3_stmt *put[STORE_TABLES];
    sqlite3_stmt *drop[STORE_TABLES];
    /* To notice that what is open was taken away, or cut. */
    struct store_file_mark file_is, journal_is;
    enum store_rows rows;
    bool made, rebooted, lost_rows; /* what store_made() and so on answer */
};

static void report(const struct store *store, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void report(const struct store *store, int level, const char *format, ...)
{
    char text[REPORT_BYTES_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    store->options.report(store->options.user, level, text);
}

/* `what`: of the file, for the log. */
static int set_aside_as(struct store *store, const char *kind, const char *what, const char *why)
{
    char base[STORE_ASIDE_BYTES_MAX];

    if (store_file_set_aside(store->options.dir, store->path, kind, base) < 0)
        return -1;
    store->lost_rows = true;
    report(store, LOG_ERR, "checkpoint %s %s (%s); it was set aside as %s and a new one is made",
           store->path, what, why, base);
    return 0;
}

static int set_aside(struct store *store, const char *what, const char *why)
{
    return set_aside_as(store, "damaged", what, why);
}

/* ---- open ---- */

/* The next process must know it, too, if this one ends early. Where it cannot be written, the next
 * commit of the core has it. */
static void note_lost(struct store *store)
{
    store->lost_rows = true;
    store_meta_put(store->db, STORE_META_LOST, "1");
}

/* A finding of the quick check is the file's end; one of the full check alone lies in an index,
 * which is made anew from the rows. Neither is believed before `again`: a page that the disk did
 * not give is one, too, and may be there the next time. */
static int check_file(struct store *store, bool again, char *why, size_t why_bytes)
{
    int rc = store_db_check(store->db, "PRAGMA quick_check(1)", why, why_bytes);

    if (rc != SQLITE_OK)
        return rc;
    rc = store_db_check(store->db, "PRAGMA integrity_check(1)", why, why_bytes);
    if ((rc & 0xff) != SQLITE_CORRUPT || !again)
        return rc;
    report(store, LOG_ERR, "checkpoint %s: an index is damaged (%s); it is made anew", store->path,
           why);
    rc = store_tables_rewrite(store->db);
    if (rc == SQLITE_OK)
        note_lost(store); /* rows whose checksum does not fit go with it */
    return rc;
}

static void disconnect(struct store *store)
{
    for (int i = 0; i < STORE_TABLES; i++) {
        sqlite3_finalize(store->put[i]);
        sqlite3_finalize(store->drop[i]);
        store->put[i] = store->drop[i] = NULL;
    }
    sqlite3_close(store->db);
    store->db = NULL;
}

/* `again`: it did not open, or was damaged, without the lock that is taken first then. `why` is
 * filled unless STORE_OPENED; it may have a better text already than SQLite's. */
static enum store_opened open_db(struct store *store, bool again, char *why, size_t why_bytes)
{
    int version = 0, rc = store_db_connect(store->path, again, &store->db);
    enum store_opened opened;

    if (rc == SQLITE_OK)
        rc = store_db_exec(store->db, "PRAGMA locking_mode = EXCLUSIVE");
    opened = rc == SQLITE_OK ? store_schema_check(store->db, &version, why, why_bytes)
                             : store_opened_of(rc);
    if (opened == STORE_NEWER)
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (opened != STORE_OPENED)
        return opened;
    if (store_db_head_forbids_writing(store->db, store->path)) {
        snprintf(why, why_bytes, "its head makes no sense");
        return STORE_DAMAGED;
    }
    if (!sqlite3_db_readonly(store->db, "main"))
        rc = store_db_exec(store->db, LOCK_SQL);
    if (rc == SQLITE_OK)
        rc = check_file(store, again, why, why_bytes);
    if (rc == SQLITE_OK && !sqlite3_db_readonly(store->db, "main"))
        rc = store_db_exec(store->db, "PRAGMA journal_mode = WAL");
    if (rc == SQLITE_OK)
        rc = store_schema_migrate(store->db, version);
    if (rc == SQLITE_OK)
        rc = store_late_tables_check(store->db);
    if (rc == SQLITE_OK)
        rc = store_tables_prepare(store->db, store->put, store->drop);
    return store_opened_of(rc);
}

static void mark_files(struct store *store)
{
    store_file_mark(store->path, &store->file_is);
    store_file_mark(store->journal, &store->journal_is);
}

static enum store_opened open_file(struct store *store, char *why, size_t why_bytes)
{
    enum store_opened opened;
    int file, journal = 0;

    *why = '\0';
    if (store_file_make_dir(store->options.dir) < 0) {
        snprintf(why, why_bytes, "%s", strerror(errno));
        return STORE_UNAVAILABLE;
    }
    file = store_file_find(store->path);
    if (file == 0)
        journal = store_file_find(store->journal);
    /* SQLite would play a journal that lost its file into the new one. */
    if (file < 0 || journal < 0 ||
        (journal > 0 && set_aside(store, "is damaged", "only its journal is there") < 0)) {
        snprintf(why, why_bytes, "%s", strerror(errno));
        return STORE_UNAVAILABLE;
    }
    if (file == 0 && store_schema_make_file(store->options.dir, store->path,
                                            store->lost_rows || store->rows == ROWS_NEW_FILE, why,
                                            why_bytes) < 0)
        return STORE_UNAVAILABLE;
    opened = open_db(store, false, why, why_bytes);
    if (opened == STORE_UNAVAILABLE || opened == STORE_DAMAGED) {
        disconnect(store);
        *why = '\0';
        opened = open_db(store, true, why, why_bytes);
    }
    if (opened == STORE_OPENED) {
        mark_files(store);
        return opened;
    }
    if (*why == '\0')
        snprintf(why, why_bytes, "%s", sqlite3_errmsg(store->db));
    disconnect(store);
    return opened;
}

/* Whether a file that could not be opened may have rows in it; not if it is known to be a new
 * one. */
static bool may_hold_rows(const struct store *store, bool is_new)
{
    return !is_new && store_file_find(store->path) != 0;
}

int store_open(const struct store_options *options, struct store **out, char *err, size_t err_bytes)
{
    struct store *store = calloc(1, sizeof *store);
    char why[STORE_ERROR_BYTES_MAX], boot[64];
    enum store_opened opened;
    bool is_new = false;

    if (!store) {
        snprintf(err, err_bytes, "out of memory");
        return -1;
    }
    store->options = *options;
    if (store_file_path(options->dir, store->path) < 0) {
        snprintf(err, err_bytes, "checkpoint directory: %s", strerror(errno));
        free(store);
        return -1;
    }
    store_file_suffixed(store->journal, store->path, "-wal");
    store->made = !store_file_exists(store->path);
    if (options->discard && store_file_exists(store->path))
        is_new = set_aside(store, "is not read again", "the process has crashed reading it") == 0;
    opened = open_file(store, why, sizeof why);
    if (opened == STORE_DAMAGED || opened == STORE_NEWER) {
        is_new = (opened == STORE_DAMAGED
                      ? set_aside(store, "is damaged", why)
                      : set_aside_as(store, "newer", "is a newer release's", why)) == 0;
        opened = STORE_UNAVAILABLE;
        if (is_new)
            opened = open_file(store, why, sizeof why);
    }
    if (opened != STORE_OPENED && (opened != STORE_UNAVAILABLE || may_hold_rows(store, is_new))) {
        snprintf(err, err_bytes, "checkpoint %s: %s", store->path,
                 opened == STORE_IN_USE ? "another process has it open" : why);
        store_close(store);
        return -1;
    }
    if (opened != STORE_OPENED)
        report(store, LOG_ERR, "checkpoint %s cannot be made (%s); new allocations are refused",
               store->path, why);
    else if (store_meta_get(store->db, "boot_id", boot, sizeof boot))
        store->rebooted = boot[0] && options->boot_id[0] && strcmp(boot, options->boot_id) != 0;
    if (opened == STORE_OPENED && store_meta_get(store->db, STORE_META_LOST, boot, sizeof boot))
        store->lost_rows = true;
    *out = store;
    return 0;
}

/* ---- load ---- */

/* True if the row is good. */
static bool load_row(const struct store *store, sqlite3_stmt *stmt, int table,
                     void (*each)(void *user, const struct devicemgr_record *), void *user)
{
    struct devicemgr_record record = {.kind = (enum devicemgr_record_kind)table};

    if (!store_row_read(stmt, &record)) {
        report(store, LOG_ERR, "checkpoint %s: a damaged row of table %s (%s %s %s) is dropped",
               store->path, store_tables[table].name, record.key[0], record.key[1], record.key[2]);
        return false;
    }
    each(user, &record);
    return true;
}

static int load_table(struct store *store, int table,
                      void (*each)(void *user, const struct devicemgr_record *), void *user)
{
    sqlite3_stmt *stmt;
    bool all_good = true;
    int rc = store_rows_select(store->db, &store_tables[table], &stmt);

    store->lost_rows = store->lost_rows || rc != SQLITE_OK;
    if (rc != SQLITE_OK)
        return rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
        all_good = load_row(store, stmt, table, each, user) && all_good;
    sqlite3_finalize(stmt);
    store->lost_rows = store->lost_rows || rc != SQLITE_DONE;
    if (rc != SQLITE_DONE || all_good)
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    note_lost(store);
    return store_table_rewrite(store->db, &store_tables[table]);
}

void store_load(struct store *store, void (*each)(void *user, const struct devicemgr_record *),
                void *user)
{
    store->rows = store->db ? ROWS_READ : ROWS_UNREAD;
    if (!store->db)
        return;
    for (int i = 0; i < STORE_TABLE_META; i++) {
        if (load_table(store, i, each, user) != SQLITE_OK)
            report(store, LOG_ERR, "checkpoint %s: table %s: %s", store->path, store_tables[i].name,
                   sqlite3_errmsg(store->db));
    }
}

bool store_made(const struct store *store)
{
    return store->made;
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

    return (store->rows == ROWS_UNREAD || store->rows == ROWS_NEW_FILE) &&
           (store_tables_count(store->db, &n) != SQLITE_OK || n > 0);
}

static int reopen(struct store *store, char *err, size_t err_bytes)
{
    char why[STORE_ERROR_BYTES_MAX];
    enum store_opened opened = open_file(store, why, sizeof why);

    if (opened == STORE_OPENED && holds_unread_rows(store)) {
        disconnect(store);
        opened = STORE_UNAVAILABLE;
        snprintf(why, sizeof why, "its rows were not read at start");
        if (set_aside(store, "is left as it is", why) == 0) {
            store->rows = ROWS_NEW_FILE;
            opened = open_file(store, why, sizeof why);
        }
    }
    if (opened != STORE_OPENED) {
        snprintf(err, err_bytes, "checkpoint %s: %s", store->path, why);
        return -1;
    }
    if (store->rows == ROWS_UNREAD)
        store->rows = ROWS_READ; /* it is empty */
    return 0;
}

/* What goes into a file that has lost its name is lost with this process; so is all that only the
 * journal has, which the file without it, or with what is left of it, does not show to the next. */
static bool is_whole(const struct store *store)
{
    return (store->db ? store_file_is(store->path, &store->file_is)
                      : store_file_is_as_it_was(store->path, &store->file_is)) &&
           (store->journal_is.inode == 0 || store_file_is(store->journal, &store->journal_is));
}

/* Whether the core has the file's rows, so that no other may take its place; also while it is not
 * open, since nothing holds it then. */
static bool was_read(const struct store *store)
{
    return store->db || store->rows == ROWS_READ || store->rows == ROWS_WRITTEN;
}

/* Lets go of the file that has lost its name or is not whole, and of what has that name now:
 * neither is the state. SQLite must not bring the journal, which may be another's by now, to an
 * end. */
static int leave_file(struct store *store, char *err, size_t err_bytes)
{
    static const char why[] = "removed, replaced or cut short while in use";

    if ((store_file_exists(store->path) || store_file_exists(store->journal)) &&
        set_aside(store, "is not the one that was opened", why) < 0) {
        snprintf(err, err_bytes, "checkpoint %s was %s: %s", store->path, why, strerror(errno));
        return -1;
    }
    report(store, LOG_ERR, "checkpoint %s was %s; it is written anew", store->path, why);
    if (store->db)
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    disconnect(store);
    store->rows = ROWS_NEW_FILE;
    return 0;
}

/* The file was let go, and there is a new one: its owner must hear of that before it writes. */
static int tell_reset(struct store *store, char *err, size_t err_bytes)
{
    store->rows = ROWS_READ; /* the core writes all it has into it */
    snprintf(err, err_bytes, "checkpoint %s was lost, and is written anew", store->path);
    return STORE_RESET;
}

static int write_row(const struct store *store, int table, const char *const key[3],
                     const void *value, size_t bytes)
{
    sqlite3_stmt *stmt = value ? store->put[table] : store->drop[table];
    int rc;

    if (store_tables[table].make)
        return store_row_write_late(store->db, &store_tables[table], key, value, bytes);
    rc = store_row_bind(stmt, key, value, bytes);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int write_all(struct store *store, const struct devicemgr_record *records, size_t n)
{
    static const char *const boot_key[3] = {"boot_id", "", ""};
    int rc = store_db_exec(store->db, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK && store->rows != ROWS_WRITTEN)
        rc = write_row(store, STORE_TABLE_META, boot_key, store->options.boot_id,
                       strlen(store->options.boot_id));
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++)
        rc = write_row(store, (int)records[i].kind, records[i].key, records[i].value,
                       records[i].value_bytes);
    return rc == SQLITE_OK ? store_db_exec(store->db, "COMMIT") : rc;
}

int store_commit(struct store *store, const struct devicemgr_record *records, size_t records_len,
                 char *err, size_t err_bytes)
{
    int rc;

    if (was_read(store) && !is_whole(store) && leave_file(store, err, err_bytes) < 0)
        return -1;
    if (!store->db && reopen(store, err, err_bytes) < 0)
        return -1;
    if (store->rows == ROWS_NEW_FILE)
        return tell_reset(store, err, err_bytes);
    rc = write_all(store, records, records_len);
    if (rc == SQLITE_OK) {
        store->rows = ROWS_WRITTEN;
        mark_files(store);
        return 0;
    }
    store_db_failure(store->db, store->path, err, err_bytes);
    if (!sqlite3_get_autocommit(store->db))
        store_db_exec(store->db, "ROLLBACK");
    /* SQLite opened the file for reading only; it can be written again only when opened anew. */
    if ((rc & 0xff) == SQLITE_READONLY) {
        disconnect(store);
        mark_files(store); /* the journal may have gone with that */
    }
    return -1;
}

/* ---- looking ---- */

int store_look(struct store *store, struct store_found *found,
               void (*each)(void *user, const struct devicemgr_record *record, bool good),
               void *user, char *err, size_t err_bytes)
{
    if (!store->db || !is_whole(store)) {
        snprintf(err, err_bytes, "checkpoint %s: %s", store->path,
                 store->db ? "removed, replaced or cut short while in use" : "it is not open");
        return -1;
    }
    if (store_db_scan(store->db, found, each, user) == SQLITE_OK)
        return 0;
    store_db_failure(store->db, store->path, err, err_bytes);
    return -1;
}

int store_copy_aside(struct store *store, char base[STORE_ASIDE_BYTES_MAX], char *err,
                     size_t err_bytes)
{
    *base = '\0';
    return store->db
               ? store_copy_make(store->db, store->options.dir, store->path, base, err, err_bytes)
               : 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    disconnect(store);
    free(store);
}
