/* shim/core/restore.c: a real checkpoint, read by a real worker into a real core. */
#include "tests/unit/plugin_fixture.h"

#include <pthread.h>
#include <sys/stat.h>

#include "shim/core/restore.h"

/* Of libuv's pool, see main(). */
#define POOL_THREADS 4

struct fixture {
    struct world *world;
    char dir[64], file[96];
    struct store_options options;
    struct devicemgr *core;
    struct store_worker *worker;
    struct restore restore;
    unsigned restored, delayed, given_up, unreadable;
    bool stopped;
    pthread_mutex_t gate; /* held while the pool's threads are to wait */
    uv_work_t waiting[POOL_THREADS];
    unsigned waited;
};

static void on_report(void *user, int level, const char *text)
{
    (void)user, (void)level, (void)text;
}

static void on_sized(void *user, uint64_t bytes)
{
    struct fixture *f = user;

    restore_sized(&f->restore, bytes);
}

static void on_rows(void *user, const struct store_worker_rows *rows)
{
    struct fixture *f = user;

    restore_rows(&f->restore, rows);
}

static void on_unreadable(void *user, const char *error)
{
    struct fixture *f = user;

    f->unreadable++;
    restore_unreadable(&f->restore, error);
}

static void on_committed(void *user, uint64_t commit, const char *error)
{
    (void)user, (void)commit, (void)error;
}

static void on_reset(void *user)
{
    (void)user;
}

static const struct store_worker_ops WORKER_OPS = {.sized = on_sized,
                                                   .read = on_rows,
                                                   .unreadable = on_unreadable,
                                                   .committed = on_committed,
                                                   .reset = on_reset};

static void on_restored(void *user)
{
    struct fixture *f = user;

    f->restored++;
}

static void on_delayed(void *user)
{
    struct fixture *f = user;

    assert_int_equal(f->restored, 0);
    f->delayed++;
}

static void on_given_up(void *user)
{
    struct fixture *f = user;

    assert_int_equal(f->restored, 0);
    assert_int_equal(f->delayed, 1);
    f->given_up++;
}

static const struct restore_ops OPS = {
    .restored = on_restored, .delayed = on_delayed, .given_up = on_given_up};

/* None is called: nothing here runs the core. */
static const struct devicemgr_ports PORTS = {0};

static int setup(void **state)
{
    const struct devicemgr_settings settings = {.boot_id = "b"};
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    snprintf(f->dir, sizeof f->dir, "%s/state", f->world->dir);
    snprintf(f->file, sizeof f->file, "%s/" STORE_FILE, f->dir);
    assert_int_equal(mkdir(f->dir, 0700), 0);
    f->options =
        (struct store_options){.dir = f->dir, .boot_id = "b", .report = on_report, .user = f};
    f->core = devicemgr_new(&settings, &PORTS, f);
    f->worker = store_worker_new(&f->world->loop, &f->options, &WORKER_OPS, f);
    pthread_mutex_init(&f->gate, NULL);
    *state = f;
    return 0;
}

static void start(struct fixture *f)
{
    restore_start(&f->restore, &f->world->loop, f->core, f->worker, &OPS, f);
    assert_int_equal(f->restored + f->delayed, 0);
}

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    unsigned told = f->restored + f->delayed;
    int err;

    store_worker_stop(f->worker, on_stopped, f);
    WAIT(f->world, f->stopped);
    f->stopped = false;
    restore_stop(&f->restore, on_stopped, f);
    assert_false(f->stopped);
    WAIT(f->world, f->stopped);
    assert_int_equal(f->restored + f->delayed, told);
    devicemgr_free(f->core);
    remove_dir(f->dir);
    pthread_mutex_destroy(&f->gate);
    err = world_free(f->world);
    free(f);
    return err;
}

static void what_is_there_is_restored_once(void **state)
{
    struct fixture *f = *state;

    start(f);
    WAIT(f->world, f->restored == 1);
    world_settle(f->world);
    assert_int_equal(f->restored, 1);
    assert_int_equal(f->given_up + f->unreadable, 0);
}

static void wait_at_gate(uv_work_t *work)
{
    struct fixture *f = work->data;

    pthread_mutex_lock(&f->gate);
    pthread_mutex_unlock(&f->gate);
}

static void on_waited(uv_work_t *work, int status)
{
    struct fixture *f = work->data;

    (void)status;
    f->waited++;
}

/* No worker reads until the gate is unlocked. */
static void lock_gate(struct fixture *f)
{
    pthread_mutex_lock(&f->gate);
    for (size_t i = 0; i < POOL_THREADS; i++) {
        f->waiting[i].data = f;
        assert_int_equal(uv_queue_work(&f->world->loop, &f->waiting[i], wait_at_gate, on_waited),
                         0);
    }
}

/* A checkpoint of so many bytes, all of them damaged: it is set aside, and none is left. */
static void put_file(struct fixture *f, uint64_t bytes)
{
    assert_int_equal(mknod(f->file, S_IFREG | 0600, 0), 0);
    assert_int_equal(truncate(f->file, (off_t)bytes), 0);
}

/* A node with very many devices: what needs no rows begins, what does waits for them. */
static void a_large_one_is_told_at_once(void **state)
{
    struct fixture *f = *state;

    put_file(f, RESTORE_LARGE_BYTES);
    start(f);
    WAIT(f->world, f->restored == 1);
    assert_int_equal(f->delayed, 1);
    assert_int_equal(f->given_up + f->unreadable, 0);
}

static void one_that_is_not_large_is_waited_for(void **state)
{
    struct fixture *f = *state;

    put_file(f, RESTORE_LARGE_BYTES - 1);
    start(f);
    WAIT(f->world, f->restored == 1);
    assert_int_equal(f->delayed, 0);
}

/* A disk that hangs: whoever waits for the rows goes on without, and gets them later. */
static void a_read_that_takes_too_long_is_told_and_goes_on(void **state)
{
    struct fixture *f = *state;

    lock_gate(f);
    start(f);
    WAIT(f->world, f->delayed == 1);
    assert_int_equal(f->given_up, 1);
    assert_int_equal(f->restored + f->unreadable, 0);
    pthread_mutex_unlock(&f->gate);
    WAIT(f->world, f->restored == 1 && f->waited == POOL_THREADS);
    assert_int_equal(f->delayed, 1);
    assert_int_equal(f->given_up, 1);
}

/* Says so. */
static void one_that_cannot_be_read_is_tried_until_it_can(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mkdir(f->file, 0700), 0);
    start(f);
    WAIT(f->world, f->unreadable == 1);
    assert_int_equal(f->delayed, 1);
    WAIT(f->world, f->unreadable == 2);
    assert_int_equal(f->delayed, 1);
    assert_int_equal(f->given_up, 1);
    assert_int_equal(f->restored, 0);
    assert_int_equal(rmdir(f->file), 0);
    WAIT(f->world, f->restored == 1);
    assert_int_equal(f->delayed, 1);
    assert_int_equal(f->unreadable, 2);
}

/* The teardown says that nothing is told any more. Says so. */
static void it_stops_while_it_waits_to_try_again(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mkdir(f->file, 0700), 0);
    start(f);
    WAIT(f->world, f->unreadable == 1);
    assert_int_equal(rmdir(f->file), 0);
}

static void it_stops_while_it_reads(void **state)
{
    start(*state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_there_is_restored_once),
        TEST(a_large_one_is_told_at_once),
        TEST(one_that_is_not_large_is_waited_for),
        TEST(a_read_that_takes_too_long_is_told_and_goes_on),
        TEST(one_that_cannot_be_read_is_tried_until_it_can),
        TEST(it_stops_while_it_waits_to_try_again),
        TEST(it_stops_while_it_reads),
    };

    assert_int_equal(setenv("UV_THREADPOOL_SIZE", "4", 1), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
