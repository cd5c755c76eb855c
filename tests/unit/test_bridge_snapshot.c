/* shim/bridge/snapshot.c, on a real file system. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/bridge/limits.h"
#include "shim/bridge/snapshot.h"

#define BOOT "11111111-2222-3333-4444-555555555555"

struct fixture {
    char dir[32];
    char path[64];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->dir, "/tmp/test-snapshot-XXXXXX");
    *state = f;
    if (!mkdtemp(f->dir))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/" SNAPSHOT_NAME, f->dir);
    return 0;
}

/* Fails if there is anything but the file. */
static int tear_down(void **state)
{
    struct fixture *f = *state;
    int err;

    unlink(f->path);
    err = rmdir(f->dir);
    free(f);
    return err;
}

static int write_one(struct fixture *f, const char *name)
{
    Bridge__V1__Resource resource = BRIDGE__V1__RESOURCE__INIT;
    Bridge__V1__Resource *resources[] = {&resource};
    Bridge__V1__WatchResponse message = BRIDGE__V1__WATCH_RESPONSE__INIT;

    resource.name = (char *)name;
    message.mask_ms = 12;
    message.resources = resources;
    message.n_resources = 1;
    return snapshot_write(f->path, BOOT, 34, &message);
}

static void none(struct fixture *f, const char *boot_id, const char *expected)
{
    uint64_t lost_ms = 0;
    const char *why = NULL;

    assert_null(snapshot_read(f->path, boot_id, &lost_ms, &why));
    assert_string_equal(why, expected);
}

static void some(struct fixture *f)
{
    uint64_t lost_ms = 0;
    const char *why;
    Bridge__V1__WatchResponse *message = snapshot_read(f->path, BOOT, &lost_ms, &why);

    assert_non_null(message);
    assert_int_equal(lost_ms, 34);
    assert_int_equal(message->mask_ms, 12);
    assert_string_equal(message->resources[0]->name, "v.com/x");
    bridge__v1__watch_response__free_unpacked(message, NULL);
}

static void what_is_written_is_read(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    mode_t mask = umask(0);

    none(f, BOOT, "No such file or directory");
    assert_int_equal(write_one(f, "v.com/other"), 0);
    assert_int_equal(write_one(f, "v.com/x"), 0);
    umask(mask);
    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    some(f);
}

static void another_boot_s_is_none(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(write_one(f, "v.com/x"), 0);
    none(f, "21111111-2222-3333-4444-555555555555", "it is of another boot");
    /* Which boot this is cannot be told. */
    none(f, "", "it is of another boot");
}

static off_t size_of(struct fixture *f)
{
    struct stat st;

    assert_int_equal(stat(f->path, &st), 0);
    return st.st_size;
}

static void flip(struct fixture *f, off_t at)
{
    int fd = open(f->path, O_RDWR);
    char byte;

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x20;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void any_byte_that_is_wrong_makes_it_none(void **state)
{
    struct fixture *f = *state;
    uint64_t lost_ms;
    const char *why;

    assert_int_equal(write_one(f, "v.com/x"), 0);
    for (off_t at = 0; at < size_of(f); at++) {
        flip(f, at);
        assert_null(snapshot_read(f->path, BOOT, &lost_ms, &why));
        flip(f, at);
    }
    some(f);
}

static void any_length_that_is_wrong_makes_it_none(void **state)
{
    struct fixture *f = *state;
    uint64_t lost_ms;
    const char *why;

    assert_int_equal(write_one(f, "v.com/x"), 0);
    assert_int_equal(truncate(f->path, size_of(f) + 1), 0);
    none(f, BOOT, "its checksum is wrong");
    for (off_t len = size_of(f) - 2; len >= 0; len--) {
        assert_int_equal(truncate(f->path, len), 0);
        assert_null(snapshot_read(f->path, BOOT, &lost_ms, &why));
    }
    assert_int_equal(truncate(f->path, (off_t)SNAPSHOT_BYTES_MAX + 1), 0);
    none(f, BOOT, "it has no such size");
}

static void what_is_no_file_is_none(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mkdir(f->path, 0700), 0);
    none(f, BOOT, "it cannot be read");
    assert_int_equal(write_one(f, "v.com/x"), -EISDIR);
    assert_int_equal(rmdir(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    none(f, BOOT, "it cannot be read");
    unlink(f->path);
    assert_int_equal(symlink("/etc/passwd", f->path), 0);
    none(f, BOOT, "Too many levels of symbolic links");
    /* A link is replaced, not followed. */
    assert_int_equal(write_one(f, "v.com/x"), 0);
    some(f);
}

static void a_state_that_is_too_large_leaves_none(void **state)
{
    struct fixture *f = *state;
    char *name = malloc(SNAPSHOT_BYTES_MAX);

    assert_int_equal(write_one(f, "v.com/x"), 0);
    memset(name, 'a', SNAPSHOT_BYTES_MAX - 1);
    name[SNAPSHOT_BYTES_MAX - 1] = '\0';
    assert_int_equal(write_one(f, name), -EFBIG);
    none(f, BOOT, "No such file or directory");
    free(name);
}

static void a_directory_that_is_missing_is_an_error(void **state)
{
    struct fixture *f = *state, missing;

    (void)f;
    strcpy(missing.path, "/nonexistent/" SNAPSHOT_NAME);
    assert_int_equal(write_one(&missing, "v.com/x"), -ENOENT);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read),
        TEST(another_boot_s_is_none),
        TEST(any_byte_that_is_wrong_makes_it_none),
        TEST(any_length_that_is_wrong_makes_it_none),
        TEST(what_is_no_file_is_none),
        TEST(a_state_that_is_too_large_leaves_none),
        TEST(a_directory_that_is_missing_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
