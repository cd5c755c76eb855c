/* shim/events/events.c: events over restarts, disks that do not take them, and who watches. */
#include "tests/unit/waiting.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/boot_clock.h"
#include "shim/events/events.h"

#define WORKERS 4 /* libuv's, unless it is told otherwise */

struct fixture {
    struct world *world;
    struct events *events;
    struct events_watch watch;
    char path[PATH_MAX], told[PATH_MAX];
    bool stopped;
    unsigned more;
    uv_work_t held[WORKERS];
    unsigned held_len; /* workers that are busy with nothing */
    sem_t go_on;
    bool passed; /* the time */
};

static void on_more(void *user)
{
    ((struct fixture *)user)->more++;
}

static void start(struct fixture *f)
{
    f->events = events_start(&f->world->loop, f->world->dir, f->told);
    f->watch = (struct events_watch){.more = on_more, .user = f};
    events_watch(f->events, &f->watch);
    f->more = 0;
    WAIT(f->world, f->more > 0); /* it is read */
}

static void on_stopped(void *user)
{
    ((struct fixture *)user)->stopped = true;
}

static void stop(struct fixture *f)
{
    f->stopped = false;
    events_unwatch(&f->watch);
    events_stop(f->events, on_stopped, f);
    WAIT(f->world, f->stopped);
    f->events = NULL;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    world_setup((void **)&f->world);
    snprintf(f->path, sizeof f->path, "%s/events", f->world->dir);
    snprintf(f->told, sizeof f->told, "%s/told", f->world->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    rmdir(f->path);
    unlink(f->path);
    unlink(f->told);
    err = world_teardown((void **)&f->world);
    free(f);
    return err;
}

static void say(struct fixture *f, const char *kind, const char *resource)
{
    const struct event_said said = {.kind = kind, .resource = resource, .text = "words"};

    events_say(f->events, &said);
}

static off_t size(const struct fixture *f)
{
    struct stat st;

    return stat(f->path, &st) < 0 ? 0 : st.st_size;
}

static void on_closed(uv_handle_t *timer)
{
    ((struct fixture *)timer->data)->passed = true;
}

static void on_passed(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, on_closed);
}

static void let_pass(struct fixture *f, uint64_t ms)
{
    uv_timer_t timer = {.data = f};

    f->passed = false;
    uv_timer_init(&f->world->loop, &timer);
    uv_timer_start(&timer, on_passed, ms, 0);
    WAIT(f->world, f->passed);
}

static void they_are_shown_when_they_are_written(void **state)
{
    struct fixture *f = *state;

    start(f);
    say(f, "lost", "a");
    say(f, "lost", "b");
    assert_null(events_after(f->events, 0));
    WAIT(f->world, events_after(f->events, 0));
    assert_true(size(f) > 0);
    assert_int_equal(events_last(f->events), 2);
    assert_string_equal(events_after(f->events, 1)->resource, "b");
    stop(f);
}

static void they_are_there_after_a_restart(void **state)
{
    struct fixture *f = *state;

    start(f);
    say(f, "lost", "a");
    say(f, "lost", "b");
    say(f, "lost", "a");
    stop(f); /* writes them */
    start(f);
    assert_int_equal(events_after(f->events, 0)->id, 2);
    assert_int_equal(events_after(f->events, 2)->id, 3);
    assert_int_equal(events_after(f->events, 2)->times, 2);
    say(f, "lost", "c");
    WAIT(f->world, events_last(f->events) == 4);
    stop(f);
}

static void what_comes_before_the_file_is_read_has_its_turn(void **state)
{
    struct fixture *f = *state;

    start(f);
    say(f, "lost", "a");
    stop(f);
    f->events = events_start(&f->world->loop, f->world->dir, f->told);
    events_watch(f->events, &f->watch);
    for (int i = 0; i < EVENTS_EARLY_MAX + 10; i++)
        say(f, "lost", "early");
    WAIT(f->world, events_last(f->events) == 1 + EVENTS_EARLY_MAX);
    assert_string_equal(events_after(f->events, 0)->resource, "a");
    assert_int_equal(events_after(f->events, 1)->times, EVENTS_EARLY_MAX);
    stop(f);
}

static void one_that_is_stopped_before_it_has_read(void **state)
{
    struct fixture *f = *state;

    f->events = events_start(&f->world->loop, f->world->dir, f->told);
    say(f, "lost", "a");
    f->stopped = false;
    events_stop(f->events, on_stopped, f);
    WAIT(f->world, f->stopped);
    start(f);
    assert_int_equal(events_last(f->events), 1);
    stop(f);
}

/* Torn by a kill, or damaged: what stands before it is read, and it grows from there. */
static void a_torn_end_is_left_out(void **state)
{
    struct fixture *f = *state;
    off_t whole;

    start(f);
    say(f, "lost", "a");
    stop(f);
    whole = size(f);
    start(f);
    say(f, "lost", "b");
    stop(f);
    assert_int_equal(truncate(f->path, size(f) - 1), 0);
    start(f);
    assert_int_equal(events_last(f->events), 1);
    WAIT(f->world, size(f) == whole); /* written anew */
    say(f, "lost", "c");
    stop(f);
    start(f);
    assert_string_equal(events_after(f->events, 1)->resource, "c");
    stop(f);
}

static void one_that_is_taken_away_is_made_anew(void **state)
{
    struct fixture *f = *state;

    start(f);
    say(f, "lost", "a");
    WAIT(f->world, events_last(f->events) == 1);
    assert_int_equal(unlink(f->path), 0);
    say(f, "lost", "b");
    WAIT(f->world, size(f) > 0);
    stop(f);
    start(f);
    assert_string_equal(events_after(f->events, 0)->resource, "a");
    assert_string_equal(events_after(f->events, 1)->resource, "b");
    stop(f);
}

/* Says so on stderr. Descriptors are used up: it is neither taken for lost nor replaced. */
static void one_that_cannot_be_read_for_a_moment_is_read_later(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, none;
    uint64_t began_ms, since_ms;
    off_t whole;

    start(f);
    say(f, "lost", "a");
    stop(f);
    whole = size(f);
    began_ms = boot_now_ms();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    f->events = events_start(&f->world->loop, f->world->dir, f->told);
    events_watch(f->events, &f->watch);
    say(f, "lost", "b");
    let_pass(f, EVENTS_RETRY_MS + EVENTS_RETRY_MS / 2);
    assert_false(events_loaded(f->events));
    assert_non_null(events_trouble(f->events, &since_ms));
    assert_non_null(strstr(events_trouble(f->events, &since_ms), "reading it again"));
    assert_in_range(since_ms, began_ms, began_ms + EVENTS_RETRY_MS / 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(size(f), whole);
    WAIT(f->world, events_last(f->events) == 2);
    assert_null(events_trouble(f->events, &since_ms));
    assert_string_equal(events_after(f->events, 0)->resource, "a");
    assert_string_equal(events_after(f->events, 1)->resource, "b");
    stop(f);
}

/* It is not waited for. */
static void one_that_is_stopped_while_it_is_read_without_a_descriptor_stays_as_it_is(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, none;

    start(f);
    say(f, "lost", "a");
    stop(f);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    f->events = events_start(&f->world->loop, f->world->dir, f->told);
    events_watch(f->events, &f->watch);
    say(f, "lost", "b");
    stop(f);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    start(f);
    assert_string_equal(events_after(f->events, 0)->resource, "a");
    stop(f);
}

/* The same between two readings. */
static void one_that_is_stopped_without_a_descriptor_stays_as_it_is(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, none;

    start(f);
    say(f, "lost", "a");
    stop(f);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    f->events = events_start(&f->world->loop, f->world->dir, f->told);
    events_watch(f->events, &f->watch);
    say(f, "lost", "b");
    let_pass(f, EVENTS_RETRY_MS / 2);
    stop(f);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    start(f);
    assert_string_equal(events_after(f->events, 0)->resource, "a");
    stop(f);
}

static void a_disk_that_does_not_take_them_costs_only_them(void **state)
{
    struct fixture *f = *state;
    uint64_t since_ms;

    start(f);
    assert_null(events_trouble(f->events, &since_ms));
    assert_int_equal(mkdir(f->path, 0700), 0);
    say(f, "lost", "a");
    WAIT(f->world, events_trouble(f->events, &since_ms));
    assert_non_null(strstr(events_trouble(f->events, &since_ms), "are lost with the process"));
    assert_int_equal(events_last(f->events), 1); /* shown all the same */
    say(f, "lost", "b");
    assert_int_equal(events_last(f->events), 2);
    stop(f);
}

/* Each process begins behind what those before it have told, until a disk has it. */
static void ids_told_without_a_disk_are_not_told_again(void **state)
{
    struct fixture *f = *state;
    uint64_t last = 0, since_ms;

    start(f);
    say(f, "lost", "kept");
    stop(f);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkdir(f->path, 0700), 0);
    for (int life = 0; life < 3; life++) {
        start(f);
        for (int i = 0; i < EVENTS_TOLD_BLOCK + 2; i++)
            say(f, "lost", "a");
        WAIT(f->world, events_trouble(f->events, &since_ms) &&
                           events_last(f->events) >= last + EVENTS_TOLD_BLOCK + 2);
        assert_true(events_after(f->events, 0)->id > last);
        last = events_last(f->events);
        stop(f);
    }
    assert_int_equal(rmdir(f->path), 0);
    start(f);
    assert_true(events_last(f->events) >=
                last); /* who has seen the last one is not told to begin anew */
    assert_null(events_after(f->events, 0));
    stop(f); /* with nothing new it is as it was */
    start(f);
    say(f, "lost", "b");
    WAIT(f->world, events_after(f->events, last));
    last = events_last(f->events);
    assert_int_equal(access(f->told, F_OK), -1); /* the file says it now */
    stop(f);
    start(f);
    say(f, "lost", "c");
    WAIT(f->world, events_last(f->events) == last + 1);
    stop(f);
}

/* Nor by one that starts when there is no descriptor to read that with. */
static void ids_told_without_a_disk_are_not_told_again_for_want_of_a_descriptor(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, none;
    uint64_t last, since_ms;

    start(f);
    assert_int_equal(mkdir(f->path, 0700), 0);
    say(f, "lost", "a");
    WAIT(f->world, events_trouble(f->events, &since_ms));
    last = events_last(f->events);
    assert_int_equal(last, 1);
    stop(f);
    assert_int_equal(rmdir(f->path), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    f->events = events_start(&f->world->loop, f->world->dir, f->told);
    events_watch(f->events, &f->watch);
    let_pass(f, EVENTS_RETRY_MS / 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    WAIT(f->world, events_loaded(f->events));
    assert_true(events_last(f->events) >= last);
    stop(f);
}

/* A disk that fails, and takes them again: nothing has to be noted any more. */
static void a_disk_that_takes_them_again_has_all_that_was_told(void **state)
{
    struct fixture *f = *state;
    uint64_t since_ms;

    start(f);
    assert_int_equal(mkdir(f->path, 0700), 0);
    say(f, "lost", "a");
    WAIT(f->world, events_trouble(f->events, &since_ms));
    assert_int_equal(access(f->told, F_OK), 0);
    assert_int_equal(rmdir(f->path), 0);
    WAIT(f->world, !events_trouble(f->events, &since_ms));
    assert_int_equal(access(f->told, F_OK), -1);
    say(f, "lost", "b");
    WAIT(f->world, events_last(f->events) == 2);
    stop(f);
    start(f);
    assert_int_equal(events_last(f->events), 2);
    stop(f);
}

/* ---- a disk that hangs ---- */

static void on_held(uv_work_t *work)
{
    sem_wait(&((struct fixture *)work->data)->go_on);
}

static void on_let_go(uv_work_t *work, int status)
{
    (void)status;
    ((struct fixture *)work->data)->held_len--;
}

/* What the events' timer has a worker write by then is under way, until disk_goes_on(). */
static void disk_hangs(struct fixture *f, uint64_t ms)
{
    sem_init(&f->go_on, 0, 0);
    for (; f->held_len < WORKERS; f->held_len++) {
        f->held[f->held_len].data = f;
        uv_queue_work(&f->world->loop, &f->held[f->held_len], on_held, on_let_go);
    }
    let_pass(f, ms);
}

static void disk_goes_on(struct fixture *f)
{
    for (int i = 0; i < WORKERS; i++)
        sem_post(&f->go_on);
    WAIT(f->world, f->held_len == 0);
    sem_destroy(&f->go_on);
}

/* More than is kept for a write comes while one is under way. */
static void what_comes_while_the_disk_hangs_is_kept(void **state)
{
    struct fixture *f = *state;
    char text[EVENTS_TEXT_BYTES_MAX], resource[32];
    struct event_said said = {.kind = "lost", .resource = resource, .text = text};
    const uint64_t many = EVENTS_BYTES_MAX / EVENTS_TEXT_BYTES_MAX + 1;
    uint64_t first;

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    start(f);
    say(f, "lost", "first");
    disk_hangs(f, 2 * EVENTS_BATCH_MS);
    for (uint64_t i = 0; i < many; i++) {
        snprintf(resource, sizeof resource, "r%llu", (unsigned long long)i);
        events_say(f->events, &said);
    }
    assert_int_equal(events_last(f->events), 0);
    disk_goes_on(f);
    WAIT(f->world, events_last(f->events) == 1 + many);
    first = events_after(f->events, 0)->id; /* of those there is room for */
    stop(f);
    start(f);
    assert_int_equal(events_last(f->events), 1 + many);
    assert_int_equal(events_after(f->events, 0)->id, first);
    stop(f);
}

/* A disk that took nothing takes what is tried again, while the next one comes. */
static void what_comes_while_it_is_tried_again_is_kept(void **state)
{
    struct fixture *f = *state;
    uint64_t since_ms;

    start(f);
    assert_int_equal(mkdir(f->path, 0700), 0);
    say(f, "lost", "a");
    WAIT(f->world, events_trouble(f->events, &since_ms));
    disk_hangs(f, 2 * EVENTS_RETRY_MS);
    assert_int_equal(rmdir(f->path), 0);
    say(f, "lost", "b");
    disk_goes_on(f);
    WAIT(f->world, !events_trouble(f->events, &since_ms));
    WAIT(f->world, events_last(f->events) == 2);
    stop(f);
    start(f);
    assert_int_equal(events_last(f->events), 2);
    assert_string_equal(events_after(f->events, 1)->resource, "b");
    stop(f);
}

/* What comes again and again makes it no longer than it may be. */
static void the_file_is_bounded(void **state)
{
    struct fixture *f = *state;
    char text[EVENTS_TEXT_BYTES_MAX];
    struct event_said said = {.kind = "lost", .resource = "a", .text = text};
    bool rewritten = false;
    off_t before = 0;

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    start(f);
    for (uint64_t i = 1; i <= 20; i++) {
        for (int j = 0; j < 50; j++)
            events_say(f->events, &said);
        WAIT(f->world, events_last(f->events) == 50 * i);
        rewritten = rewritten || size(f) < before;
        before = size(f);
        assert_in_range(before, 1, EVENTS_FILE_SLACK_BYTES + 4096);
    }
    assert_true(rewritten);
    stop(f);
    start(f);
    assert_int_equal(events_after(f->events, 0)->times, 1000);
    stop(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(they_are_shown_when_they_are_written, setup, teardown),
        cmocka_unit_test_setup_teardown(they_are_there_after_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(what_comes_before_the_file_is_read_has_its_turn, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_that_is_stopped_before_it_has_read, setup, teardown),
        cmocka_unit_test_setup_teardown(a_torn_end_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_taken_away_is_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_cannot_be_read_for_a_moment_is_read_later, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            one_that_is_stopped_while_it_is_read_without_a_descriptor_stays_as_it_is, setup,
            teardown),
        cmocka_unit_test_setup_teardown(one_that_is_stopped_without_a_descriptor_stays_as_it_is,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_disk_that_does_not_take_them_costs_only_them, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(ids_told_without_a_disk_are_not_told_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            ids_told_without_a_disk_are_not_told_again_for_want_of_a_descriptor, setup, teardown),
        cmocka_unit_test_setup_teardown(a_disk_that_takes_them_again_has_all_that_was_told, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_comes_while_the_disk_hangs_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(what_comes_while_it_is_tried_again_is_kept, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_file_is_bounded, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
