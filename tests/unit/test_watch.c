/* shim/watch.c on a real file system. */
#include "tests/unit/waiting.h"

#include <errno.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/watch.h"

/* More than /proc/sys/fs/inotify/max_queued_events, which is 16384 unless somebody raised it. */
#define EVENTS_AT_ONCE 20000

struct fixture {
    struct world *world;
    struct watch watch;
    char events[256]; /* "+name" came, "-name" went, "." a directory itself; up to its end */
    size_t len;
    unsigned changes;
    bool overflow;
    bool closed;
};

static void on_event(void *user, const char *name, uint32_t mask)
{
    struct fixture *f = user;
    const char *kind = ".";

    if (mask & (IN_CREATE | IN_MOVED_TO))
        kind = "+";
    else if (mask & (IN_DELETE | IN_MOVED_FROM))
        kind = "-";
    if (f->len < sizeof f->events)
        f->len +=
            (size_t)snprintf(f->events + f->len, sizeof f->events - f->len, "%s%s", kind, name);
}

static void on_changed(void *user, bool overflow)
{
    struct fixture *f = user;

    f->changes++;
    f->overflow |= overflow;
}

static void on_closed(void *user)
{
    struct fixture *f = user;

    f->closed = true;
}

static const struct watch_ops OPS = {on_event, on_changed};

static void start(struct fixture *f, struct world *world)
{
    memset(f, 0, sizeof *f);
    f->world = world;
    assert_int_equal(watch_init(&f->watch, &world->loop, &OPS, f), 0);
    assert_true(watch_runs(&f->watch));
}

static void stop(struct fixture *f)
{
    unsigned changes = f->changes;

    watch_close(&f->watch, on_closed, f);
    assert_false(f->closed);
    WAIT(f->world, f->closed);
    assert_false(watch_runs(&f->watch));
    assert_int_equal(f->changes, changes);
}

static char *in_world(struct world *world, char out[256], const char *name)
{
    snprintf(out, 256, "%s/%s", world->dir, name);
    return out;
}

static void make(struct world *world, const char *name)
{
    char path[256];

    assert_int_equal(mkdir(in_world(world, path, name), 0755), 0);
}

static void drop(struct world *world, const char *name)
{
    char path[256];

    assert_int_equal(rmdir(in_world(world, path, name)), 0);
}

static void tells_what_came_and_went(void **state)
{
    struct world *world = *state;
    struct fixture f;
    char from[256], to[256];

    start(&f, world);
    assert_int_equal(watch_directory(&f.watch, world->dir), 0);
    make(world, "a");
    assert_int_equal(rename(in_world(world, from, "a"), in_world(world, to, "b")), 0);
    drop(world, "b");
    WAIT(world, f.changes > 0);
    assert_string_equal(f.events, "+a-a+b-b");
    assert_false(f.overflow);
    stop(&f);
}

static void a_directory_may_be_added_again(void **state)
{
    struct world *world = *state;
    struct fixture f;
    char path[256];

    start(&f, world);
    make(world, "d");
    for (int i = 0; i < 3; i++)
        assert_int_equal(watch_directory(&f.watch, in_world(world, path, "d")), 0);
    make(world, "d/x");
    WAIT(world, f.changes > 0);
    assert_string_equal(f.events, "+x");
    drop(world, "d/x");
    drop(world, "d");
    WAIT(world, strcmp(f.events, "+x-x.") == 0);
    /* Another one of the same name. */
    make(world, "d");
    assert_int_equal(watch_directory(&f.watch, path), 0);
    make(world, "d/y");
    WAIT(world, strcmp(f.events, "+x-x.+y") == 0);
    stop(&f);
    drop(world, "d/y");
    drop(world, "d");
}

static void what_is_not_there_gets_none(void **state)
{
    struct world *world = *state;
    struct fixture f;
    char path[256];
    FILE *file;

    start(&f, world);
    assert_int_equal(watch_directory(&f.watch, in_world(world, path, "missing")), 0);
    assert_int_equal(watch_directory(&f.watch, in_world(world, path, "missing/too")), 0);
    file = fopen(in_world(world, path, "file"), "w");
    assert_int_equal(watch_directory(&f.watch, path), 0);
    fputs("text", file);
    fclose(file);
    unlink(path);
    world_settle(world);
    assert_int_equal(f.changes, 0);
    stop(&f);
}

static void watches_each_level_above(void **state)
{
    struct world *world = *state;
    struct fixture f;
    char path[256];

    start(&f, world);
    make(world, "a");
    assert_int_equal(watch_above(&f.watch, in_world(world, path, "a/b/c")), 0);
    make(world, "a/b"); /* seen in a; what is in it not yet */
    make(world, "a/b/c");
    WAIT(world, strstr(f.events, "+b"));
    assert_null(strstr(f.events, "+c"));
    assert_int_equal(watch_above(&f.watch, path), 0);
    drop(world, "a/b/c");
    WAIT(world, strstr(f.events, "-c"));
    drop(world, "a/b");
    drop(world, "a");
    WAIT(world, strstr(f.events, "-a"));
    stop(&f);
}

static void an_overflow_is_told(void **state)
{
    struct world *world = *state;
    struct fixture f;

    start(&f, world);
    assert_int_equal(watch_directory(&f.watch, world->dir), 0);
    for (int i = 0; i < EVENTS_AT_ONCE / 2; i++) {
        make(world, "a");
        drop(world, "a");
    }
    WAIT(world, f.overflow);
    stop(&f);
}

static void without_inotify_nothing_runs(void **state)
{
    struct world *world = *state;
    struct rlimit old, none;
    struct fixture f = {0};

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(watch_init(&f.watch, &world->loop, &OPS, &f), -EMFILE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_false(watch_runs(&f.watch));
    assert_int_equal(watch_directory(&f.watch, world->dir), 0);
    assert_int_equal(watch_above(&f.watch, world->dir), 0);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(tells_what_came_and_went),    WORLD_TEST(a_directory_may_be_added_again),
        WORLD_TEST(what_is_not_there_gets_none), WORLD_TEST(watches_each_level_above),
        WORLD_TEST(an_overflow_is_told),         WORLD_TEST(without_inotify_nothing_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
