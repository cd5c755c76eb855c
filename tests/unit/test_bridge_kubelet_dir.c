/* shim/bridge/kubelet_dir.c: a directory that comes, goes and changes. */
#include "tests/unit/waiting.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/bridge/kubelet_dir.h"

struct fixture {
    struct world *world;
    struct kubelet_dir *dir;
    char path[64];
    unsigned endpoints;
    unsigned came, went, back;
    bool endpoints_first; /* told since the last socket that came */
    size_t stored;        /* times, in all */
};

static void on_endpoints(void *user)
{
    struct fixture *f = user;

    f->endpoints++;
    f->endpoints_first = true;
}

static void on_socket(void *user, enum kubelet_socket now)
{
    struct fixture *f = user;

    if (now == KUBELET_SOCKET_GONE) {
        f->went++;
        return;
    }
    assert_true(f->endpoints_first);
    f->endpoints_first = false;
    if (now == KUBELET_SOCKET_NEW)
        f->came++;
    else
        f->back++;
}

static void on_stored(void *user, size_t times)
{
    struct fixture *f = user;

    assert_true(times > 0);
    f->stored = times == SIZE_MAX ? times : f->stored + times;
}

static const struct kubelet_dir_ops OPS = {on_endpoints, on_socket, on_stored};

static void start(struct fixture *f, struct world *world, const char *name)
{
    memset(f, 0, sizeof *f);
    f->world = world;
    snprintf(f->path, sizeof f->path, "%s/%s", world->dir, name);
    f->dir = kubelet_dir_start(&world->loop, f->path, &OPS, f);
    assert_int_equal(f->endpoints, 0);
    WAIT(world, f->endpoints == 1); /* the first look */
}

static char *in(const struct fixture *f, char out[128], const char *name)
{
    snprintf(out, 128, "%s/%s", f->path, name);
    return out;
}

static void make_dir(const char *path)
{
    assert_int_equal(mkdir(path, 0755), 0);
}

static void make_socket(const struct fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char path[128];

    strcpy(address.sun_path, in(f, path, KUBELET_SOCKET_NAME));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static void drop(const struct fixture *f, const char *name)
{
    char path[128];

    assert_int_equal(remove(in(f, path, name)), 0);
}

static void write_file(const struct fixture *f, const char *name)
{
    char path[128];
    int fd = open(in(f, path, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, "{}", 2), 2);
    close(fd);
}

static void store(const struct fixture *f)
{
    char from[128], to[128];

    write_file(f, ".new");
    assert_int_equal(rename(in(f, from, ".new"), in(f, to, KUBELET_CHECKPOINT_NAME)), 0);
}

static void end(struct fixture *f)
{
    kubelet_dir_stop(f->dir);
    kubelet_dir_stop(NULL);
    remove(f->path);
}

static void a_socket_that_is_there_is_told_at_the_start(void **state)
{
    struct world *world = *state;
    struct fixture f = {0};

    snprintf(f.path, sizeof f.path, "%s/d", world->dir);
    make_dir(f.path);
    make_socket(&f);
    start(&f, world, "d");
    WAIT(world, f.came == 1);
    drop(&f, KUBELET_SOCKET_NAME);
    WAIT(world, f.went == 1);
    end(&f);
}

static void a_directory_may_come_late_and_go(void **state)
{
    struct world *world = *state;
    char above[64];
    struct fixture f;

    snprintf(above, sizeof above, "%s/a", world->dir);
    start(&f, world, "a/d");
    for (unsigned round = 1; round <= 3; round++) {
        make_dir(above);
        make_dir(f.path);
        make_socket(&f);
        WAIT(world, f.came == round);
        drop(&f, KUBELET_SOCKET_NAME);
        assert_int_equal(rmdir(f.path), 0);
        assert_int_equal(rmdir(above), 0);
        WAIT(world, f.went == round);
    }
    end(&f);
}

static void another_socket_is_another_even_if_nobody_saw_the_change(void **state)
{
    struct world *world = *state;
    char from[128], to[128];
    struct fixture f;

    start(&f, world, "d");
    make_dir(f.path);
    make_socket(&f);
    WAIT(world, f.came == 1);
    assert_int_equal(rename(in(&f, from, KUBELET_SOCKET_NAME), in(&f, to, "old")), 0);
    make_socket(&f); /* both are there: another inode */
    WAIT(world, f.came == 2);
    assert_int_equal(f.went, 0);
    /* Moved in. */
    assert_int_equal(rename(to, from), 0);
    WAIT(world, f.came == 3);
    drop(&f, KUBELET_SOCKET_NAME);
    end(&f);
}

/* As a mount does that hides it. */
static void one_that_was_hidden_is_the_same(void **state)
{
    struct world *world = *state;
    char hidden[64], path[128];
    struct fixture f;

    snprintf(hidden, sizeof hidden, "%s/hidden", world->dir);
    start(&f, world, "d");
    make_dir(f.path);
    make_socket(&f);
    WAIT(world, f.came == 1);
    for (unsigned round = 1; round <= 3; round++) {
        assert_int_equal(rename(f.path, hidden), 0);
        WAIT(world, f.went == round);
        if (round == 2) {
            make_dir(f.path); /* an empty one in its place */
            world_settle(world);
            assert_int_equal(rmdir(f.path), 0);
        }
        assert_int_equal(rename(hidden, f.path), 0);
        WAIT(world, f.back == round);
    }
    assert_int_equal(f.came, 1);
    /* Another one in between makes it another one again. */
    assert_int_equal(rename(f.path, hidden), 0);
    WAIT(world, f.went == 4);
    make_dir(f.path);
    make_socket(&f);
    WAIT(world, f.came == 2);
    drop(&f, KUBELET_SOCKET_NAME);
    assert_int_equal(rmdir(f.path), 0);
    WAIT(world, f.went == 5);
    assert_int_equal(rename(hidden, f.path), 0);
    WAIT(world, f.came == 3);
    assert_int_equal(f.back, 3);
    assert_int_equal(remove(in(&f, path, KUBELET_SOCKET_NAME)), 0);
    end(&f);
}

static void the_owner_may_change_mode_and_owner(void **state)
{
    struct world *world = *state;
    char path[128];
    struct fixture f;

    start(&f, world, "d");
    make_dir(f.path);
    make_socket(&f);
    WAIT(world, f.came == 1);
    assert_int_equal(chmod(in(&f, path, KUBELET_SOCKET_NAME), 0600), 0);
    write_file(&f, "x"); /* makes it look */
    store(&f);
    WAIT(world, f.stored == 1);
    assert_int_equal(f.came, 1);
    drop(&f, KUBELET_SOCKET_NAME);
    drop(&f, KUBELET_CHECKPOINT_NAME);
    drop(&f, "x");
    end(&f);
}

static void only_a_socket_counts(void **state)
{
    struct world *world = *state;
    struct fixture f;

    start(&f, world, "d");
    make_dir(f.path);
    write_file(&f, KUBELET_SOCKET_NAME);
    store(&f);
    WAIT(world, f.stored > 0); /* perhaps before it was watched: nobody knows how often */
    assert_int_equal(f.came, 0);
    drop(&f, KUBELET_SOCKET_NAME);
    drop(&f, KUBELET_CHECKPOINT_NAME);
    end(&f);
}

static void each_checkpoint_is_counted(void **state)
{
    struct world *world = *state;
    struct fixture f;

    start(&f, world, "d");
    make_dir(f.path);
    make_socket(&f);
    WAIT(world, f.came == 1);
    write_file(&f, KUBELET_CHECKPOINT_NAME); /* not how the kubelet does it */
    for (int i = 0; i < 5; i++)
        store(&f);
    WAIT(world, f.stored >= 5);
    assert_int_equal(f.stored, 5);
    drop(&f, KUBELET_SOCKET_NAME);
    WAIT(world, f.went == 1);
    assert_int_equal(f.stored, 5);
    drop(&f, KUBELET_CHECKPOINT_NAME);
    end(&f);
}

/* A change that the timer finds before its event is read is one change. */
static void a_look_between_change_and_event_does_not_count_it(void **state)
{
    struct world *world = *state;
    unsigned looks;
    struct fixture f;

    start(&f, world, "d");
    make_dir(f.path);
    make_socket(&f);
    WAIT(world, f.came == 1);
    looks = f.endpoints;
    while (f.endpoints == looks) {
        /* Timers come first in a turn of the loop, events after them. */
        store(&f);
        poll(NULL, 0, uv_backend_timeout(&world->loop)); /* the timer is due */
        uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    WAIT(world, f.stored > 0);
    assert_true(f.stored < 10);
    drop(&f, KUBELET_SOCKET_NAME);
    drop(&f, KUBELET_CHECKPOINT_NAME);
    end(&f);
}

/* Whether a descriptor is to be had. */
static void allow_descriptors(bool allowed)
{
    static struct rlimit old;
    struct rlimit none;

    if (!allowed)
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = allowed ? old.rlim_cur : 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

#define WAIT_WITHOUT_DESCRIPTORS(world, condition)                                                 \
    do {                                                                                           \
        allow_descriptors(false);                                                                  \
        WAIT(world, condition);                                                                    \
        allow_descriptors(true);                                                                   \
    } while (0)

static void does_without_inotify(void **state)
{
    struct world *world = *state;
    struct fixture f = {.world = world};
    unsigned looks;

    snprintf(f.path, sizeof f.path, "%s/d", world->dir);
    make_dir(f.path);
    allow_descriptors(false);
    f.dir = kubelet_dir_start(&world->loop, f.path, &OPS, &f);
    WAIT(world, f.endpoints == 1);
    allow_descriptors(true);
    make_socket(&f);
    WAIT_WITHOUT_DESCRIPTORS(world, f.came == 1);
    store(&f);
    store(&f);
    WAIT_WITHOUT_DESCRIPTORS(world, f.stored == SIZE_MAX); /* nobody knows how often */
    drop(&f, KUBELET_SOCKET_NAME);
    WAIT_WITHOUT_DESCRIPTORS(world, f.went == 1);
    /* As soon as there is an instance each one counts. */
    looks = f.endpoints;
    WAIT(world, f.endpoints > looks);
    f.stored = 0;
    store(&f);
    store(&f);
    WAIT(world, f.stored == 2);
    drop(&f, KUBELET_CHECKPOINT_NAME);
    end(&f);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_socket_that_is_there_is_told_at_the_start),
        WORLD_TEST(a_directory_may_come_late_and_go),
        WORLD_TEST(another_socket_is_another_even_if_nobody_saw_the_change),
        WORLD_TEST(one_that_was_hidden_is_the_same),
        WORLD_TEST(the_owner_may_change_mode_and_owner),
        WORLD_TEST(only_a_socket_counts),
        WORLD_TEST(each_checkpoint_is_counted),
        WORLD_TEST(a_look_between_change_and_event_does_not_count_it),
        WORLD_TEST(does_without_inotify),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
