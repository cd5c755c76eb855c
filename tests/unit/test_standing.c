/* shim/cluster/standing.c, removed_file.c: what is wanted as long as something is so. */
#include "tests/unit/orders_stage.h"

#include <pthread.h>
#include <unistd.h>

#include "shim/cluster/removed_file.h"
#include "shim/cluster/standing.h"

struct fixture {
    struct orders_stage stage;
    struct standing standing;
    char done[64], cancelled[64], back[64];
};

static void on_done(void *user, const char *name)
{
    struct fixture *f = user;

    assert_null(standing_find(&f->standing, name));
    snprintf(f->done, sizeof f->done, "%s", name);
}

static void on_cancel(void *user, uint64_t order)
{
    struct fixture *f = user;

    cluster_orders_cancel(&f->stage.orders, order);
    snprintf(f->cancelled, sizeof f->cancelled, "an order");
}

static void on_back(void *user, const struct standing_order *order)
{
    struct fixture *f = user;

    snprintf(f->back, sizeof f->back, "%s", order->name);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    orders_stage_init(&f->stage);
    standing_init(&f->standing, &f->stage.orders, on_cancel, f, on_done, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result;

    standing_fini(&f->standing);
    result = orders_stage_fini(&f->stage);
    free(f);
    return result;
}

static void give(struct fixture *f, const char *name)
{
    Agent__V1__WipeSlices wipe = AGENT__V1__WIPE_SLICES__INIT;
    Agent__V1__Order order = AGENT__V1__ORDER__INIT;

    wipe.driver = (char *)(uintptr_t)name;
    order.what_case = AGENT__V1__ORDER__WHAT_WIPE_SLICES;
    order.wipe_slices = &wipe;
    standing_give(standing_want(&f->standing, name), &order);
}

static void it_is_given_once(void **state)
{
    struct fixture *f = *state;
    Agent__V1__AnswerRequest answer = AGENT__V1__ANSWER_REQUEST__INIT;
    Agent__V1__Order *out[4];
    unsigned version = f->standing.version;

    for (int look = 0; look < 3; look++) {
        standing_look(&f->standing);
        give(f, "a");
        standing_looked(&f->standing, on_back);
    }
    assert_int_equal(f->standing.version, version + 1);
    assert_int_equal(cluster_orders_fill(&f->stage.orders, out, 4), 1);
    answer.id = out[0]->id;
    answer.outcome = AGENT__V1__OUTCOME__DONE;
    assert_true(cluster_orders_answered(&f->stage.orders, &answer));
    assert_string_equal(f->done, "a");
    assert_int_equal(f->standing.version, version + 2);
    assert_string_equal(f->back, "");
    assert_string_equal(f->cancelled, "");
}

static void what_is_no_more_so_is_taken_back(void **state)
{
    struct fixture *f = *state;

    give(f, "a");
    give(f, "b");
    standing_want(&f->standing, "c"); /* nothing is ordered for it yet */
    standing_look(&f->standing);
    give(f, "b");
    standing_want(&f->standing, "c");
    standing_looked(&f->standing, on_back);
    assert_string_equal(f->back, "a");
    assert_string_equal(f->cancelled, "an order");
    assert_int_equal(f->stage.orders.len, 1);
    f->cancelled[0] = '\0';
    standing_look(&f->standing);
    standing_want(&f->standing, "b");
    standing_looked(&f->standing, NULL);
    assert_string_equal(f->cancelled, "");
    assert_null(standing_find(&f->standing, "c"));
    assert_non_null(standing_find(&f->standing, "b"));
}

/* ---- the file ---- */

static void on_name(void *user, const char *name)
{
    char *found = user;

    strcat(strcat(found, name), " ");
}

struct written {
    struct removed_file file;
    unsigned times;
    int err;
};

static void on_written(void *user, int err)
{
    struct written *w = user;

    w->times++;
    w->err = err;
}

static void written_init(struct written *w, uv_loop_t *loop)
{
    *w = (struct written){0};
    assert_int_equal(uv_loop_init(loop), 0);
    removed_file_init(&w->file, loop, strdup("it"), on_written, w);
}

static void written_fini(struct written *w, uv_loop_t *loop)
{
    assert_false(removed_file_writes(&w->file));
    removed_file_fini(&w->file);
    assert_int_equal(uv_loop_close(loop), 0);
}

/* What it came to. */
static int write_names(const char *const *names, size_t len)
{
    uv_loop_t loop;
    struct written w;

    written_init(&w, &loop);
    removed_file_write(&w.file, names, len);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(w.times, 1);
    written_fini(&w, &loop);
    return w.err;
}

static void names_are_kept(void **state)
{
    static const char *const names[] = {"vendor.com/gpu", "vendor.com/nic"};
    char path[] = "/tmp/test-standing-XXXXXX", found[128] = "";

    (void)state;
    assert_non_null(mkdtemp(path));
    assert_int_equal(chdir(path), 0);
    removed_file_read("it", on_name, found); /* there is none */
    assert_string_equal(found, "");
    assert_int_equal(write_names(NULL, 0), 0);
    assert_int_equal(write_names(names, 2), 0);
    removed_file_read("it", on_name, found);
    assert_string_equal(found, "vendor.com/gpu vendor.com/nic ");
    assert_int_equal(truncate("it", strlen("vendor.com/gpu\nvend")), 0); /* cut, or nonsense */
    found[0] = '\0';
    removed_file_read("it", on_name, found);
    assert_string_equal(found, "vendor.com/gpu ");
    assert_int_equal(write_names(names, 0), 0);
    assert_int_equal(access("it", F_OK), -1);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(write_names(names, 2), -ENOENT);
}

static void on_held(uv_work_t *work)
{
    pthread_mutex_lock(work->data);
    pthread_mutex_unlock(work->data);
}

static void on_let_go(uv_work_t *work, int status)
{
    (void)work, (void)status;
}

/* A disk that hangs keeps nobody waiting; what is to be there by then is. */
static void names_are_written_in_the_worker(void **state)
{
    static const char *const names[] = {"vendor.com/gpu", "vendor.com/nic", "vendor.com/fpga"};
    char path[] = "/tmp/test-standing-XXXXXX", found[128] = "";
    pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
    uv_work_t held = {.data = &disk};
    uv_loop_t loop;
    struct written w;

    (void)state;
    assert_non_null(mkdtemp(path));
    assert_int_equal(chdir(path), 0);
    written_init(&w, &loop);
    pthread_mutex_lock(&disk);
    uv_queue_work(&loop, &held, on_held, on_let_go);
    for (size_t len = 1; len <= 3; len++)
        removed_file_write(&w.file, names, len);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(access("it", F_OK), -1);
    assert_true(removed_file_writes(&w.file) && w.times == 0);
    pthread_mutex_unlock(&disk);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(w.times, 2); /* the first, and the last that came meanwhile */
    assert_int_equal(w.err, 0);
    removed_file_read("it", on_name, found);
    assert_string_equal(found, "vendor.com/gpu vendor.com/nic vendor.com/fpga ");
    written_fini(&w, &loop);
    assert_int_equal(unlink("it"), 0);
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_given_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_more_so_is_taken_back, setup, teardown),
        cmocka_unit_test(names_are_kept),
        cmocka_unit_test(names_are_written_in_the_worker),
    };

    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(setenv("UV_THREADPOOL_SIZE", "1", 1), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
