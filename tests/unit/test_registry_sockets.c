/* shim/registry/sockets.c on a real file system. */
#include "tests/unit/waiting.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/boot_clock.h"
#include "shim/registry/limits.h"
#include "shim/registry/sockets.h"

/* More than /proc/sys/fs/inotify/max_queued_events, which is 16384 unless somebody raised it. */
#define EVENTS_AT_ONCE 20000

struct fixture {
    struct world *world;
    char directory[64];
    struct sockets *sockets;
    char events[1024]; /* "+name" came, "-name" went */
    unsigned there, came, went;
    bool stopped;
};

/* What went() is told: the name, as it was when it came. */
struct seen {
    char name[256];
    ino_t inode;
};

static void note(struct fixture *f, const char *what, const char *name)
{
    strncat(f->events, what, sizeof f->events - strlen(f->events) - 1);
    strncat(f->events, name, sizeof f->events - strlen(f->events) - 1);
}

static void *on_came(void *user, const char *path, int file)
{
    struct fixture *f = user;
    struct seen *seen = calloc(1, sizeof *seen);
    struct stat st;

    assert_non_null(seen);
    assert_int_equal(strncmp(path, f->directory, strlen(f->directory)), 0);
    snprintf(seen->name, sizeof seen->name, "%s", path + strlen(f->directory) + 1);
    assert_int_equal(fstat(file, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    seen->inode = st.st_ino;
    note(f, "+", seen->name);
    f->there++;
    f->came++;
    return seen;
}

static void on_went(void *user, void *socket)
{
    struct fixture *f = user;
    struct seen *seen = socket;

    note(f, "-", seen->name);
    f->there--;
    f->went++;
    free(seen);
}

static const struct sockets_ops OPS = {.came = on_came, .went = on_went};

static void on_stopped(void *user)
{
    *(bool *)user = true;
}

static char *at(const struct fixture *f, char out[256], const char *name)
{
    snprintf(out, 256, "%s/%s", f->directory, name);
    return out;
}

static void make_directory(const struct fixture *f, const char *name)
{
    char path[256];

    assert_int_equal(mkdir(at(f, path, name), 0755), 0);
}

/* Bound and at once let go of: what counts is its file. */
static void make_socket(const struct fixture *f, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[256];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(strlen(at(f, path, name)) < sizeof address.sun_path);
    strcpy(address.sun_path, path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static void drop(const struct fixture *f, const char *name)
{
    char path[256];

    assert_int_equal(unlink(at(f, path, name)), 0);
}

static void move(const struct fixture *f, const char *from, const char *to)
{
    char a[256], b[256];

    assert_int_equal(rename(at(f, a, from), at(f, b, to)), 0);
}

static void remove_all(const struct fixture *f)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", f->directory);
    assert_int_equal(system(command), 0);
}

/* The directory is there, and nobody looks at it yet. */
static void prepare(struct fixture *f, void **state)
{
    memset(f, 0, sizeof *f);
    f->world = *state;
    snprintf(f->directory, sizeof f->directory, "%s/registry", f->world->dir);
    assert_int_equal(mkdir(f->directory, 0755), 0);
}

static void begin(struct fixture *f)
{
    f->sockets = sockets_start(
        &f->world->loop, &(struct sockets_place){f->directory, "registry_dir", true}, &OPS, f);
    assert_string_equal(f->events, "");
}

static void stop(struct fixture *f)
{
    sockets_stop(f->sockets, on_stopped, &f->stopped);
    assert_int_equal(f->there, 0);
    WAIT(f->world, f->stopped);
    remove_all(f);
}

/* Everything that was done before has been looked at, when a socket of this name has come. */
static void settle(struct fixture *f, const char *name)
{
    char expected[64];

    make_socket(f, name);
    snprintf(expected, sizeof expected, "+%s", name);
    WAIT(f->world, strstr(f->events, expected));
}

static void makes_the_directory(void **state)
{
    struct fixture f;
    struct stat st;
    uint64_t since_ms;

    prepare(&f, state);
    assert_int_equal(rmdir(f.directory), 0);
    begin(&f);
    WAIT(f.world, stat(f.directory, &st) == 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_null(sockets_trouble(f.sockets, &since_ms));
    settle(&f, "a.sock");
    stop(&f);
}

static void finds_what_is_there_and_what_comes_and_goes(void **state)
{
    struct fixture f;

    prepare(&f, state);
    make_socket(&f, "a.sock");
    begin(&f);
    WAIT(f.world, f.there == 1);
    settle(&f, "b.sock");
    drop(&f, "a.sock");
    WAIT(f.world, f.there == 1);
    assert_string_equal(f.events, "+a.sock+b.sock-a.sock");
    stop(&f);
}

/* The kubelet sees no rename away (inotify's IN_MOVED_FROM); nobody is served under that name. */
static void one_that_is_renamed_has_gone_before_it_comes(void **state)
{
    struct fixture f;

    prepare(&f, state);
    make_socket(&f, "a.sock");
    begin(&f);
    WAIT(f.world, f.there == 1);
    move(&f, "a.sock", "b.sock");
    WAIT(f.world, f.came == 2);
    assert_string_equal(f.events, "+a.sock-a.sock+b.sock");
    stop(&f);
}

/* Also where the file system gives the inode's number away again at once. */
static void one_that_is_replaced_is_another(void **state)
{
    struct fixture f;

    prepare(&f, state);
    make_socket(&f, "a.sock");
    begin(&f);
    WAIT(f.world, f.there == 1);
    for (unsigned i = 1; i <= 5; i++) {
        drop(&f, "a.sock");
        make_socket(&f, "a.sock");
        WAIT(f.world, f.came == i + 1);
        assert_int_equal(f.went, i);
    }
    assert_non_null(strstr(f.events, "+a.sock-a.sock+a.sock"));
    stop(&f);
}

static void names_with_a_dot_and_other_files_do_not_count(void **state)
{
    struct fixture f;
    char path[256];

    prepare(&f, state);
    make_socket(&f, ".hidden.sock");
    assert_int_equal(close(open(at(&f, path, "file.sock"), O_CREAT | O_WRONLY, 0644)), 0);
    assert_int_equal(mkfifo(at(&f, path, "fifo.sock"), 0644), 0);
    begin(&f);
    settle(&f, "a.sock");
    make_socket(&f, ".later.sock");
    settle(&f, "b.sock");
    assert_string_equal(f.events, "+a.sock+b.sock");
    /* What gets a name that counts has come. */
    move(&f, ".later.sock", "c.sock");
    WAIT(f.world, f.there == 3);
    stop(&f);
}

static void looks_into_directories_as_they_come_and_go(void **state)
{
    struct fixture f;
    char path[256];

    prepare(&f, state);
    make_directory(&f, "one");
    make_socket(&f, "one/a.sock");
    begin(&f);
    WAIT(f.world, f.there == 1);
    make_directory(&f, "two");
    make_directory(&f, "two/three");
    make_socket(&f, "two/three/b.sock");
    WAIT(f.world, f.there == 2);
    settle(&f, "one/c.sock");
    drop(&f, "one/a.sock");
    drop(&f, "one/c.sock");
    assert_int_equal(rmdir(at(&f, path, "one")), 0);
    WAIT(f.world, f.there == 1);
    move(&f, "two", "four");
    WAIT(f.world, strstr(f.events, "-two/three/b.sock+four/three/b.sock"));
    stop(&f);
}

/* As the kubelet's first walk does, which its watcher does not do later. */
static void a_dotted_directory_counts_if_it_was_there_first(void **state)
{
    struct fixture f;

    prepare(&f, state);
    make_directory(&f, ".first");
    begin(&f);
    settle(&f, "a.sock");
    settle(&f, ".first/b.sock");
    make_directory(&f, ".later");
    make_socket(&f, ".later/c.sock");
    settle(&f, "d.sock");
    assert_string_equal(f.events, "+a.sock+.first/b.sock+d.sock");
    stop(&f);
}

static void follows_symlinks_to_sockets_only(void **state)
{
    struct fixture f;
    char path[256];

    prepare(&f, state);
    make_directory(&f, ".elsewhere");
    begin(&f);
    settle(&f, "a.sock");
    assert_int_equal(symlink("a.sock", at(&f, path, "b.sock")), 0);
    assert_int_equal(symlink("nowhere", at(&f, path, "c.sock")), 0);
    assert_int_equal(symlink(".", at(&f, path, "loop")), 0);
    settle(&f, "d.sock");
    WAIT(f.world, f.there == 3);
    assert_null(strstr(f.events, "c.sock"));
    assert_null(strstr(f.events, "loop"));
    stop(&f);
}

static void the_directory_may_be_removed(void **state)
{
    struct fixture f;

    prepare(&f, state);
    make_socket(&f, "a.sock");
    begin(&f);
    WAIT(f.world, f.there == 1);
    remove_all(&f);
    WAIT(f.world, f.there == 0);
    WAIT(f.world, access(f.directory, F_OK) == 0);
    settle(&f, "b.sock");
    stop(&f);
}

static void what_is_in_its_way_is_told_and_may_go(void **state)
{
    uint64_t before_ms = boot_now_ms(), since_ms = 0;
    struct fixture f;

    prepare(&f, state);
    assert_int_equal(rmdir(f.directory), 0);
    assert_int_equal(close(open(f.directory, O_CREAT | O_WRONLY, 0644)), 0);
    begin(&f); /* logs an error */
    WAIT(f.world, sockets_trouble(f.sockets, &since_ms));
    assert_string_equal(sockets_trouble(f.sockets, &since_ms), "Not a directory");
    assert_in_range(since_ms, before_ms, boot_now_ms());
    assert_int_equal(unlink(f.directory), 0);
    WAIT(f.world, !sockets_trouble(f.sockets, &since_ms));
    stop(&f);
}

/* From now on so many more files may be open; returns what holds without that. */
static struct rlimit leave_descriptors(int more)
{
    struct rlimit before, limit;
    int next = dup(STDIN_FILENO);

    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = (struct rlimit){(rlim_t)(next + more), before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

/* One is seen, and another that comes is not, for this reason. */
static void wait_trouble(struct fixture *f, const char *why)
{
    uint64_t since_ms;

    WAIT(f->world, sockets_trouble(f->sockets, &since_ms));
    assert_string_equal(sockets_trouble(f->sockets, &since_ms), why);
    assert_string_equal(f->events, "+a.sock");
}

/* Both are, and nothing is in the way. */
static void wait_both(struct fixture *f)
{
    uint64_t since_ms;

    WAIT(f->world, f->there == 2);
    assert_null(sockets_trouble(f->sockets, &since_ms));
    assert_string_equal(f->events, "+a.sock+b.sock");
}

/* For the directory, or for what is in it; it is looked at again, though nothing tells of it. */
static void without_descriptors_nothing_has_gone(void **state)
{
    for (int more = 0; more < 2; more++) {
        struct fixture f;
        struct rlimit before;

        prepare(&f, state);
        make_socket(&f, "a.sock");
        begin(&f);
        WAIT(f.world, f.there == 1);
        make_socket(&f, "b.sock");
        before = leave_descriptors(more); /* logs an error */
        wait_trouble(&f, "Too many open files");
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        wait_both(&f);
        stop(&f);
    }
}

static bool disk_fails;

/* In the place of the C library's. */
struct dirent *readdir(DIR *directory)
{
    struct dirent *(*next)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");

    if (!disk_fails)
        return next(directory);
    errno = EIO;
    return NULL;
}

/* Of a directory that cannot be read to its end nobody knows what is in the rest. */
static void a_disk_that_fails_takes_nothing_away(void **state)
{
    struct fixture f;

    prepare(&f, state);
    make_socket(&f, "a.sock");
    begin(&f);
    WAIT(f.world, f.there == 1);
    disk_fails = true;
    make_socket(&f, "b.sock"); /* so it is looked at, which logs an error */
    wait_trouble(&f, "Input/output error");
    disk_fails = false;
    wait_both(&f);
    stop(&f);
}

static void an_overflow_of_events_loses_nothing(void **state)
{
    struct fixture f;
    char path[256];

    prepare(&f, state);
    begin(&f);
    settle(&f, "a.sock");
    for (int i = 0; i < EVENTS_AT_ONCE / 2; i++) {
        at(&f, path, i % 2 ? "x" : "y");
        assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0644)), 0);
        assert_int_equal(unlink(path), 0);
    }
    drop(&f, "a.sock");
    make_socket(&f, "b.sock");
    WAIT(f.world, strstr(f.events, "-a.sock+b.sock"));
    stop(&f);
}

static void thousands_of_files_cost_no_socket(void **state)
{
    struct fixture f;
    char name[32], path[256];

    prepare(&f, state);
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "file%d", i);
        assert_int_equal(close(open(at(&f, path, name), O_CREAT | O_WRONLY, 0644)), 0);
    }
    begin(&f);
    settle(&f, "a.sock");
    assert_int_equal(f.there, 1);
    /* Each look reads as many names as the one before, and by none are there too many. */
    for (int i = 0; i <= REGISTRY_NAMES_MAX / 5000; i++) {
        snprintf(name, sizeof name, "%d.sock", i);
        settle(&f, name);
        assert_int_equal(f.there, i + 2);
    }
    stop(&f);
}

static void there_are_bounds(void **state)
{
    struct fixture f;
    char name[64] = "";

    prepare(&f, state);
    for (int i = 0; i < REGISTRY_SOCKETS_MAX + 10; i++) {
        snprintf(name, sizeof name, "%d.sock", i);
        make_socket(&f, name);
    }
    begin(&f); /* logs a warning */
    WAIT(f.world, f.there == REGISTRY_SOCKETS_MAX);
    /* What was left out comes when others have gone. */
    for (int i = 0; i < REGISTRY_SOCKETS_MAX + 7; i++) {
        snprintf(name, sizeof name, "%d.sock", i);
        drop(&f, name);
    }
    WAIT(f.world, f.there == 3);
    stop(&f);

    prepare(&f, state);
    name[0] = '\0';
    for (int i = 0; i < REGISTRY_DEPTH_MAX + 1; i++) {
        strcat(name, i ? "/d" : "d");
        make_directory(&f, name);
    }
    make_socket(&f, "d/d/d/d/d/d/d/d/a.sock");
    make_socket(&f, "d/d/d/d/d/d/d/d/d/b.sock");
    begin(&f); /* logs a warning */
    settle(&f, "c.sock");
    assert_non_null(strstr(f.events, "a.sock"));
    assert_null(strstr(f.events, "b.sock"));
    stop(&f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(makes_the_directory),
        TEST(finds_what_is_there_and_what_comes_and_goes),
        TEST(one_that_is_renamed_has_gone_before_it_comes),
        TEST(one_that_is_replaced_is_another),
        TEST(names_with_a_dot_and_other_files_do_not_count),
        TEST(looks_into_directories_as_they_come_and_go),
        TEST(a_dotted_directory_counts_if_it_was_there_first),
        TEST(follows_symlinks_to_sockets_only),
        TEST(the_directory_may_be_removed),
        TEST(what_is_in_its_way_is_told_and_may_go),
        TEST(without_descriptors_nothing_has_gone),
        TEST(a_disk_that_fails_takes_nothing_away),
        TEST(an_overflow_of_events_loses_nothing),
        TEST(thousands_of_files_cost_no_socket),
        TEST(there_are_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
