/* devicemgr/store/store.c on a disk that answers EIO: each operation of each step fails once, and
 * then all that follow it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "devicemgr/store/store.h"

/* ---- a VFS over the default one, whose files fail when told to ---- */

static struct {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    unsigned left; /* operations until one fails; 0: none will */
    bool lasting;  /* and all after it */
    bool failed;
    sqlite3_int64 bad; /* where nothing can be read; 0: everywhere it can */
} disk;

struct file {
    sqlite3_file base;
    sqlite3_file real; /* of disk.real->szOsFile bytes */
};

static bool fails(void)
{
    bool now = disk.left == 1;

    if (disk.left > 1 || (now && !disk.lasting))
        disk.left--;
    disk.failed = disk.failed || now;
    return now;
}

static sqlite3_file *real_of(sqlite3_file *file)
{
    return &((struct file *)file)->real;
}

static int file_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int file_read(sqlite3_file *file, void *to, int bytes, sqlite3_int64 at)
{
    return fails() || (disk.bad && at == disk.bad)
               ? SQLITE_IOERR_READ
               : real_of(file)->pMethods->xRead(real_of(file), to, bytes, at);
}

static int file_write(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 at)
{
    return fails() ? SQLITE_IOERR_WRITE
                   : real_of(file)->pMethods->xWrite(real_of(file), from, bytes, at);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 bytes)
{
    return fails() ? SQLITE_IOERR_TRUNCATE
                   : real_of(file)->pMethods->xTruncate(real_of(file), bytes);
}

static int file_sync(sqlite3_file *file, int flags)
{
    return fails() ? SQLITE_IOERR_FSYNC : real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *bytes)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), bytes);
}

static int file_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int file_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int file_reserved(sqlite3_file *file, int *is)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), is);
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int file_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int file_traits(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int file_shm_map(sqlite3_file *file, int page, int bytes, int extend, void volatile **out)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, bytes, extend, out);
}

static int file_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int file_shm_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods METHODS = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    int rc;

    (void)vfs;
    file->pMethods = NULL;
    if (fails())
        return SQLITE_IOERR;
    rc = disk.real->xOpen(disk.real, name, real_of(file), flags, out);
    if (rc == SQLITE_OK)
        file->pMethods = &METHODS;
    return rc;
}

static void heal(void)
{
    disk.left = 0;
    disk.failed = false;
    disk.bad = 0;
}

/* ---- fixture ---- */

struct fixture {
    char dir[64];
    char error[STORE_ERROR_BYTES_MAX];
    size_t old, kept, next; /* rows loaded */
};

static void note_report(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    if (strstr(text, "set aside"))
        disk.bad = 0; /* with its file */
}

static void count_row(void *user, const struct devicemgr_record *record)
{
    struct fixture *f = user;

    f->old += record->key[0][0] == 'o';
    f->kept += record->key[0][0] == 'k';
    f->next += record->key[0][0] == 'n';
}

static void remove_files(const struct fixture *f)
{
    DIR *stream = opendir(f->dir);
    char path[PATH_MAX];

    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", f->dir, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    closedir(stream);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (!f)
        return -1;
    snprintf(f->dir, sizeof f->dir, "/tmp/test_store_faults.XXXXXX");
    *state = f;
    disk.real = sqlite3_vfs_find(NULL);
    disk.vfs = *disk.real;
    disk.vfs.zName = "faults";
    disk.vfs.szOsFile = (int)(sizeof(struct file) + (size_t)disk.real->szOsFile);
    disk.vfs.xOpen = disk_open;
    return mkdtemp(f->dir) && sqlite3_vfs_register(&disk.vfs, 1) == SQLITE_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    int rc;

    heal();
    sqlite3_vfs_unregister(&disk.vfs);
    remove_files(f);
    rc = rmdir(f->dir);
    free(f);
    return rc;
}

/* NULL: its rows cannot be read now. */
static struct store *try_open_and_load(struct fixture *f)
{
    const struct store_options options = {.dir = f->dir, .boot_id = "b", .report = note_report};
    struct store *store;

    if (store_open(&options, &store, f->error, sizeof f->error) < 0)
        return NULL;
    f->old = f->kept = f->next = 0;
    store_load(store, count_row, f);
    return store;
}

static struct store *open_and_load(struct fixture *f)
{
    struct store *store = try_open_and_load(f);

    if (!store)
        fail_msg("%s", f->error);
    return store;
}

/* Three rows, whose keys begin with `letter`. */
static int commit_rows(struct fixture *f, struct store *store, char letter)
{
    static char value[3000];
    char keys[3][4];
    struct devicemgr_record records[3];

    for (int i = 0; i < 3; i++) {
        snprintf(keys[i], sizeof keys[i], "%c%d", letter, i);
        records[i] =
            (struct devicemgr_record){DEVICEMGR_RECORD_POD, {keys[i], "", ""}, value, sizeof value};
    }
    return store_commit(store, records, 3, f->error, sizeof f->error);
}

static void must_commit(struct fixture *f, struct store *store, char letter)
{
    if (commit_rows(f, store, letter) < 0)
        fail_msg("%s", f->error);
}

/* ---- tests ---- */

/* All or nothing; what was refused does not come back with what follows it. */
static void a_commit_that_fails_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    unsigned refused = 0;
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        for (int lasting = 0; lasting < 2; lasting++) {
            struct store *store;
            bool kept;

            remove_files(f);
            store = open_and_load(f);
            must_commit(f, store, 'o');
            disk.left = n;
            disk.lasting = lasting;
            kept = commit_rows(f, store, 'k') == 0;
            failed = disk.failed;
            heal();
            if (!kept && !strstr(f->error, "disk I/O error"))
                fail_msg("operation %u: %s", n, f->error);
            assert_true(kept || failed);
            refused += !kept;
            must_commit(f, store, 'n');
            store_close(store);
            store = open_and_load(f);
            assert_int_equal(f->old, 3);
            assert_int_equal(f->kept, kept ? 3 : 0);
            assert_int_equal(f->next, 3);
            store_close(store);
        }
    }
    assert_true(refused > 0);
}

/* Whatever cannot be read at start: the store opens, if need be once the disk is well, and takes
 * commits then; rows it does not have it has said to be lost. */
static void a_start_that_fails_is_made_up_for(void **state)
{
    struct fixture *f = *state;
    bool failed = true;
    unsigned lost_runs = 0, late_runs = 0;

    for (unsigned n = 1; failed; n++) {
        for (int lasting = 0; lasting < 2; lasting++) {
            struct store *store;
            size_t old;
            bool lost;
            int r;

            remove_files(f);
            store = open_and_load(f);
            must_commit(f, store, 'o');
            store_close(store);
            disk.left = n;
            disk.lasting = lasting;
            store = try_open_and_load(f);
            failed = disk.failed;
            heal();
            late_runs += !store;
            if (!store)
                store = open_and_load(f);
            old = f->old;
            lost = store_lost_rows(store);
            assert_true(old == 3 || lost);
            lost_runs += lost;
            r = commit_rows(f, store, 'n');
            if (r == STORE_RESET)
                r = commit_rows(f, store, 'n');
            if (r < 0)
                fail_msg("operation %u: %s", n, f->error);
            store_close(store);
            store = open_and_load(f);
            assert_true(f->old == old || f->old == 3);
            assert_int_equal(f->next, 3);
            store_close(store);
        }
    }
    print_message("%u starts lost rows, %u had to wait\n", lost_runs, late_runs);
    assert_true(lost_runs + late_runs > 0);
}

/* A page that cannot be read for a moment is read once more: it is no damage. */
static void one_operation_that_fails_at_the_start_loses_nothing(void **state)
{
    struct fixture *f = *state;
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        struct store *store;

        remove_files(f);
        store = open_and_load(f);
        must_commit(f, store, 'o');
        store_close(store);
        disk.left = n;
        disk.lasting = false;
        store = try_open_and_load(f);
        failed = disk.failed;
        heal();
        if (!store)
            store = open_and_load(f);
        if (f->old != 3 || store_lost_rows(store))
            fail_msg("operation %u: %zu rows", n, f->old);
        store_close(store);
    }
}

/* One that can never be read is: the file is set aside, and refuses no creates for ever. */
static void a_page_that_is_never_read_is_damage(void **state)
{
    struct fixture *f = *state;
    struct store *store = open_and_load(f);

    must_commit(f, store, 'o');
    store_close(store);
    disk.bad = 4096L * 2;
    store = open_and_load(f);
    assert_int_equal(disk.bad, 0);
    assert_int_equal(f->old, 0);
    assert_true(store_lost_rows(store));
    must_commit(f, store, 'n');
    store_close(store);
}

/* Nor is a table passed over of which not even a question can be put. */
static void what_memory_does_not_suffice_for_is_lost(void **state)
{
    struct fixture *f = *state;
    struct store *store = open_and_load(f);
    unsigned lost_runs = 0, whole_runs = 0;

    must_commit(f, store, 'o');
    store_close(store);
    for (int more = 0; whole_runs == 0; more += 256) {
        struct store_options options = {.dir = f->dir, .boot_id = "boot", .report = note_report};

        f->old = f->kept = f->next = 0;
        assert_int_equal(store_open(&options, &store, f->error, sizeof f->error), 0);
        sqlite3_hard_heap_limit64(sqlite3_memory_used() + more);
        store_load(store, count_row, f);
        sqlite3_hard_heap_limit64(0);
        assert_true(f->old == 3 || store_lost_rows(store));
        lost_runs += store_lost_rows(store);
        whole_runs += !store_lost_rows(store);
        store_close(store);
    }
    assert_true(lost_runs > 0);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_commit_that_fails_leaves_nothing),
        STORE_TEST(a_start_that_fails_is_made_up_for),
        STORE_TEST(one_operation_that_fails_at_the_start_loses_nothing),
        STORE_TEST(a_page_that_is_never_read_is_damage),
        STORE_TEST(what_memory_does_not_suffice_for_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
