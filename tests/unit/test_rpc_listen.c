/* shim/rpc/unix_socket.c: listening, and who is at the other end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/rpc/unix_socket.h"

static char dir[] = "/tmp/test-rpc-listen-XXXXXX";
static char path[sizeof dir + 8];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir + sizeof dir - 7, "XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/sock", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    if (unlink(path) < 0 && errno != ENOENT)
        return -1;
    return rmdir(dir);
}

static int connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    strcpy(address.sun_path, name);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void listens_with_the_mode(void **state)
{
    static const mode_t modes[] = {0600, 0660, 0666};
    mode_t before = umask(0);
    struct stat st;
    int fd;

    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(unix_listen(path, modes[i], &fd), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, modes[i]);
        close(fd);
    }
    umask(022);
    assert_int_equal(unix_listen(path, 0666, &fd), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    close(fd);
    umask(before);
}

static void gives_a_non_blocking_descriptor_closed_on_exec(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(unix_listen(path, 0600, &fd), 0);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
}

static void tells_the_peer_on_both_sides(void **state)
{
    struct ucred cred;
    int fd, client, served;

    (void)state;
    assert_int_equal(unix_listen(path, 0600, &fd), 0);
    client = connect_to(path);
    assert_true(client >= 0);
    served = accept(fd, NULL, NULL);
    assert_true(served >= 0);
    assert_int_equal(unix_peer(served, &cred), 0);
    assert_int_equal(cred.pid, getpid());
    assert_int_equal(unix_peer(client, &cred), 0);
    assert_int_equal(cred.uid, getuid());
    close(served);
    close(client);
    close(fd);
    assert_int_equal(unix_peer(fd, &cred), -EBADF);
}

static void replaces_a_stale_socket(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(unix_listen(path, 0600, &fd), 0);
    close(fd);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(unix_listen(path, 0600, &fd), 0);
    close(fd);
}

static void leaves_a_served_socket_alone(void **state)
{
    int fd, second = -7, client;

    (void)state;
    assert_int_equal(unix_listen(path, 0600, &fd), 0);
    assert_int_equal(unix_listen(path, 0600, &second), -EADDRINUSE);
    assert_int_equal(second, -7);
    client = connect_to(path);
    assert_true(client >= 0);
    close(client);
    close(fd);
}

static void leaves_a_served_datagram_socket_alone(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int datagram = socket(AF_UNIX, SOCK_DGRAM, 0), fd;

    (void)state;
    strcpy(address.sun_path, path);
    assert_int_equal(bind(datagram, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(unix_listen(path, 0600, &fd), -EADDRINUSE);
    close(datagram);
}

static void leaves_a_served_socket_with_a_full_backlog_alone(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int busy = socket(AF_UNIX, SOCK_STREAM, 0), clients[8], fd;
    size_t n = 0;

    (void)state;
    strcpy(address.sun_path, path);
    assert_int_equal(bind(busy, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(busy, 0), 0);
    for (; n < 8; n++) {
        clients[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(clients[n], (struct sockaddr *)&address, sizeof address) < 0)
            break;
    }
    assert_true(n < 8);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(unix_listen(path, 0600, &fd), -EADDRINUSE);
    for (size_t i = 0; i <= n; i++)
        close(clients[i]);
    close(busy);
}

static void replaces_what_is_in_the_way(void **state)
{
    char target[sizeof dir + 8];
    int fd;

    (void)state;
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(unix_listen(path, 0600, &fd), 0);
    close(fd);
    snprintf(target, sizeof target, "%s/target", dir);
    close(open(target, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(unix_listen(path, 0600, &fd), 0);
    close(fd);
    assert_int_equal(unlink(target), 0); /* it was left alone */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(unix_listen(path, 0600, &fd), 0);
    close(fd);
}

static void leaves_what_has_something_in_it_alone(void **state)
{
    char inner[sizeof path + 8], content[8] = "";
    int fd, file = open(path, O_CREAT | O_RDWR, 0600);

    (void)state;
    assert_int_equal(write(file, "kept", 4), 4);
    assert_int_equal(unix_listen(path, 0600, &fd), -EEXIST);
    assert_int_equal(pread(file, content, sizeof content, 0), 4);
    close(file);
    assert_int_equal(unlink(path), 0);
    snprintf(inner, sizeof inner, "%s/inner", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(unix_listen(path, 0600, &fd), -ENOTEMPTY);
    assert_int_equal(rmdir(inner), 0);
    assert_int_equal(rmdir(path), 0);
}

static void the_same_in_an_opened_directory(void **state)
{
    char elsewhere[sizeof dir + 8];
    int fd, at = open(dir, O_PATH | O_DIRECTORY), client;

    (void)state;
    assert_true(at >= 0);
    snprintf(elsewhere, sizeof elsewhere, "%s.moved", dir);
    assert_int_equal(rename(dir, elsewhere), 0);
    assert_int_equal(unix_listen_at(at, "sock", 0600, &fd), 0);
    assert_int_equal(unix_listen_at(at, "sock", 0600, &client), -EADDRINUSE);
    assert_int_equal(unix_listen_at(at, "a/sock", 0600, &client), -EINVAL);
    assert_int_equal(unix_listen_at(at, "", 0600, &client), -EINVAL);
    assert_int_equal(rename(elsewhere, dir), 0);
    client = connect_to(path);
    assert_true(client >= 0);
    close(client);
    close(fd);
    assert_int_equal(unix_listen_at(at, "sock", 0600, &fd), 0); /* it was stale */
    close(fd);
    close(at);
}

static void refuses_paths_that_do_not_fit(void **state)
{
    char name[sizeof((struct sockaddr_un *)NULL)->sun_path + 1];
    size_t len = sizeof name - 1;
    int fd;

    (void)state;
    memset(name, 'a', len);
    memcpy(name, dir, strlen(dir));
    name[strlen(dir)] = '/';
    name[len] = '\0';
    assert_false(unix_path_fits(name));
    assert_int_equal(unix_listen(name, 0600, &fd), -ENAMETOOLONG);
    name[len - 1] = '\0';
    assert_true(unix_path_fits(name));
    assert_int_equal(unix_listen(name, 0600, &fd), 0);
    assert_int_equal(unlink(name), 0);
    close(fd);
    assert_false(unix_path_fits(""));
    assert_int_equal(unix_listen("", 0600, &fd), -EINVAL);
}

static void makes_no_directory(void **state)
{
    char name[sizeof path + 16];
    int fd;

    (void)state;
    snprintf(name, sizeof name, "%s/none/sock", dir);
    assert_int_equal(unix_listen(name, 0600, &fd), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(listens_with_the_mode, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(gives_a_non_blocking_descriptor_closed_on_exec, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(tells_the_peer_on_both_sides, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(replaces_a_stale_socket, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(leaves_a_served_socket_alone, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(leaves_a_served_datagram_socket_alone, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(leaves_a_served_socket_with_a_full_backlog_alone, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(replaces_what_is_in_the_way, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(leaves_what_has_something_in_it_alone, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(the_same_in_an_opened_directory, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(refuses_paths_that_do_not_fit, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(makes_no_directory, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
