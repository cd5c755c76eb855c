/* shim/plugins/builtins.c: host nodes found and watched. Symlinks to /dev/null stand for them. */
#include "tests/unit/waiting.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/plugins/builtins.h"

struct fixture {
    struct world *world;
    struct builtins *builtins;
    bool stopped;
    unsigned changes;
    char resource[32];
    char history[64]; /* of each change the first device: '+' healthy, '-' not, '0' none */
    char more[256];   /* of the first device */
    char list[1024];  /* "id=host path>container path:permissions" and '!' for unhealthy, each */
    size_t len;
};

static void note_more(struct fixture *f, const V1beta1__ContainerAllocateResponse *more)
{
    size_t at = 0;

    f->more[0] = '\0';
    for (size_t i = 0; i < more->n_devices; i++)
        at += (size_t)snprintf(f->more + at, sizeof f->more - at, "%s>%s:%s ",
                               strrchr(more->devices[i]->host_path, '/'),
                               more->devices[i]->container_path, more->devices[i]->permissions);
    for (size_t i = 0; i < more->n_mounts; i++)
        at += (size_t)snprintf(f->more + at, sizeof f->more - at, "%s>%s%s ",
                               more->mounts[i]->host_path, more->mounts[i]->container_path,
                               more->mounts[i]->read_only ? "" : ":w");
    for (size_t i = 0; i < more->n_envs; i++)
        at += (size_t)snprintf(f->more + at, sizeof f->more - at, "%s=%s ", more->envs[i]->key,
                               more->envs[i]->value);
}

static void on_changed(void *user, const char *resource,
                       const struct devicemgr_builtin_device *devices, size_t devices_len)
{
    struct fixture *f = user;
    size_t at = 0;

    if (f->changes < sizeof f->history - 1)
        f->history[f->changes] = devices_len == 0 ? '0' : devices[0].healthy ? '+' : '-';
    f->changes++;
    f->len = devices_len;
    if (devices_len > 0)
        note_more(f, devices[0].more);
    snprintf(f->resource, sizeof f->resource, "%s", resource);
    f->list[0] = '\0';
    for (size_t i = 0; i < devices_len && at < sizeof f->list; i++) {
        const char *host = devices[i].host_path;

        /* Paths as seen from the world's directory. */
        if (strncmp(host, f->world->dir, strlen(f->world->dir)) == 0)
            host += strlen(f->world->dir);
        at += (size_t)snprintf(f->list + at, sizeof f->list - at, "%s%s=%s>%s:%s%s", i ? " " : "",
                               devices[i].id, host,
                               strcmp(devices[i].container_path, devices[i].host_path) == 0
                                   ? "same"
                                   : devices[i].container_path,
                               devices[i].permissions, devices[i].healthy ? "" : "!");
    }
}

static const struct builtins_ops OPS = {.changed = on_changed};

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

static void start(struct fixture *f, struct world *world, const struct config_device *devices,
                  size_t len)
{
    memset(f, 0, sizeof *f);
    f->world = world;
    f->builtins = builtins_start(&world->loop, devices, len, &OPS, f);
    assert_int_equal(f->changes, 0);
}

static void stop(struct fixture *f)
{
    builtins_stop(f->builtins, on_stopped, f);
    assert_false(f->stopped);
    WAIT(f->world, f->stopped);
}

/* Waits for that change, which is to list this. */
static void listed(struct fixture *f, unsigned changes, const char *list)
{
    WAIT(f->world, f->changes == changes);
    assert_string_equal(f->list, list);
}

static char *in_world(struct world *world, char out[256], const char *name)
{
    snprintf(out, 256, "%s/%s", world->dir, name);
    return out;
}

static void make_node(struct world *world, const char *name)
{
    char path[256];

    assert_int_equal(symlink("/dev/null", in_world(world, path, name)), 0);
}

static void make_dir(struct world *world, const char *name)
{
    char path[256];

    assert_int_equal(mkdir(in_world(world, path, name), 0755), 0);
}

static void drop(struct world *world, const char *name)
{
    char path[256];

    assert_int_equal(remove(in_world(world, path, name)), 0);
}

static struct config_device table(char *path)
{
    return (struct config_device){
        .resource = (char *)"v.com/x", .path = path, .permissions = (char *)"rw", .count = 1};
}

static void finds_one_node(void **state)
{
    struct world *world = *state;
    char path[256];
    struct config_device device = table(in_world(world, path, "kvm"));
    struct fixture f;

    make_node(world, "kvm");
    start(&f, world, &device, 1);
    WAIT(world, f.changes == 1);
    assert_string_equal(f.resource, "v.com/x");
    assert_string_equal(f.list, "kvm=/kvm>same:rw");
    stop(&f);
    drop(world, "kvm");
}

static void lists_a_missing_node_as_unhealthy(void **state)
{
    struct world *world = *state;
    char path[256];
    struct config_device device = table(in_world(world, path, "kvm"));
    struct fixture f;

    start(&f, world, &device, 1);
    listed(&f, 1, "kvm=/kvm>same:rw!");
    make_node(world, "kvm");
    listed(&f, 2, "kvm=/kvm>same:rw");
    drop(world, "kvm");
    listed(&f, 3, "kvm=/kvm>same:rw!");
    stop(&f);
}

static void a_plain_file_is_no_device(void **state)
{
    struct world *world = *state;
    char path[256], glob[256];
    struct config_device devices[] = {table(in_world(world, path, "file")),
                                      table(in_world(world, glob, "fil*"))};
    struct fixture f;
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fclose(file);
    start(&f, world, devices, 1);
    listed(&f, 1, "file=/file>same:rw!");
    stop(&f);
    start(&f, world, devices + 1, 1);
    WAIT(world, f.changes == 1);
    assert_int_equal(f.len, 0);
    stop(&f);
    drop(world, "file");
}

static void a_glob_follows_what_comes_and_goes(void **state)
{
    struct world *world = *state;
    char path[256];
    struct config_device device = table(in_world(world, path, "ttyUSB*"));
    struct fixture f;

    start(&f, world, &device, 1);
    WAIT(world, f.changes == 1);
    assert_int_equal(f.len, 0);
    make_node(world, "ttyUSB1");
    listed(&f, 2, "ttyUSB1=/ttyUSB1>same:rw");
    make_node(world, "ttyUSB0");
    listed(&f, 3, "ttyUSB0=/ttyUSB0>same:rw ttyUSB1=/ttyUSB1>same:rw");
    drop(world, "ttyUSB1");
    listed(&f, 4, "ttyUSB0=/ttyUSB0>same:rw");
    stop(&f);
    drop(world, "ttyUSB0");
}

static void ids_are_paths_below_the_glob(void **state)
{
    struct world *world = *state;
    char path[256];
    struct config_device device = table(in_world(world, path, "*/n"));
    struct fixture f;

    device.container_path = (char *)"/dev/all/";
    make_dir(world, "a");
    make_dir(world, "b");
    make_node(world, "a/n");
    make_node(world, "b/n");
    start(&f, world, &device, 1);
    listed(&f, 1, "a/n=/a/n>/dev/all/a/n:rw b/n=/b/n>/dev/all/b/n:rw");
    stop(&f);
    drop(world, "a/n");
    drop(world, "b/n");
    drop(world, "a");
    drop(world, "b");
}

static void count_gives_each_node_several_times(void **state)
{
    struct world *world = *state;
    char path[256];
    struct config_device device = table(in_world(world, path, "fuse"));
    struct fixture f;

    device.count = 3;
    device.permissions = (char *)"rwm";
    device.container_path = (char *)"/dev/f";
    make_node(world, "fuse");
    start(&f, world, &device, 1);
    listed(&f, 1,
           "fuse-0=/fuse>/dev/f:rwm fuse-1=/fuse>/dev/f:rwm "
           "fuse-2=/fuse>/dev/f:rwm");
    stop(&f);
    drop(world, "fuse");
}

static void bounds_the_devices_of_a_resource(void **state)
{
    struct world *world = *state;
    char path[256], name[16];
    struct config_device device = table(in_world(world, path, "n*"));
    struct fixture f;

    device.count = 10000;
    for (int i = 0; i < 11; i++) {
        snprintf(name, sizeof name, "n%d", i);
        make_node(world, name);
    }
    start(&f, world, &device, 1); /* says a warning */
    WAIT(world, f.changes == 1);
    assert_int_equal(f.len, BUILTINS_DEVICES_MAX);
    stop(&f);
    for (int i = 0; i < 11; i++) {
        snprintf(name, sizeof name, "n%d", i);
        drop(world, name);
    }
}

/* The directory may not be there yet, at any level, and may be made anew. */
static void watches_directories_that_come_later(void **state)
{
    struct world *world = *state;
    char path[256];
    struct config_device device = table(in_world(world, path, "serial/by-id/*"));
    struct fixture f;

    start(&f, world, &device, 1);
    WAIT(world, f.changes == 1);
    for (unsigned round = 0; round < 2; round++) {
        make_dir(world, "serial");
        make_dir(world, "serial/by-id");
        make_node(world, "serial/by-id/x");
        listed(&f, 2 + 2 * round, "x=/serial/by-id/x>same:rw");
        drop(world, "serial/by-id/x");
        drop(world, "serial/by-id");
        drop(world, "serial");
        WAIT(world, f.changes == 3 + 2 * round);
        assert_int_equal(f.len, 0);
    }
    stop(&f);
}

static void tells_only_what_changed(void **state)
{
    struct world *world = *state;
    char a[256], b[256];
    struct config_device devices[] = {table(in_world(world, a, "a*")),
                                      table(in_world(world, b, "b*"))};
    struct fixture f;

    devices[1].resource = (char *)"v.com/b";
    start(&f, world, devices, 2);
    WAIT(world, f.changes == 2);
    make_node(world, "other");
    make_node(world, "b1");
    WAIT(world, f.changes == 3);
    assert_string_equal(f.resource, "v.com/b");
    drop(world, "other");
    make_node(world, "a1");
    WAIT(world, f.changes == 4);
    assert_string_equal(f.resource, "v.com/x");
    stop(&f);
    drop(world, "a1");
    drop(world, "b1");
}

/* A node's replacement by another one under the same name is no change of the list. */
static void settles_before_it_looks(void **state)
{
    struct world *world = *state;
    char a[256], b[256];
    struct config_device devices[] = {table(in_world(world, a, "a")),
                                      table(in_world(world, b, "b"))};
    struct fixture f;

    make_node(world, "a");
    start(&f, world, devices, 2);
    WAIT(world, f.changes == 2);
    drop(world, "a");
    make_node(world, "a");
    make_node(world, "b");
    listed(&f, 3, "b=/b>same:rw");
    stop(&f);
    drop(world, "a");
    drop(world, "b");
}

/* However fast: the one is seen to go, then the other to come. */
static void another_device_under_the_same_name_is_a_new_one(void **state)
{
    struct world *world = *state;
    char path[256], other[256], glob[256];
    struct config_device devices[] = {table(in_world(world, path, "tty1")),
                                      table(in_world(world, glob, "tt*"))};
    struct fixture f;

    for (int i = 0; i < 2; i++) {
        make_node(world, "tty0");
        make_node(world, "tty1");
        start(&f, world, &devices[i], 1);
        WAIT(world, f.changes == 1);
        assert_int_equal(symlink("/dev/zero", in_world(world, other, "new")), 0);
        assert_int_equal(rename(other, path), 0);
        WAIT(world, f.changes == 3);
        if (i == 0)
            assert_string_equal(f.history, "+-+");
        else
            assert_string_equal(f.list, "tty0=/tty0>same:rw tty1=/tty1>same:rw");
        stop(&f);
        drop(world, "tty0");
        drop(world, "tty1");
    }
}

static void several_paths_are_one_device(void **state)
{
    struct world *world = *state;
    char video[256], media[256];
    struct config_node nodes[] = {{in_world(world, video, "video0"), (char *)"/dev/video"},
                                  {in_world(world, media, "media0"), (char *)"/dev/media"}};
    struct config_device device = table(NULL);
    struct fixture f;

    device.paths = nodes;
    device.paths_len = 2;
    make_node(world, "video0");
    start(&f, world, &device, 1);
    listed(&f, 1, "video0=/video0>/dev/video:rw!"); /* not without the second */
    make_node(world, "media0");
    listed(&f, 2, "video0=/video0>/dev/video:rw");
    assert_string_equal(f.more, "/media0>/dev/media:rw ");
    drop(world, "video0");
    listed(&f, 3, "video0=/video0>/dev/video:rw!");
    stop(&f);
    drop(world, "media0");
}

static void mounts_and_envs_come_along(void **state)
{
    struct world *world = *state;
    char path[256];
    struct config_device device = table(in_world(world, path, "fuse"));
    struct config_mount mounts[] = {{(char *)"/opt/a", (char *)"/opt/b", true},
                                    {(char *)"/opt/c", (char *)"/opt/c", false}};
    struct config_env envs[] = {{(char *)"A", (char *)"1"}, {(char *)"B", (char *)""}};
    struct fixture f;

    device.count = 2;
    device.mounts = mounts;
    device.mounts_len = 2;
    device.envs = envs;
    device.envs_len = 2;
    make_node(world, "fuse");
    start(&f, world, &device, 1);
    listed(&f, 1, "fuse-0=/fuse>same:rw fuse-1=/fuse>same:rw");
    assert_string_equal(f.more, "/opt/a>/opt/b /opt/c>/opt/c:w A=1 B= ");
    stop(&f);
    drop(world, "fuse");
}

/* Says that it looks every few seconds instead. */
static void does_without_inotify(void **state)
{
    struct world *world = *state;
    char path[256];
    struct config_device device = table(in_world(world, path, "kvm"));
    struct rlimit old, none;
    struct fixture f;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    start(&f, world, &device, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    make_node(world, "kvm");
    listed(&f, 1, "kvm=/kvm>same:rw");
    drop(world, "kvm");
    listed(&f, 2, "kvm=/kvm>same:rw!");
    stop(&f);
}

/* It may be there all the same; says that it looks again. */
static void what_there_is_no_descriptor_to_look_for_stays(void **state)
{
    struct world *world = *state;
    char path[256];
    struct config_device device = table(in_world(world, path, "gpu*"));
    struct rlimit old, none;
    struct fixture f;

    make_node(world, "gpu0");
    start(&f, world, &device, 1);
    listed(&f, 1, "gpu0=/gpu0>same:rw");
    make_node(world, "gpu1");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 4; i++) { /* the event, then the look that it asks for */
        uv_run(&world->loop, UV_RUN_NOWAIT);
        usleep(BUILTINS_SETTLE_MS * 1000);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(f.changes, 1);
    listed(&f, 2, "gpu0=/gpu0>same:rw gpu1=/gpu1>same:rw"); /* without a further event */
    stop(&f);
    drop(world, "gpu0");
    drop(world, "gpu1");
}

static void looks_at_once_for_who_asks(void **state)
{
    struct world *world = *state;
    char path[256];
    struct config_device device = table(in_world(world, path, "kvm"));
    struct fixture f;

    start(&f, world, &device, 1);
    builtins_look(f.builtins);
    assert_int_equal(f.changes, 1);
    assert_string_equal(f.list, "kvm=/kvm>same:rw!");
    make_node(world, "kvm");
    listed(&f, 2, "kvm=/kvm>same:rw");
    drop(world, "kvm");
    stop(&f);
}

static void nothing_to_do_without_devices(void **state)
{
    struct fixture f;

    start(&f, *state, NULL, 0);
    builtins_look(f.builtins);
    world_settle(f.world);
    assert_int_equal(f.changes, 0);
    stop(&f);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(finds_one_node),
        WORLD_TEST(lists_a_missing_node_as_unhealthy),
        WORLD_TEST(a_plain_file_is_no_device),
        WORLD_TEST(a_glob_follows_what_comes_and_goes),
        WORLD_TEST(ids_are_paths_below_the_glob),
        WORLD_TEST(count_gives_each_node_several_times),
        WORLD_TEST(bounds_the_devices_of_a_resource),
        WORLD_TEST(watches_directories_that_come_later),
        WORLD_TEST(tells_only_what_changed),
        WORLD_TEST(settles_before_it_looks),
        WORLD_TEST(another_device_under_the_same_name_is_a_new_one),
        WORLD_TEST(several_paths_are_one_device),
        WORLD_TEST(mounts_and_envs_come_along),
        WORLD_TEST(does_without_inotify),
        WORLD_TEST(what_there_is_no_descriptor_to_look_for_stays),
        WORLD_TEST(looks_at_once_for_who_asks),
        WORLD_TEST(nothing_to_do_without_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
