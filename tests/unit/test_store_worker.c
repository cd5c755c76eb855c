/* shim/core/store_worker.c: commits off the loop, one at a time, their ends on the loop. */
#include "tests/unit/rpc_fixture.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/store_worker.h"
#include "shim/deaths.h"

struct fixture {
    struct world *world;
    struct store_worker *worker;
    bool read, lost, rebooted;
    uint64_t bytes; /* that the file has, as told before it is read */
    bool unreadable;
    unsigned commits;
    uint64_t last;
    char error[STORE_ERROR_BYTES_MAX];
    bool expected; /* the store reports something */
    unsigned resets;
    unsigned to_go; /* commits to start from committed() */
    bool idle;
    bool stopped;
    unsigned rows;
    char value[16];
};

static void on_report(void *user, int level, const char *text)
{
    struct fixture *f = user;

    (void)level;
    if (!f->expected)
        fail_msg("%s", text);
}

static struct store *open_store(struct fixture *f)
{
    struct store_options options = {
        .dir = f->world->dir, .boot_id = "b", .report = on_report, .user = f};
    struct store *store;
    char err[STORE_ERROR_BYTES_MAX];

    assert_int_equal(store_open(&options, &store, err, sizeof err), 0);
    return store;
}

static void commit_pod(struct fixture *f, uint64_t number)
{
    char key[16], value[16];
    struct devicemgr_record record = {
        .kind = DEVICEMGR_RECORD_POD, .key = {key, "", ""}, .value = value};

    snprintf(key, sizeof key, "pod-%u", (unsigned)number);
    snprintf(value, sizeof value, "value-%u", (unsigned)number);
    record.value_bytes = strlen(value);
    store_worker_commit(f->worker, number, &record, 1);
    /* The worker has copies. */
    memset(key, 'x', sizeof key);
    memset(value, 'x', sizeof value);
}

static void on_committed(void *user, uint64_t commit, const char *error)
{
    struct fixture *f = user;

    f->commits++;
    f->last = commit;
    snprintf(f->error, sizeof f->error, "%s", error ? error : "");
    if (f->to_go > 0) {
        f->to_go--;
        commit_pod(f, commit + 1);
    } else {
        f->idle = true;
    }
}

static void on_reset(void *user)
{
    struct fixture *f = user;

    f->resets++;
}

static void count_row(void *user, const struct devicemgr_record *record);

static void on_sized(void *user, uint64_t bytes)
{
    struct fixture *f = user;

    assert_false(f->read);
    f->bytes = bytes;
}

static void on_read(void *user, const struct store_worker_rows *rows)
{
    struct fixture *f = user;

    f->read = true;
    f->lost = rows->lost;
    f->rebooted = rows->rebooted;
    for (size_t i = 0; i < rows->len; i++)
        count_row(f, &rows->v[i]);
}

static void on_unreadable(void *user, const char *error)
{
    struct fixture *f = user;

    f->unreadable = true;
    snprintf(f->error, sizeof f->error, "%s", error);
}

static const struct store_worker_ops OPS = {.sized = on_sized,
                                            .read = on_read,
                                            .unreadable = on_unreadable,
                                            .committed = on_committed,
                                            .reset = on_reset};

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

static void count_row(void *user, const struct devicemgr_record *record)
{
    struct fixture *f = user;

    f->rows++;
    snprintf(f->value, sizeof f->value, "%.*s", (int)record->value_bytes,
             (const char *)record->value);
}

static void begin(struct fixture *f, void **state, const char *boot_id)
{
    const struct store_options options = {
        .dir = ((struct world *)*state)->dir, .boot_id = boot_id, .report = on_report, .user = f};

    memset(f, 0, sizeof *f);
    f->world = *state;
    f->worker = store_worker_new(&f->world->loop, &options, &OPS, f);
    store_worker_read(f->worker);
    assert_false(f->read);
}

static void start(struct fixture *f, void **state)
{
    begin(f, state, "b");
    world_wait(f->world, &f->read);
    assert_int_equal(f->rows, 0);
    assert_false(f->lost || f->rebooted);
    assert_int_equal(f->bytes, 0);
}

static void stop(struct fixture *f)
{
    f->stopped = false;
    store_worker_stop(f->worker, on_stopped, f);
    world_wait(f->world, &f->stopped);
}

/* Removes the files; what is on the disk is in f->rows and f->value. */
static void look_and_clean(struct fixture *f)
{
    struct store *store = open_store(f);
    char path[128];

    store_load(store, count_row, f);
    store_close(store);
    snprintf(path, sizeof path, "%s/" STORE_FILE, f->world->dir);
    assert_int_equal(unlink(path), 0);
}

static void commits_one_after_the_other(void **state)
{
    struct fixture f;

    start(&f, state);
    f.to_go = 4;
    commit_pod(&f, 1);
    assert_int_equal(f.commits, 0);
    world_wait(f.world, &f.idle);
    assert_int_equal(f.commits, 5);
    assert_int_equal(f.last, 5);
    assert_string_equal(f.error, "");
    store_worker_stop(f.worker, on_stopped, &f);
    world_wait(f.world, &f.stopped);
    look_and_clean(&f);
    assert_int_equal(f.rows, 5);
    assert_memory_equal(f.value, "value-", 6);
}

static void deletes_and_commits_nothing(void **state)
{
    struct devicemgr_record gone = {.kind = DEVICEMGR_RECORD_POD, .key = {"pod-1", "", ""}};
    struct fixture f;

    start(&f, state);
    commit_pod(&f, 1);
    world_wait(f.world, &f.idle);
    f.idle = false;
    store_worker_commit(f.worker, 2, &gone, 1);
    world_wait(f.world, &f.idle);
    f.idle = false;
    store_worker_commit(f.worker, 3, NULL, 0);
    world_wait(f.world, &f.idle);
    assert_int_equal(f.last, 3);
    store_worker_stop(f.worker, on_stopped, &f);
    look_and_clean(&f);
    assert_int_equal(f.rows, 0);
}

struct looked {
    struct fixture *f;
    bool done;
    unsigned commits; /* that were through by then */
    size_t rows;
};

static void on_looked(void *user, const struct store_worker_look *look)
{
    struct looked *looked = user;

    assert_null(look->error);
    assert_int_equal(look->found.version, 1);
    /* The values of this file are no messages: each is a finding. */
    assert_int_equal(look->findings.total, look->rows[DEVICEMGR_RECORD_POD]);
    looked->done = true;
    looked->commits = looked->f->commits;
    looked->rows = look->rows[DEVICEMGR_RECORD_POD];
}

static struct devicemgr *scratch_new(void)
{
    static const struct devicemgr_settings settings = {.boot_id = ""};

    return devicemgr_new(&settings, NULL, NULL);
}

/* It waits for the commit that is under way, and the next commit for it. */
static void a_look_comes_between_two_commits(void **state)
{
    struct devicemgr *scratch = scratch_new();
    struct looked looked = {0};
    struct fixture f;

    start(&f, state);
    looked.f = &f;
    f.to_go = 2;
    commit_pod(&f, 1);
    assert_true(store_worker_look(f.worker, scratch_new(), on_looked, &looked));
    assert_false(store_worker_look(f.worker, scratch, on_looked, &looked));
    devicemgr_free(scratch);
    assert_false(looked.done);
    world_wait(f.world, &f.idle);
    assert_int_equal(f.commits, 3);
    assert_true(looked.done);
    assert_int_equal(looked.commits, 1);
    assert_int_equal(looked.rows, 1);
    stop(&f);
    look_and_clean(&f);
    assert_int_equal(f.rows, 3);
}

static void a_look_may_be_forgotten_or_stopped(void **state)
{
    struct looked looked = {0};
    struct fixture f;

    start(&f, state);
    looked.f = &f;
    assert_true(store_worker_look(f.worker, scratch_new(), on_looked, &looked));
    store_worker_forget_look(f.worker);
    commit_pod(&f, 1); /* held until it is through */
    world_wait(f.world, &f.idle);
    assert_false(looked.done);
    assert_true(store_worker_look(f.worker, scratch_new(), on_looked, &looked));
    stop(&f);
    assert_false(looked.done);
    look_and_clean(&f);
    assert_int_equal(f.rows, 1);
}

static void tells_that_the_file_is_a_new_one(void **state)
{
    struct fixture f;
    char path[128];

    start(&f, state);
    f.expected = true;
    snprintf(path, sizeof path, "%s/" STORE_FILE, f.world->dir);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/" STORE_FILE "-wal", f.world->dir);
    assert_int_equal(unlink(path), 0);
    commit_pod(&f, 1);
    world_wait(f.world, &f.idle);
    assert_non_null(strstr(f.error, "was lost"));
    assert_int_equal(f.resets, 1);
    f.idle = false;
    commit_pod(&f, 2);
    world_wait(f.world, &f.idle);
    assert_string_equal(f.error, "");
    assert_int_equal(f.resets, 1);
    store_worker_stop(f.worker, on_stopped, &f);
    look_and_clean(&f);
    assert_int_equal(f.rows, 1);
}

static void tells_the_stores_words(void **state)
{
    struct fixture f;
    struct rlimit old, none;

    start(&f, state);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    commit_pod(&f, 1);
    world_wait(f.world, &f.idle);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_non_null(strstr(f.error, "checkpoint.db: "));
    assert_int_equal(f.resets, 0);
    store_worker_stop(f.worker, on_stopped, &f);
    look_and_clean(&f);
    assert_int_equal(f.rows, 0);
}

static void finishes_a_commit_before_it_stops(void **state)
{
    struct fixture f;

    start(&f, state);
    commit_pod(&f, 7);
    store_worker_stop(f.worker, on_stopped, &f);
    assert_false(f.stopped);
    world_wait(f.world, &f.stopped);
    assert_int_equal(f.commits, 0);
    look_and_clean(&f);
    assert_int_equal(f.rows, 1);
    assert_string_equal(f.value, "value-7");
}

static void reads_what_there_is(void **state)
{
    struct fixture f;

    start(&f, state);
    f.to_go = 99;
    commit_pod(&f, 1);
    world_wait(f.world, &f.idle);
    stop(&f);
    begin(&f, state, "another");
    world_wait(f.world, &f.read);
    assert_true(f.bytes >= 100 * strlen("value-99"));
    assert_int_equal(f.rows, 100);
    assert_memory_equal(f.value, "value-", 6);
    assert_true(f.rebooted);
    stop(&f);
    look_and_clean(&f);
}

static void what_cannot_be_read_is_read_again(void **state)
{
    struct fixture f;
    struct store *other;

    start(&f, state);
    commit_pod(&f, 1);
    world_wait(f.world, &f.idle);
    stop(&f);
    other = open_store(&f);
    begin(&f, state, "b");
    world_wait(f.world, &f.unreadable);
    assert_non_null(strstr(f.error, "another process has it open"));
    store_close(other);
    store_worker_read(f.worker);
    world_wait(f.world, &f.read);
    assert_int_equal(f.rows, 1);
    commit_pod(&f, 2);
    world_wait(f.world, &f.idle);
    assert_string_equal(f.value, "value-1");
    stop(&f);
    look_and_clean(&f);
}

static void stops_while_it_reads(void **state)
{
    struct fixture f;

    begin(&f, state, "b");
    stop(&f);
    assert_false(f.read || f.unreadable);
    look_and_clean(&f);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

/* ---- what ends its reader ---- */

static void crash(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    (void)text;
    abort();
}

/* A daemon that reads the checkpoint in `dir`, which is damaged, and crashes over it. */
static void read_and_crash(const char *dir, const char *deaths)
{
    static const struct rlimit none = {0};
    const struct store_options options = {.dir = dir, .boot_id = "b", .report = crash};
    struct fixture f = {0};
    struct store_worker *worker;
    uv_loop_t loop;

    setrlimit(RLIMIT_CORE, &none);
    deaths_watch(deaths);
    uv_loop_init(&loop);
    worker = store_worker_new(&loop, &options, &OPS, &f);
    store_worker_read(worker);
    uv_run(&loop, UV_RUN_DEFAULT);
}

static void remove_all(const char *dir)
{
    DIR *entries = opendir(dir);
    char path[512];

    for (struct dirent *entry; (entry = readdir(entries));) {
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        unlink(path);
    }
    closedir(entries);
}

static void a_crash_while_it_reads_is_noted(void **state)
{
    const struct world *world = *state;
    char deaths[64], path[64];
    pid_t child;
    int status;

    snprintf(deaths, sizeof deaths, "%s/deaths", world->dir);
    snprintf(path, sizeof path, "%s/" STORE_FILE, world->dir);
    for (int times = 1; times <= 2; times++) {
        FILE *file = fopen(path, "w");

        assert_true(file && fputs("no checkpoint", file) >= 0 && fclose(file) == 0);
        child = fork();
        if (child == 0) {
            read_and_crash(world->dir, deaths);
            _exit(1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        child = fork();
        if (child == 0) {
            deaths_watch(deaths);
            _exit(deaths_of(DEATHS_CHECKPOINT, 2) ? 2 : deaths_of(DEATHS_CHECKPOINT, 1));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(WEXITSTATUS(status), times);
    }
    remove_all(world->dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(commits_one_after_the_other),
        WORLD_TEST(deletes_and_commits_nothing),
        WORLD_TEST(tells_the_stores_words),
        WORLD_TEST(a_look_comes_between_two_commits),
        WORLD_TEST(a_look_may_be_forgotten_or_stopped),
        WORLD_TEST(a_look_may_be_forgotten_or_stopped),
        WORLD_TEST(tells_that_the_file_is_a_new_one),
        WORLD_TEST(finishes_a_commit_before_it_stops),
        WORLD_TEST(reads_what_there_is),
        WORLD_TEST(what_cannot_be_read_is_read_again),
        WORLD_TEST(stops_while_it_reads),
        WORLD_TEST(a_crash_while_it_reads_is_noted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
