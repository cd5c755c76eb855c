/* shim/rpc/unix_socket.c: connecting, by path and by an opened file. */
#include "tests/unit/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/rpc/unix_socket.h"

struct fixture {
    struct world *world;
    char path[128];
    int listener;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    snprintf(f->path, sizeof f->path, "%s/a.sock", f->world->dir);
    assert_int_equal(unix_listen(f->path, 0600, &f->listener), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    close(f->listener);
    unlink(f->path);
    err = world_free(f->world);
    free(f);
    return err;
}

static void connected(const struct fixture *f, int fd)
{
    int peer = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
    char byte = 'a';

    assert_true(fd >= 0 && peer >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(read(fd, &byte, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(write(peer, "b", 1), 1);
    assert_int_equal(read(fd, &byte, 1), 1);
    assert_int_equal(byte, 'b');
    close(peer);
    close(fd);
}

static void connects_by_its_path(void **state)
{
    struct fixture *f = *state;

    connected(f, unix_connect(f->path));
}

/* Also when the name is longer than an address, is another's, or is gone. */
static void connects_by_its_file(void **state)
{
    struct fixture *f = *state;
    int file = open(f->path, O_PATH | O_CLOEXEC);

    connected(f, unix_connect_file(file));
    assert_int_equal(unlink(f->path), 0);
    connected(f, unix_connect_file(file));
    close(file);
    assert_int_equal(unix_connect_file(-1), -ENOENT);
}

static void tells_why_it_cannot(void **state)
{
    struct fixture *f = *state;
    char longer[sizeof(struct sockaddr_un)];
    int file;

    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(unix_connect(longer), -ENAMETOOLONG);
    assert_int_equal(unix_connect(""), -ENAMETOOLONG);
    assert_int_equal(unix_connect("/nowhere/a.sock"), -ENOENT);
    file = open(f->path, O_PATH | O_CLOEXEC);
    close(f->listener);
    assert_int_equal(unix_connect(f->path), -ECONNREFUSED);
    assert_int_equal(unix_connect_file(file), -ECONNREFUSED);
    f->listener = file;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(connects_by_its_path),
        TEST(connects_by_its_file),
        TEST(tells_why_it_cannot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
