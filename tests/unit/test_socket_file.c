/* shim/rpc/socket_file.c: the files of sockets in directories that others may change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/rpc/socket_file.h"
#include "shim/rpc/unix_socket.h"

struct fixture {
    char top[64];
    char dir[96]; /* not there yet */
    char path[192];
    struct socket_file file;
    int fd;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    snprintf(f->top, sizeof f->top, "/tmp/test-socket-file-XXXXXX");
    if (!mkdtemp(f->top))
        return -1;
    snprintf(f->dir, sizeof f->dir, "%s/d", f->top);
    f->fd = -1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[128];
    int r;

    if (f->fd >= 0)
        close(f->fd);
    socket_file_fini(&f->file);
    snprintf(command, sizeof command, "rm -r %s", f->top);
    r = system(command);
    free(f);
    return r;
}

static void init(struct fixture *f, mode_t dir_mode, const char *below)
{
    const struct socket_place place = {
        .dir = f->dir, .dir_mode = dir_mode, .below = below, .name = "sock"};

    assert_int_equal(socket_file_init(&f->file, &place), 0);
    snprintf(f->path, sizeof f->path, "%s%s%s/sock", f->dir, below ? "/" : "", below ? below : "");
    assert_string_equal(socket_file_path(&f->file), f->path);
}

static int make(struct fixture *f)
{
    int fd, err = socket_file_make(&f->file, &fd);

    if (!err) {
        if (f->fd >= 0)
            close(f->fd);
        f->fd = fd;
    }
    return err;
}

/* A connection to the path comes to the socket. */
static bool is_served(const struct fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), served;

    strcpy(address.sun_path, f->path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        return false;
    }
    served = accept(f->fd, NULL, NULL);
    close(fd);
    close(served);
    return served >= 0;
}

static void directory_and_socket_are_made_as_often_as_they_are_removed(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    init(f, 0755, NULL);
    assert_false(socket_file_there(&f->file));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(make(f), 0);
        assert_true(socket_file_there(&f->file));
        assert_true(is_served(f));
        assert_int_equal(lstat(f->path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(unlink(f->path), 0);
        assert_false(socket_file_there(&f->file));
        assert_int_equal(rmdir(f->dir), 0);
    }
}

static void another_s_directory_is_not_made(void **state)
{
    struct fixture *f = *state;

    init(f, 0, "ours");
    assert_int_equal(make(f), -ENOENT);
    assert_int_equal(mkdir(f->dir, 0755), 0);
    assert_int_equal(make(f), 0);
    assert_true(is_served(f));
}

/* Whether another process's socket of that tag is taken for what stands there. */
static bool resumes(struct fixture *f, const char *tag)
{
    const struct socket_place place = {.dir = f->dir, .dir_mode = 0755, .name = "sock"};
    struct socket_file next;
    bool resumed;

    assert_int_equal(socket_file_init(&next, &place), 0);
    resumed = socket_file_resume(&next, tag);
    assert_int_equal(socket_file_there(&next), resumed);
    socket_file_fini(&next);
    return resumed;
}

static void who_is_handed_the_socket_knows_its_file_by_the_tag(void **state)
{
    struct fixture *f = *state;
    char tag[SOCKET_FILE_TAG_BYTES_MAX], moved[256];

    init(f, 0755, NULL);
    assert_int_equal(make(f), 0);
    socket_file_tag(&f->file, tag);
    assert_int_equal(strcspn(tag, ":/"), strlen(tag));
    assert_true(resumes(f, tag));
    assert_false(resumes(f, ""));
    tag[0] ^= 1;
    assert_false(resumes(f, tag));
    tag[0] ^= 1;
    snprintf(moved, sizeof moved, "%s/moved", f->dir);
    assert_int_equal(rename(f->path, moved), 0);
    assert_false(resumes(f, tag));
    assert_int_equal(symlink(moved, f->path), 0);
    assert_false(resumes(f, tag));
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(make(f), 0); /* another one */
    assert_false(resumes(f, tag));
    assert_int_equal(rename(moved, f->path), 0);
    assert_true(resumes(f, tag));
}

static void who_resumes_it_removes_it(void **state)
{
    struct fixture *f = *state;
    const struct socket_place place = {.dir = f->dir, .dir_mode = 0755, .name = "sock"};
    char tag[SOCKET_FILE_TAG_BYTES_MAX];
    struct socket_file next;

    init(f, 0755, NULL);
    assert_int_equal(make(f), 0);
    socket_file_tag(&f->file, tag);
    assert_int_equal(socket_file_init(&next, &place), 0);
    assert_true(socket_file_resume(&next, tag));
    socket_file_remove(&next);
    assert_int_equal(access(f->path, F_OK), -1);
    socket_file_fini(&next);
}

static void another_s_socket_is_not_ours(void **state)
{
    struct fixture *f = *state;
    int other;

    init(f, 0755, NULL);
    assert_int_equal(make(f), 0);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(unix_listen(f->path, 0600, &other), 0);
    assert_false(socket_file_there(&f->file));
    assert_int_equal(make(f), -EADDRINUSE);
    socket_file_remove(&f->file);
    assert_int_equal(access(f->path, F_OK), 0);
    close(other); /* now nobody serves it */
    assert_int_equal(make(f), 0);
    socket_file_remove(&f->file);
    assert_int_equal(access(f->path, F_OK), -1);
}

/* What a plugin's container can do to the kubelet's directory, which it mounts. */
static void a_symlink_in_place_of_the_directory_is_not_followed(void **state)
{
    char elsewhere[96], below[128], victim[128];
    struct fixture *f = *state;
    struct stat st;

    init(f, 0, "ours");
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", f->top);
    snprintf(below, sizeof below, "%s/ours", f->dir);
    snprintf(victim, sizeof victim, "%s/sock", elsewhere);
    assert_int_equal(mkdir(f->dir, 0755), 0);
    assert_int_equal(mkdir(elsewhere, 0755), 0);
    close(open(victim, O_CREAT | O_WRONLY, 0644));
    assert_int_equal(symlink(elsewhere, below), 0);
    assert_int_equal(make(f), -ENOTDIR);

    /* And while it is served. */
    assert_int_equal(unlink(below), 0);
    assert_int_equal(make(f), 0);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(rmdir(below), 0);
    assert_int_equal(symlink(elsewhere, below), 0);
    assert_false(socket_file_there(&f->file));
    assert_int_equal(make(f), -ENOTDIR);
    socket_file_remove(&f->file);
    assert_int_equal(lstat(victim, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0644);
}

static void a_symlink_in_place_of_the_socket_is_replaced(void **state)
{
    char victim[96], content[8] = "";
    struct fixture *f = *state;
    struct stat st;
    int fd;

    init(f, 0755, NULL);
    snprintf(victim, sizeof victim, "%s/victim", f->top);
    fd = open(victim, O_CREAT | O_RDWR, 0644);
    assert_int_equal(write(fd, "kept", 4), 4);
    assert_int_equal(mkdir(f->dir, 0755), 0);
    assert_int_equal(symlink(victim, f->path), 0);
    assert_int_equal(make(f), 0);
    assert_true(is_served(f));
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_nlink, 1);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(pread(fd, content, sizeof content, 0), 4);
    close(fd);
}

static void a_passed_socket_s_file_is_looked_after_but_not_removed(void **state)
{
    struct fixture *f = *state;

    init(f, 0755, NULL);
    assert_int_equal(mkdir(f->dir, 0755), 0);
    assert_int_equal(unix_listen(f->path, 0600, &f->fd), 0);
    socket_file_adopt(&f->file, f->fd);
    assert_true(socket_file_there(&f->file));
    socket_file_remove(&f->file);
    assert_int_equal(access(f->path, F_OK), 0);
    assert_int_equal(unlink(f->path), 0);
    assert_false(socket_file_there(&f->file));
    assert_int_equal(make(f), 0);
    assert_true(socket_file_there(&f->file) && is_served(f));
}

/* The name was lost, made anew by a daemon that is gone, and leads nowhere now. */
static void a_passed_socket_without_its_file(void **state)
{
    struct fixture *f = *state;
    int passed, stale;

    init(f, 0755, NULL);
    assert_int_equal(mkdir(f->dir, 0755), 0);
    assert_int_equal(unix_listen(f->path, 0600, &passed), 0);
    assert_int_equal(unlink(f->path), 0);
    socket_file_adopt(&f->file, passed);
    assert_false(socket_file_there(&f->file));
    assert_int_equal(unix_listen(f->path, 0600, &stale), 0);
    close(stale);
    socket_file_adopt(&f->file, passed);
    assert_false(socket_file_there(&f->file));
    assert_int_equal(make(f), 0);
    assert_true(is_served(f));
    close(passed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(directory_and_socket_are_made_as_often_as_they_are_removed),
        TEST(another_s_directory_is_not_made),
        TEST(who_is_handed_the_socket_knows_its_file_by_the_tag),
        TEST(who_resumes_it_removes_it),
        TEST(another_s_socket_is_not_ours),
        TEST(a_symlink_in_place_of_the_directory_is_not_followed),
        TEST(a_symlink_in_place_of_the_socket_is_replaced),
        TEST(a_passed_socket_s_file_is_looked_after_but_not_removed),
        TEST(a_passed_socket_without_its_file),
    };

    umask(022);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
