/* shim/settings.c: a file, and what is used in its place when it is wrong. Those tests say so. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/level_file.h"
#include "shim/log.h"
#include "shim/settings.h"

struct fixture {
    uv_loop_t loop;
    char dir[32], file[64], copy[96];
    struct settings settings;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->dir, "/tmp/cds-settings-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    snprintf(f->file, sizeof f->file, "%s/c.toml", f->dir);
    snprintf(f->copy, sizeof f->copy, "%s/" SETTINGS_LAST_GOOD, f->dir);
    uv_loop_init(&f->loop);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    int err;

    settings_fini(&f->settings);
    unlink(f->file);
    unlink(f->copy);
    err = rmdir(f->dir);
    err = uv_loop_close(&f->loop) || err;
    free(f);
    return err;
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* The file has this text; "DIR" in it is the fixture's directory. */
static void write_file(struct fixture *f, const char *text)
{
    const char *dir = strstr(text, "DIR");
    char whole[512];

    if (dir)
        snprintf(whole, sizeof whole, "%.*s%s%s", (int)(dir - text), text, f->dir, dir + 3);
    put(f->file, dir ? whole : text);
}

static void load(struct fixture *f)
{
    settings_fini(&f->settings);
    assert_int_equal(settings_load(f->file, &f->settings), 0);
}

static void keep(struct fixture *f)
{
    settings_keep(&f->settings, &f->loop);
    uv_run(&f->loop, UV_RUN_DEFAULT);
}

static void a_file_that_works_is_kept(void **state)
{
    struct fixture *f = *state;
    struct stat first, second;
    char text[128];
    FILE *copy;

    write_file(f, "state_dir = \"DIR\"\ndrain = \"7s\"\n");
    load(f);
    assert_string_equal(f->settings.degraded, "");
    assert_int_equal(access(f->copy, F_OK), -1);
    keep(f);
    assert_int_equal(stat(f->copy, &first), 0);
    assert_int_equal(first.st_mode & 0777, 0600);
    copy = fopen(f->copy, "r");
    text[fread(text, 1, sizeof text - 1, copy)] = '\0';
    fclose(copy);
    assert_string_equal(text, f->settings.text);
    load(f);
    keep(f);
    assert_int_equal(stat(f->copy, &second), 0);
    assert_int_equal(first.st_ino, second.st_ino); /* not written anew */
    write_file(f, "state_dir = \"DIR\"\ndrain = \"8s\"\n");
    load(f);
    keep(f);
    put(f->file, "no toml");
    assert_int_equal(stat(f->copy, &second), 0);
    assert_int_not_equal(first.st_ino, second.st_ino);
}

static void one_that_is_wrong_is_answered_with_the_last_good_one(void **state)
{
    static const char *const wrong[] = {
        "state_dir = \"DIR\"\ndrain = \"9 parsecs\"\n",
        "# a comment\nlisten = \"/unclosed\nstate_dir\t=\t'DIR' # here\n",
        "state_dir=\"DIR\"\n[no table\n",
        "state_dir_of_old = 1\nstate_dir = \"DIR\"",
    };
    struct fixture *f = *state;

    write_file(f, "state_dir = \"DIR\"\ndrain = \"7s\"\n");
    load(f);
    keep(f);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct stat before, after;
        char words[256];

        write_file(f, wrong[i]);
        load(f);
        assert_int_equal(f->settings.config.drain_ms, 7000);
        snprintf(words, sizeof words,
                 "%s is wrong; the settings are those of the last start that worked, %s", f->file,
                 f->copy);
        assert_string_equal(f->settings.degraded, words);
        stat(f->copy, &before);
        keep(f);
        assert_int_equal(stat(f->copy, &after), 0);
        assert_int_equal(before.st_ino, after.st_ino);
    }
}

/* What the copy is in is found by a line of the file that can be one. */
static void a_directory_that_it_does_not_name(void **state)
{
    static const char *const wrong[] = {
        "x = 1\n[plugins]\nstate_dir = \"DIR\"\n",
        "x = 1\nstate_dir = \"relative\"\n",
        "x = 1\nstate_dir = \"DIR\n",
        "x = 1\nstate_dir =\n\"DIR\"\n",
        "x = 1\nstate_dir\n= \"DIR\"\n",
        "x = 1\nstate_dir = DIR\n",
    };
    struct fixture *f = *state;

    write_file(f, "state_dir = \"DIR\"\ndrain = \"7s\"\n");
    load(f);
    keep(f);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_file(f, wrong[i]);
        load(f);
        assert_int_not_equal(f->settings.config.drain_ms, 7000);
        assert_non_null(strstr(f->settings.degraded, "is wrong"));
    }
}

static void a_copy_that_is_wrong_is_not_used(void **state)
{
    struct fixture *f = *state;

    put(f->copy, "drain = 5\n");
    write_file(f, "state_dir = \"DIR\"\nx = 1\n");
    load(f);
    assert_non_null(strstr(f->settings.degraded, "is wrong"));
    assert_null(strstr(f->settings.degraded, f->copy));
}

static void nowhere_to_keep_it_is_told(void **state)
{
    struct fixture *f = *state;

    write_file(f, "state_dir = \"DIR/none\"\n");
    load(f);
    keep(f); /* says so */
    assert_int_equal(access(f->copy, F_OK), -1);
}

static void what_changes_things_wants_the_file_itself(void **state)
{
    struct fixture *f = *state;
    struct config config;

    write_file(f, "state_dir = \"DIR\"\n");
    load(f);
    keep(f);
    assert_int_equal(settings_load_strict(f->file, &config), 0);
    assert_string_equal(config.state_dir, f->dir);
    config_fini(&config);
    write_file(f, "state_dir = \"DIR\"\nx = 1\n");
    assert_int_equal(settings_load_strict(f->file, &config), -1);
}

static void the_service_manager_is_told(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct settings_reloaded told;
    char said[1024] = "";

    snprintf(address.sun_path, sizeof address.sun_path, "%s/n", f->dir);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    write_file(f, "state_dir = \"DIR\"\n");
    load(f);
    settings_tell_ready(&f->settings);
    assert_true(recv(fd, said, sizeof said - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(said, "READY=1\nSTATUS=");
    keep(f);
    write_file(f, "state_dir = \"DIR\"\nx = 1\n");
    load(f);
    settings_tell_ready(&f->settings);
    assert_true(recv(fd, said, sizeof said - 1, MSG_DONTWAIT) > 0);
    assert_non_null(strstr(said, "READY=1\nSTATUS=degraded: /"));
    /* What it was told last it shows until it is told otherwise. */
    write_file(f, "state_dir = \"DIR\"\n");
    assert_int_equal(settings_reload(&f->settings, &told), 0);
    settings_tell_ready(&f->settings);
    memset(said, 0, sizeof said);
    assert_true(recv(fd, said, sizeof said - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(said, "READY=1\nSTATUS=");
    unsetenv("NOTIFY_SOCKET");
    close(fd);
    unlink(address.sun_path);
}

/* Nobody knows whether it is wrong: nothing is used in its place. It says so. */
static void a_file_that_no_descriptor_is_left_for(void **state)
{
    struct fixture *f = *state;
    struct rlimit limit, none;

    write_file(f, "state_dir = \"DIR\"\n");
    load(f);
    keep(f);
    settings_fini(&f->settings);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_true(settings_load(f->file, &f->settings) < 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_string_equal(f->settings.degraded, "");
    load(f);
    assert_string_equal(f->settings.degraded, "");
}

/* ---- the level that an operator set ---- */

static void on_held(uv_work_t *work)
{
    pthread_mutex_lock(work->data);
    pthread_mutex_unlock(work->data);
}

static void on_let_go(uv_work_t *work, int status)
{
    (void)work, (void)status;
}

static void on_level(void *user, int level)
{
    *(int *)user = level;
}

/* A disk that hangs keeps nobody waiting: what is read is written after it was asked for. */
static void a_level_is_read_in_the_worker(void **state)
{
    struct fixture *f = *state;
    pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
    uv_work_t held = {.data = &disk};
    int level = -1;
    char path[96];

    pthread_mutex_lock(&disk);
    uv_queue_work(&f->loop, &held, on_held, on_let_go);
    level_file_read(&f->loop, f->dir, on_level, &level);
    assert_int_equal(level, -1);
    snprintf(path, sizeof path, "%s/" LEVEL_FILE, f->dir);
    put(path, "debug\n");
    pthread_mutex_unlock(&disk);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(level, LOG_LEVEL_DEBUG);

    /* Says so. */
    put(path, "loud\n");
    level_file_read(&f->loop, f->dir, on_level, &level);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(level, 0);
    unlink(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_that_works_is_kept),
        TEST(a_file_that_no_descriptor_is_left_for),
        TEST(one_that_is_wrong_is_answered_with_the_last_good_one),
        TEST(a_directory_that_it_does_not_name),
        TEST(a_copy_that_is_wrong_is_not_used),
        TEST(nowhere_to_keep_it_is_told),
        TEST(what_changes_things_wants_the_file_itself),
        TEST(the_service_manager_is_told),
        TEST(a_level_is_read_in_the_worker),
    };

    assert_int_equal(setenv("UV_THREADPOOL_SIZE", "1", 1), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
