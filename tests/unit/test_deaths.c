/* shim/deaths.c: what processes that crash leave for the next one. Each is a child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/boot_clock.h"
#include "shim/deaths.h"

enum job {
    POISON = 100,
    BESIDE = 200,
};

static char dir[32], file[64], mark[80];

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/cds-deaths-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(file, sizeof file, "%s/deaths", dir);
    snprintf(mark, sizeof mark, "%s" DEATHS_MARK_SUFFIX, file);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(file);
    unlink(mark);
    return rmdir(dir);
}

/* A process that does that. It dies by `number` if that is not 0, and else ends with what it
 * says. */
static int run(int (*work)(void), int number)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        static const struct rlimit none = {0};

        setrlimit(RLIMIT_CORE, &none);
        deaths_watch(file);
        _exit(work());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (number) {
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), number);
        return 0;
    }
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int crash_at_poison(void)
{
    deaths_hold(BESIDE);
    deaths_enter(POISON);
    abort();
}

static int crash_behind_it(void)
{
    uint64_t before = deaths_enter(POISON);

    deaths_enter(before);
    abort();
}

static int crash_holding(void)
{
    deaths_hold(POISON);
    deaths_hold(BESIDE);
    deaths_hold(POISON);
    deaths_release(POISON);
    abort();
}

static int crash_after_release(void)
{
    deaths_hold(POISON);
    deaths_release(POISON);
    deaths_release(BESIDE); /* never held */
    abort();
}

/* By the watchdog or for its memory, say. */
static int kill_at_poison(void)
{
    deaths_enter(POISON);
    return kill(getpid(), SIGKILL);
}

static int kill_at_the_outer_one(void)
{
    uint64_t before;

    deaths_enter(POISON);
    before = deaths_enter(BESIDE);
    deaths_enter(before);
    return kill(getpid(), SIGKILL);
}

static int kill_behind_it(void)
{
    uint64_t before = deaths_enter(POISON);

    deaths_enter(before);
    return kill(getpid(), SIGKILL);
}

static int kill_holding(void)
{
    deaths_hold(POISON);
    return kill(getpid(), SIGKILL);
}

/* A checkpoint may be long to read. */
static int kill_at_a_file(void)
{
    deaths_enter(DEATHS_CHECKPOINT);
    return kill(getpid(), SIGKILL);
}

static int crash_behind_another(void)
{
    uint64_t before = deaths_enter(POISON);

    deaths_enter(before);
    deaths_enter(BESIDE);
    abort();
}

/* How often the next process knows of, at most 9 of each: POISON's, and ten times BESIDE's. */
static int count(void)
{
    int n[2] = {0};

    for (int i = 0; i < 2; i++) {
        while (n[i] < 9 && deaths_of(i ? BESIDE : POISON, (unsigned)n[i] + 1))
            n[i]++;
    }
    return n[0] + 10 * n[1];
}

static int forget_and_count(void)
{
    deaths_forget();
    return count();
}

static void deaths_at_a_job_add_up(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(run(count, 0), 0);
    for (int n = 1; n <= 3; n++) {
        run(crash_at_poison, SIGABRT);
        assert_int_equal(run(count, 0), n); /* BESIDE was not at it */
    }
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(run(forget_and_count, 0), 0);
    assert_int_equal(run(count, 0), 0);
}

static void whoever_is_under_way_may_have_been_it(void **state)
{
    (void)state;
    run(crash_holding, SIGABRT);
    assert_int_equal(run(count, 0), 11);
}

static void what_is_over_is_not(void **state)
{
    (void)state;
    run(crash_behind_it, SIGABRT);
    run(crash_after_release, SIGABRT);
    assert_int_equal(run(count, 0), 0);
    assert_int_equal(access(file, F_OK), -1);
}

static void a_message_is_to_blame_whoever_ends_it(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n++) {
        run(n == 2 ? kill_at_the_outer_one : kill_at_poison, SIGKILL);
        assert_int_equal(run(count, 0), n);
    }
    assert_int_equal(run(count, 0), 3);
    run(crash_at_poison, SIGABRT); /* one death */
    assert_int_equal(run(count, 0), 4);
    run(crash_behind_another, SIGABRT);
    assert_int_equal(run(count, 0), 14);
}

/* Whoever kills a process that waits does not say that its work is bad. */
static void kill_9_between_messages_does_not_count_nor_at_a_file(void **state)
{
    static int (*const lives[])(void) = {kill_behind_it, kill_holding, kill_at_a_file};

    (void)state;
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        run(lives[i], SIGKILL);
        assert_int_equal(run(count, 0), 0);
        assert_int_equal(access(file, F_OK), -1);
    }
}

/* Somebody has put something else in its place. */
static void without_room_for_the_mark_all_goes_on(void **state)
{
    (void)state;
    assert_int_equal(symlink("/dev/full", mark), 0);
    run(kill_at_poison, SIGKILL); /* the link is removed first */
    assert_int_equal(run(count, 0), 1);
    assert_int_equal(mkdir(mark, 0700), 0);
    run(kill_at_poison, SIGKILL);
    assert_int_equal(run(count, 0), 1);
    run(crash_at_poison, SIGABRT);
    assert_int_equal(run(count, 0), 2);
    assert_int_equal(rmdir(mark), 0);
}

static int said[2], asked[2];

static int stay_at_poison(void)
{
    char c;

    deaths_enter(POISON);
    if (write(said[1], "", 1) != 1 || read(asked[0], &c, 1) != 1)
        return 1;
    return kill(getpid(), SIGKILL);
}

static int count_while_another_is_at_it(void)
{
    int n;

    deaths_enter(BESIDE); /* which is marked nowhere */
    n = count();
    deaths_enter(DEATHS_NO_JOB);
    return n;
}

/* What it is at is no death, and its mark stays for who comes behind it. */
static void one_that_is_started_beside_another_leaves_its_mark(void **state)
{
    pid_t child;
    char c;

    (void)state;
    assert_int_equal(pipe(said) | pipe(asked), 0);
    child = fork();
    if (child == 0) {
        close(asked[1]); /* or it would not see the test's end */
        deaths_watch(file);
        _exit(stay_at_poison());
    }
    assert_int_equal(read(said[0], &c, 1), 1);
    assert_int_equal(run(count_while_another_is_at_it, 0), 0);
    assert_int_equal(access(mark, F_OK), 0);
    assert_int_equal(write(asked[1], "", 1), 1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(run(count, 0), 1);
    for (int i = 0; i < 2; i++) {
        close(said[i]);
        close(asked[i]);
    }
}

/* Deaths so long ago, the oldest first; 0 ends them. */
static void note(const uint64_t *ago_ms)
{
    FILE *out = fopen(file, "w");

    for (; *ago_ms; ago_ms++) {
        const uint64_t one[2] = {boot_now_ms() - *ago_ms, POISON};

        assert_int_equal(fwrite(one, sizeof one, 1, out), 1);
    }
    assert_int_equal(fclose(out), 0);
}

static void those_that_are_far_apart_or_long_ago_do_not_count(void **state)
{
    static const uint64_t apart[] = {200000, 100000, 30000, 1, 0};
    static const uint64_t old[] = {DEATHS_REMEMBERED_MS + 3000, DEATHS_REMEMBERED_MS + 2000, 0};
    static const uint64_t lately[] = {DEATHS_REMEMBERED_MS - 20000, DEATHS_REMEMBERED_MS - 40000,
                                      0};

    (void)state;
    note(apart);
    assert_int_equal(run(count, 0), 2);
    note(lately);
    assert_int_equal(run(count, 0), 2);
    note(old);
    assert_int_equal(run(count, 0), 0);
    assert_int_equal(access(file, F_OK), -1); /* it does not grow for ever */
}

/* As long as they come. */
static void the_file_is_bounded(void **state)
{
    const off_t bytes_max = (off_t)(2 * DEATHS_HELD_MAX * 2 * sizeof(uint64_t));
    static uint64_t many[2 * DEATHS_HELD_MAX + 100];
    struct stat st;

    (void)state;
    for (size_t i = 0; i < sizeof many / sizeof *many - 1; i++)
        many[i] = 1000;
    note(many);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(count, 0), 9);
        assert_int_equal(stat(file, &st), 0);
        assert_int_equal(st.st_size, bytes_max);
    }
    run(crash_at_poison, SIGABRT);
    assert_int_equal(run(count, 0), 9);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_size, bytes_max);
}

/* Neither what was half written, nor what another boot or program left. */
static void a_file_that_makes_no_sense_is_none(void **state)
{
    static const char *const texts[] = {"x", "no notes at all, but a text of some length", ""};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *out = fopen(file, "w");

        assert_true(out && fputs(texts[i], out) >= 0 && fclose(out) == 0);
        assert_int_equal(run(count, 0), 0);
    }
    unlink(file);
    assert_int_equal(mkdir(file, 0700), 0);
    assert_int_equal(run(count, 0), 0);
    run(crash_at_poison, SIGABRT);
    assert_int_equal(rmdir(file), 0);
}

static uint64_t digest(const char *text)
{
    return deaths_digest((const uint8_t *)text, strlen(text));
}

static void a_message_that_is_sent_again_has_its_digest(void **state)
{
    (void)state;
    assert_int_equal(digest("app=web;tier=1"), digest("tier=1;app=web"));
    assert_int_not_equal(digest("app=web;tier=1"), digest("app=web;tier=2"));
    assert_int_not_equal(digest("aab"), digest("abb"));
    assert_true(digest("") > DEATHS_SNAPSHOT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(deaths_at_a_job_add_up),
        TEST(whoever_is_under_way_may_have_been_it),
        TEST(what_is_over_is_not),
        TEST(a_message_is_to_blame_whoever_ends_it),
        TEST(kill_9_between_messages_does_not_count_nor_at_a_file),
        TEST(without_room_for_the_mark_all_goes_on),
        TEST(one_that_is_started_beside_another_leaves_its_mark),
        TEST(those_that_are_far_apart_or_long_ago_do_not_count),
        TEST(the_file_is_bounded),
        TEST(a_file_that_makes_no_sense_is_none),
        TEST(a_message_that_is_sent_again_has_its_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
