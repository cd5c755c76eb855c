/* shim/plugins/plugin_socket.c: what is connected to is what was looked at, whoever changes the
 * name in between. */
#include "tests/unit/waiting.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/plugins/plugin_socket.h"
#include "shim/rpc/unix_socket.h"

#define OTHER_UID 1234

struct fixture {
    struct world *world;
    char path[128], other[128];
    int served, others; /* listening sockets */
};

/* What a plugin's container does right after the file was looked at. */
static void (*on_looked)(const struct fixture *f);
static const struct fixture *looked;

static void after_look(void)
{
    void (*act)(const struct fixture *f) = on_looked;

    on_looked = NULL;
    if (act)
        act(looked);
}

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
    int r = __real_fstat(fd, st);

    after_look();
    return r;
}

int __real_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st)
{
    int r = __real_lstat(path, st);

    after_look();
    return r;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    snprintf(f->path, sizeof f->path, "%s/gpu.sock", f->world->dir);
    snprintf(f->other, sizeof f->other, "%s/other.sock", f->world->dir);
    assert_int_equal(unix_listen(f->path, 0600, &f->served), 0);
    assert_int_equal(unix_listen(f->other, 0600, &f->others), 0);
    looked = f;
    on_looked = NULL;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    close(f->served);
    close(f->others);
    unlink(f->path);
    unlink(f->other);
    err = world_free(f->world);
    free(f);
    return err;
}

/* Whether somebody has come to the listening socket. */
static bool has_come(int listener)
{
    int fd = accept(listener, NULL, NULL);

    if (fd >= 0)
        close(fd);
    else
        assert_int_equal(errno, EAGAIN);
    return fd >= 0;
}

static int dial(const struct fixture *f, uid_t uid, const char **wrong)
{
    return plugin_socket_connect(f->path, uid, wrong);
}

static void connects(void **state)
{
    const struct fixture *f = *state;
    const char *wrong;
    int fd = dial(f, getuid(), &wrong);

    assert_true(fd >= 0);
    assert_null(wrong);
    assert_true(has_come(f->served));
    close(fd);
}

static void rename_other(const struct fixture *f)
{
    assert_int_equal(rename(f->other, f->path), 0);
}

/* The runtime's socket, say, which only root may reach. */
static void link_other(const struct fixture *f)
{
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(symlink(f->other, f->path), 0);
}

static void comes_to_what_it_looked_at(void **state)
{
    static void (*const swaps[])(const struct fixture *f) = {link_other, rename_other};
    const struct fixture *f = *state;
    const char *wrong;

    for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
        struct fixture each = {0};
        int fd;

        /* A new socket for each, since its name is gone afterwards. */
        unlink(f->path);
        assert_int_equal(unix_listen(f->path, 0600, &each.served), 0);
        on_looked = swaps[i];
        fd = dial(f, getuid(), &wrong);
        assert_null(on_looked);
        assert_true(fd >= 0);
        assert_true(has_come(each.served));
        assert_false(has_come(f->others));
        close(fd);
        close(each.served);
    }
}

static void unlink_it(const struct fixture *f)
{
    assert_int_equal(unlink(f->path), 0);
}

static void one_that_goes_is_still_the_one(void **state)
{
    const struct fixture *f = *state;
    const char *wrong;
    int fd;

    on_looked = unlink_it;
    fd = dial(f, getuid(), &wrong);
    assert_true(fd >= 0);
    assert_true(has_come(f->served));
    close(fd);
}

static void says_what_may_come_later(void **state)
{
    struct fixture *f = *state;
    const char *wrong;

    close(f->served);
    assert_int_equal(dial(f, getuid(), &wrong), -ECONNREFUSED);
    assert_null(wrong);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(dial(f, getuid(), &wrong), -ENOENT);
    assert_null(wrong);
    f->served = dup(f->others);
}

static void says_what_never_will_be(void **state)
{
    const struct fixture *f = *state;
    const char *wrong;
    FILE *file;

    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(symlink(f->other, f->path), 0);
    assert_int_equal(dial(f, getuid(), &wrong), -EACCES);
    assert_string_equal(wrong, "it is a symlink; expected a socket");
    assert_int_equal(unlink(f->path), 0);
    file = fopen(f->path, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(dial(f, getuid(), &wrong), -EACCES);
    assert_string_equal(wrong, "it is no socket");
    assert_false(has_come(f->others));
}

static void refuses_a_strangers_file(void **state)
{
    const struct fixture *f = *state;
    const char *wrong;
    int fd;

    if (getuid() != 0)
        skip();
    assert_int_equal(chown(f->path, OTHER_UID, OTHER_UID), 0);
    assert_int_equal(dial(f, 0, &wrong), -EACCES);
    assert_string_equal(wrong, "it belongs to neither root nor the user who registered");
    assert_false(has_come(f->served));
    fd = dial(f, OTHER_UID, &wrong); /* root serves it, who may as well */
    assert_true(fd >= 0);
    close(fd);
}

/* Who listens, not who made the file, has the other end: seen by the credentials of listen(2). */
static void refuses_a_strangers_service(void **state)
{
    const struct fixture *f = *state;
    const char *wrong;

    if (getuid() != 0)
        skip();
    assert_int_equal(seteuid(OTHER_UID), 0);
    assert_int_equal(listen(f->served, 1), 0);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(dial(f, 0, &wrong), -EACCES);
    assert_string_equal(wrong, "it is served by neither root nor the user who registered");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(connects),
        TEST(comes_to_what_it_looked_at),
        TEST(one_that_goes_is_still_the_one),
        TEST(says_what_may_come_later),
        TEST(says_what_never_will_be),
        TEST(refuses_a_strangers_file),
        TEST(refuses_a_strangers_service),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
