/* shim/events/events.c: events over restarts, disks that do not take them, and who watches. */
#include "tests/unit/test_wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/events/events.h"

struct fixture {
    struct world *world;
    struct events *events;
    struct events_watch watch;
    char path[PATH_MAX], told[PATH_MAX];
    bool stopped;
    unsigned more;
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
        cmocka_unit_test_setup_teardown(a_disk_that_does_not_take_them_costs_only_them, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(ids_told_without_a_disk_are_not_told_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_disk_that_takes_them_again_has_all_that_was_told, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_file_is_bounded, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
