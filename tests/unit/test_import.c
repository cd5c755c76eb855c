/* shim/kubelet_import.c: from the kubelet's file into our checkpoint; what it says of that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/store/store.h"
#include "shim/boot.h"
#include "shim/kubelet_import.h"

struct fixture {
    char dir[32];
    char state_dir[64];
    char file[64];
    size_t resources, allocations;
    bool of_this_boot; /* every allocation's options */
    char boot_id[BOOT_ID_BYTES_MAX];
};

static void on_report(void *user, int level, const char *text)
{
    (void)user;
    fail_msg("%d %s", level, text);
}

static void on_record(void *user, const struct devicemgr_record *record)
{
    struct fixture *f = user;
    Checkpoint__V1__Allocation *row;

    f->resources += record->kind == DEVICEMGR_RECORD_RESOURCE;
    if (record->kind != DEVICEMGR_RECORD_ALLOCATION)
        return;
    f->allocations++;
    row = checkpoint__v1__allocation__unpack(NULL, record->value_bytes, record->value);
    assert_non_null(row);
    f->of_this_boot = f->of_this_boot && strcmp(row->boot_id, f->boot_id) == 0;
    checkpoint__v1__allocation__free_unpacked(row, NULL);
}

static struct store *open_store(struct fixture *f)
{
    const struct store_options options = {
        .dir = f->state_dir, .boot_id = "a-boot", .report = on_report};
    char err[STORE_ERROR_BYTES_MAX];
    struct store *store;

    if (store_open(&options, &store, err, sizeof err) < 0)
        fail_msg("%s", err);
    return store;
}

static void read_store(struct fixture *f)
{
    struct store *store = open_store(f);

    f->resources = f->allocations = 0;
    f->of_this_boot = true;
    store_load(store, on_record, f);
    store_close(store);
}

/* A copy of the real file, last written at that time; 0: now. */
static void copy_real(const struct fixture *f, time_t written)
{
    struct timespec times[2] = {{.tv_sec = written}, {.tv_sec = written}};
    char text[8192];
    FILE *from = fopen(KUBELET_CHECKPOINT, "rb"), *to = fopen(f->file, "wb");
    size_t bytes;

    assert_true(from && to);
    bytes = fread(text, 1, sizeof text, from);
    assert_int_equal(fwrite(text, 1, bytes, to), bytes);
    fclose(from);
    fclose(to);
    if (written)
        assert_int_equal(utimensat(AT_FDCWD, f->file, times, 0), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->dir, "/tmp/test-import-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->state_dir, sizeof f->state_dir, "%s/state", f->dir);
    snprintf(f->file, sizeof f->file, "%s/kubelet", f->dir);
    boot_id_read(f->boot_id);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    static const char *const LEFT[] = {"checkpoint.db", "checkpoint.db-wal", "checkpoint.db-shm"};
    struct fixture *f = *state;
    char path[128];

    for (size_t i = 0; i < sizeof LEFT / sizeof LEFT[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", f->state_dir, LEFT[i]);
        unlink(path);
    }
    rmdir(f->state_dir);
    unlink(f->file);
    assert_int_equal(rmdir(f->dir), 0);
    free(f);
    return 0;
}

static void a_real_file_is_imported_once(void **state)
{
    struct fixture *f = *state;

    copy_real(f, 0);
    for (int i = 0; i < 2; i++) { /* the second time everything is there */
        assert_int_equal(import_kubelet_checkpoint(f->file, f->state_dir), 0);
        read_store(f);
        assert_int_equal(f->resources, 1);
        assert_int_equal(f->allocations, 2);
        assert_true(f->of_this_boot);
    }
}

static void options_of_an_older_boot_are_asked_for_anew(void **state)
{
    struct fixture *f = *state;

    copy_real(f, boot_time() - 10);
    assert_int_equal(import_kubelet_checkpoint(f->file, f->state_dir), 0);
    read_store(f);
    assert_int_equal(f->allocations, 2);
    assert_false(f->of_this_boot);
}

static void rows_that_are_there_stay(void **state)
{
    struct fixture *f = *state;
    const struct devicemgr_record ours = {.kind = DEVICEMGR_RECORD_RESOURCE,
                                          .key = {"vendor.example/widget", "", ""},
                                          .value = "ours",
                                          .value_bytes = 4};
    struct store *store = open_store(f);
    char err[STORE_ERROR_BYTES_MAX];

    assert_int_equal(store_commit(store, &ours, 1, err, sizeof err), 0);
    store_close(store);
    copy_real(f, 0);
    assert_int_equal(import_kubelet_checkpoint(f->file, f->state_dir), 0);
    read_store(f);
    assert_int_equal(f->resources, 1);
    assert_int_equal(f->allocations, 2);
}

static void a_store_in_use_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct store *store = open_store(f);

    copy_real(f, 0);
    assert_int_equal(import_kubelet_checkpoint(f->file, f->state_dir), -1);
    store_close(store);
    read_store(f);
    assert_int_equal(f->resources + f->allocations, 0);
}

static void what_is_no_checkpoint_changes_nothing(void **state)
{
    struct fixture *f = *state;
    int fd;

    assert_int_equal(import_kubelet_checkpoint(f->file, f->state_dir), -1); /* no such file */
    assert_int_equal(import_kubelet_checkpoint(f->dir, f->state_dir), -1);
    assert_int_equal(import_kubelet_checkpoint("/dev/null", f->state_dir), -1);
    copy_real(f, 0);
    assert_int_equal(truncate(f->file, 500), 0);
    assert_int_equal(import_kubelet_checkpoint(f->file, f->state_dir), -1);
    fd = open(f->file, O_WRONLY);
    assert_int_equal(ftruncate(fd, 70 * 1024 * 1024), 0); /* sparse, and too large */
    close(fd);
    assert_int_equal(import_kubelet_checkpoint(f->file, f->state_dir), -1);
    assert_int_equal(access(f->state_dir, F_OK), -1);
}

static void a_state_directory_that_cannot_be_is_told(void **state)
{
    struct fixture *f = *state;

    copy_real(f, 0);
    assert_int_equal(import_kubelet_checkpoint(f->file, "/dev/null"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_real_file_is_imported_once, setup, teardown),
        cmocka_unit_test_setup_teardown(options_of_an_older_boot_are_asked_for_anew, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(rows_that_are_there_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(a_store_in_use_is_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_checkpoint_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_state_directory_that_cannot_be_is_told, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
