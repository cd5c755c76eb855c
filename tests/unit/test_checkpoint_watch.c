/* shim/kubelet/checkpoint_watch.c: on real files. */
#include "tests/unit/waiting.h"

#include <errno.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/boot_clock.h"
#include "shim/kubelet/checkpoint_watch.h"
#include "tests/unit/kubelet_files.h"

/* The user's instances are used up. */
static bool no_inotify;

/* In the place of libc's. */
int inotify_init1(int flags)
{
    errno = EMFILE;
    return no_inotify ? -1 : (int)syscall(SYS_inotify_init1, flags);
}

struct fixture {
    struct world *world;
    char dir[64];  /* the kubelet's */
    char path[96]; /* the file's */
    struct checkpoint_watch *watch;
    const struct kubelet_file *file; /* as last told */
    unsigned reads;
    bool stopped;
};

static void on_read(void *user, const struct kubelet_file *file)
{
    struct fixture *f = user;

    f->file = file;
    f->reads++;
}

static const struct checkpoint_watch_ops OPS = {.read = on_read};

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

static void prepare(struct fixture *f, void **state, const char *dir)
{
    *f = (struct fixture){.world = *state};
    snprintf(f->dir, sizeof f->dir, "%s/%s", f->world->dir, dir);
    snprintf(f->path, sizeof f->path, "%s/" KUBELET_CHECKPOINT_FILE, f->dir);
}

static void start(struct fixture *f)
{
    f->watch = checkpoint_watch_start(&f->world->loop, f->dir, &OPS, f);
    assert_false(checkpoint_watch_current(f->watch));
    assert_int_equal(f->reads, 0);
    WAIT(f->world, f->reads == 1);
    assert_true(checkpoint_watch_current(f->watch));
}

static void stop(struct fixture *f)
{
    checkpoint_watch_stop(f->watch, on_stopped, f);
    assert_false(f->stopped);
    WAIT(f->world, f->stopped);
}

static void clean(struct fixture *f)
{
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(rmdir(f->dir), 0);
}

static void write_text(struct fixture *f, const char *text)
{
    assert_int_equal(kubelet_file_write(f->dir, text), 0);
}

static void reads_what_is_there(void **state)
{
    struct fixture f;

    prepare(&f, state, "k");
    assert_int_equal(mkdir(f.dir, 0755), 0);
    write_text(&f, KUBELET_FILE_HELD);
    start(&f);
    assert_int_equal(f.file->state, KUBELET_FILE_READ);
    assert_int_equal(f.file->checkpoint.allocations_len, 1);
    assert_in_range(f.file->read_ms, 1, boot_now_ms());
    assert_string_equal(f.file->checkpoint.allocations[0].devices[0].id, "gone");
    assert_string_equal(f.file->checkpoint.resources[0].healthy.v[0], "g2"); /* natural order */
    assert_string_equal(f.file->checkpoint.resources[0].healthy.v[1], "g10");
    stop(&f);
    clean(&f);
}

static void a_new_file_is_read(void **state)
{
    struct fixture f;

    prepare(&f, state, "k");
    assert_int_equal(mkdir(f.dir, 0755), 0);
    start(&f);
    assert_int_equal(f.file->state, KUBELET_FILE_MISSING);
    write_text(&f, KUBELET_FILE_HELD);
    WAIT(f.world, f.file->state == KUBELET_FILE_READ);
    write_text(&f, KUBELET_FILE_FREE);
    WAIT(f.world, f.file->checkpoint.allocations_len == 0);
    assert_int_equal(f.file->state, KUBELET_FILE_READ);
    assert_int_equal(unlink(f.path), 0);
    WAIT(f.world, f.file->state == KUBELET_FILE_MISSING);
    assert_int_equal(f.file->checkpoint.resources_len, 0);
    assert_int_equal(f.file->read_ms, 0);
    stop(&f);
    assert_int_equal(rmdir(f.dir), 0);
}

/* Each level may be made late, and made anew. */
static void the_directory_comes_and_goes(void **state)
{
    char above[64], aside[64], old[96];
    struct fixture f;

    prepare(&f, state, "a/b");
    snprintf(above, sizeof above, "%s/a", f.world->dir);
    snprintf(aside, sizeof aside, "%s/aside", f.world->dir);
    start(&f);
    assert_int_equal(f.file->state, KUBELET_FILE_MISSING);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(mkdir(above, 0755), 0);
        world_settle(f.world);
        assert_int_equal(mkdir(f.dir, 0755), 0);
        if (turn == 1)
            world_settle(f.world);
        write_text(&f, KUBELET_FILE_HELD);
        WAIT(f.world, f.file->state == KUBELET_FILE_READ);
        assert_int_equal(rename(above, aside), 0);
        WAIT(f.world, f.file->state == KUBELET_FILE_MISSING);
        snprintf(old, sizeof old, "%s/b/" KUBELET_CHECKPOINT_FILE, aside);
        assert_int_equal(unlink(old), 0);
        snprintf(old, sizeof old, "%s/b", aside);
        assert_int_equal(rmdir(old), 0);
        assert_int_equal(rmdir(aside), 0);
    }
    stop(&f);
}

/* Nothing tells of it, as of a mount: who asks does. */
static void it_is_watched_where_a_link_leads_when_asked(void **state)
{
    char old[64], new[64], cwd[PATH_MAX];
    struct fixture f;

    prepare(&f, state, "");
    snprintf(f.dir, sizeof f.dir, "/proc/self/cwd/k");
    snprintf(f.path, sizeof f.path, "%s/" KUBELET_CHECKPOINT_FILE, f.dir);
    snprintf(old, sizeof old, "%s/old", f.world->dir);
    snprintf(new, sizeof new, "%s/new", f.world->dir);
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(mkdir(old, 0755), 0);
    assert_int_equal(mkdir(new, 0755), 0);
    assert_int_equal(chdir(old), 0);
    start(&f);
    assert_int_equal(chdir(new), 0);
    assert_int_equal(mkdir(f.dir, 0755), 0);
    checkpoint_watch_read(f.watch);
    WAIT(f.world, f.reads == 2);
    write_text(&f, KUBELET_FILE_HELD);
    WAIT(f.world, f.file->state == KUBELET_FILE_READ);
    stop(&f);
    clean(&f);
    assert_int_equal(chdir(cwd), 0);
    assert_int_equal(rmdir(old), 0);
    assert_int_equal(rmdir(new), 0);
}

/* Says on stderr what is wrong, once for each kind. */
static void damage_leaves_what_is_known(void **state)
{
    struct fixture f;

    prepare(&f, state, "k");
    assert_int_equal(mkdir(f.dir, 0755), 0);
    write_text(&f, "{");
    start(&f);
    assert_int_equal(f.file->state, KUBELET_FILE_DAMAGED);
    assert_int_equal(f.file->checkpoint.allocations_len, 0);
    write_text(&f, KUBELET_FILE_HELD);
    WAIT(f.world, f.file->state == KUBELET_FILE_READ);
    write_text(&f,
               "{\"Data\":{\"PodDeviceEntries\":null,\"RegisteredDevices\":{}},\"Checksum\":1}");
    WAIT(f.world, f.file->state == KUBELET_FILE_DAMAGED);
    assert_int_equal(f.file->checkpoint.allocations_len, 1);
    assert_string_equal(f.file->checkpoint.allocations[0].devices[0].id, "gone");
    assert_int_equal(f.file->read_ms, 0);
    write_text(&f, KUBELET_FILE_FREE);
    WAIT(f.world, f.file->state == KUBELET_FILE_READ);
    assert_int_equal(f.file->checkpoint.allocations_len, 0);
    stop(&f);
    clean(&f);
}

/* Says so on stderr. */
static void what_cannot_be_read(void **state)
{
    struct fixture f;

    prepare(&f, state, "k");
    assert_int_equal(mkdir(f.dir, 0755), 0);
    assert_int_equal(mkdir(f.path, 0755), 0);
    start(&f);
    assert_int_equal(f.file->state, KUBELET_FILE_UNREADABLE);
    assert_int_equal(rmdir(f.path), 0);
    assert_int_equal(symlink(KUBELET_CHECKPOINT_FILE, f.path), 0); /* to itself */
    f.reads = 0;
    checkpoint_watch_read(f.watch);
    WAIT(f.world, f.reads > 0 && checkpoint_watch_current(f.watch));
    assert_int_equal(f.file->state, KUBELET_FILE_UNREADABLE);
    assert_int_equal(unlink(f.path), 0);
    assert_int_equal(mkfifo(f.path, 0600), 0);
    f.reads = 0;
    checkpoint_watch_read(f.watch);
    WAIT(f.world, f.reads > 0 && checkpoint_watch_current(f.watch));
    assert_int_equal(f.file->state, KUBELET_FILE_UNREADABLE);
    assert_int_equal(unlink(f.path), 0);
    write_text(&f, "");
    assert_int_equal(truncate(f.path, (off_t)KUBELET_CHECKPOINT_BYTES_MAX + 1), 0);
    f.reads = 0;
    checkpoint_watch_read(f.watch);
    WAIT(f.world, f.reads > 0 && checkpoint_watch_current(f.watch));
    assert_int_equal(f.file->state, KUBELET_FILE_UNREADABLE);
    stop(&f);
    clean(&f);
}

/* Says so on stderr. */
static void what_cannot_be_read_leaves_what_is_known(void **state)
{
    struct fixture f;

    prepare(&f, state, "k");
    assert_int_equal(mkdir(f.dir, 0755), 0);
    write_text(&f, KUBELET_FILE_HELD);
    start(&f);
    assert_int_equal(unlink(f.path), 0);
    assert_int_equal(mkdir(f.path, 0755), 0);
    WAIT(f.world, f.file->state == KUBELET_FILE_UNREADABLE);
    assert_int_equal(f.file->checkpoint.allocations_len, 1);
    assert_string_equal(f.file->checkpoint.allocations[0].devices[0].id, "gone");
    assert_int_equal(rmdir(f.path), 0);
    write_text(&f, "{");
    WAIT(f.world, f.file->state == KUBELET_FILE_DAMAGED);
    assert_int_equal(f.file->checkpoint.allocations_len, 1);
    stop(&f);
    clean(&f);
}

/* Says so on stderr. */
static void what_could_not_be_read_is_read_again(void **state)
{
    struct rlimit before, none;
    struct fixture f;

    prepare(&f, state, "k");
    assert_int_equal(mkdir(f.dir, 0755), 0);
    write_text(&f, KUBELET_FILE_HELD);
    start(&f);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    checkpoint_watch_read(f.watch);
    WAIT(f.world, f.reads == 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(f.file->state, KUBELET_FILE_UNREADABLE);
    WAIT(f.world, f.file->state == KUBELET_FILE_READ);
    stop(&f);
    clean(&f);
}

/* Whoever asks gets what is there now, not what a reading under way began with. */
static void reads_again_when_asked_meanwhile(void **state)
{
    struct fixture f;

    prepare(&f, state, "k");
    assert_int_equal(mkdir(f.dir, 0755), 0);
    start(&f);
    checkpoint_watch_read(f.watch);
    assert_false(checkpoint_watch_current(f.watch));
    checkpoint_watch_read(f.watch);
    checkpoint_watch_read(f.watch);
    WAIT(f.world, f.reads == 2);
    assert_false(checkpoint_watch_current(f.watch));
    WAIT(f.world, f.reads == 3);
    assert_true(checkpoint_watch_current(f.watch));
    world_settle(f.world);
    assert_int_equal(f.reads, 3);
    stop(&f);
    assert_int_equal(rmdir(f.dir), 0);
}

static void stops_while_it_reads(void **state)
{
    struct fixture f;

    prepare(&f, state, "k");
    start(&f);
    checkpoint_watch_read(f.watch);
    checkpoint_watch_read(f.watch);
    stop(&f);
    assert_int_equal(f.reads, 1);
}

/* Says so on stderr. */
static void without_inotify_it_reads_at_intervals(void **state)
{
    struct fixture f;

    prepare(&f, state, "k");
    assert_int_equal(mkdir(f.dir, 0755), 0);
    write_text(&f, KUBELET_FILE_HELD);
    no_inotify = true;
    start(&f);
    assert_int_equal(f.file->state, KUBELET_FILE_READ);
    write_text(&f, KUBELET_FILE_FREE);
    checkpoint_watch_read(f.watch); /* when asked, too */
    WAIT(f.world, f.file->checkpoint.allocations_len == 0);
    write_text(&f, KUBELET_FILE_HELD);
    WAIT(f.world, f.file->checkpoint.allocations_len == 1);
    stop(&f);
    no_inotify = false;
    clean(&f);
}

/* Says so on stderr. Who had used it up has gone. */
static void it_watches_once_there_is_inotify(void **state)
{
    struct fixture f;

    prepare(&f, state, "k");
    assert_int_equal(mkdir(f.dir, 0755), 0);
    no_inotify = true;
    start(&f);
    no_inotify = false;
    WAIT(f.world, f.reads == 2);
    write_text(&f, KUBELET_FILE_HELD);
    WAIT(f.world, f.reads == 3);
    assert_int_equal(f.file->checkpoint.allocations_len, 1);
    stop(&f);
    clean(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_what_is_there, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_new_file_is_read, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(the_directory_comes_and_goes, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(it_is_watched_where_a_link_leads_when_asked, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(damage_leaves_what_is_known, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_read, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_leaves_what_is_known, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(what_could_not_be_read_is_read_again, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(reads_again_when_asked_meanwhile, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(stops_while_it_reads, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(without_inotify_it_reads_at_intervals, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(it_watches_once_there_is_inotify, world_setup,
                                        world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
