/* shim/registry/elsewhere.c: drivers that register with the kubelet itself. */
#include "tests/unit/registering.h"
#include "tests/unit/waiting.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/registry/elsewhere.h"

struct fixture {
    struct world *world;
    char directory[64];
    struct elsewhere *elsewhere;
    struct registering driver, other;
    char events[512]; /* "driver NAME ENDPOINT SERVICES;" "gone;" */
    uint64_t number, gone;
    uid_t uid;
    bool unwanted; /* nobody wants to know */
    bool stopped;
};

static void note(struct fixture *f, const char *text)
{
    strncat(f->events, text, sizeof f->events - strlen(f->events) - 1);
}

static bool on_driver(void *user, uint64_t number, const char *name, const char *endpoint,
                      const char *const *services, size_t services_len, uid_t uid)
{
    struct fixture *f = user;

    f->number = number;
    f->uid = uid;
    note(f, "driver ");
    note(f, name);
    note(f, " ");
    note(f, endpoint);
    for (size_t i = 0; i < services_len; i++) {
        note(f, " ");
        note(f, services[i]);
    }
    note(f, ";");
    return !f->unwanted;
}

static void on_gone(void *user, uint64_t number)
{
    struct fixture *f = user;

    f->gone = number;
    note(f, "gone;");
}

static const struct elsewhere_ops OPS = {.driver = on_driver, .gone = on_gone};

#define CAME "driver gpu.example.com /run/dra.sock v1.DRAPlugin;"

static void begin_at(struct fixture *f, void **state, uint64_t from_ms)
{
    memset(f, 0, sizeof *f);
    f->world = *state;
    snprintf(f->directory, sizeof f->directory, "%s/kubelet", f->world->dir);
    assert_int_equal(mkdir(f->directory, 0755), 0);
    f->driver = f->other = (struct registering){.type = "DRAPlugin",
                                                .name = "gpu.example.com",
                                                .endpoint = "/run/dra.sock",
                                                .versions = {"v1.DRAPlugin"},
                                                .versions_len = 1};
    f->elsewhere = elsewhere_start(&f->world->loop, f->directory, from_ms, &OPS, f);
}

static void begin(struct fixture *f, void **state)
{
    begin_at(f, state, 0);
}

static void serve(struct fixture *f, struct registering *plugin, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", f->directory, name);
    registering_serve(plugin, f->world, path);
}

static void on_stopped(void *user)
{
    *(bool *)user = true;
}

static void stop(struct fixture *f)
{
    elsewhere_stop(f->elsewhere, on_stopped, &f->stopped);
    WAIT(f->world, f->stopped);
    registering_close(&f->driver);
    registering_close(&f->other);
    assert_int_equal(rmdir(f->directory), 0);
}

static void one_that_is_there_and_one_that_comes(void **state)
{
    struct fixture f;
    unsigned asked;

    begin(&f, state);
    serve(&f, &f.driver, "gpu-reg.sock");
    elsewhere_ask(f.elsewhere, true);
    WAIT(f.world, *f.events);
    assert_string_equal(f.events, CAME);
    assert_true(f.number & ELSEWHERE_NUMBER_BIT);
    assert_int_equal(f.uid, getuid());
    assert_int_equal(f.driver.notified, 0); /* that is the kubelet's to do */
    asked = f.driver.asked;                 /* once, unless it was slow to answer */
    f.other.name = "nic.example.com";
    serve(&f, &f.other, "nic-reg.sock");
    WAIT(f.world, strcmp(f.events, CAME "driver nic.example.com /run/dra.sock v1.DRAPlugin;") == 0);
    registering_close(&f.other);
    WAIT(f.world, f.gone == f.number);
    assert_int_equal(f.driver.asked, asked);
    stop(&f);
}

static void nobody_is_asked_in_vain(void **state)
{
    struct fixture f;

    begin(&f, state);
    serve(&f, &f.driver, "gpu-reg.sock");
    elsewhere_ask(f.elsewhere, true);
    elsewhere_ask(f.elsewhere, false);
    world_settle(f.world);
    assert_int_equal(f.driver.asked, 0);
    elsewhere_ask(f.elsewhere, true);
    WAIT(f.world, strcmp(f.events, CAME) == 0);
    elsewhere_ask(f.elsewhere, false); /* what was known holds no longer */
    WAIT(f.world, strcmp(f.events, CAME "gone;") == 0);
    assert_int_equal(f.gone, f.number);
    serve(&f, &f.other, "other-reg.sock");
    elsewhere_ask(f.elsewhere, true); /* all are, anew */
    WAIT(f.world, f.driver.asked == 2 && f.other.asked == 1);
    stop(&f);
}

static void nor_before_its_time(void **state)
{
    struct world *w = *state;
    uint64_t from_ms = uv_now(&w->loop) + 100;
    struct fixture f;

    begin_at(&f, state, from_ms);
    serve(&f, &f.driver, "gpu-reg.sock");
    elsewhere_ask(f.elsewhere, true);
    WAIT(f.world, f.driver.asked > 0);
    assert_true(uv_now(&w->loop) >= from_ms);
    WAIT(f.world, strcmp(f.events, CAME) == 0);
    stop(&f);
}

static void what_is_ours_is_not_asked(void **state)
{
    struct fixture f;

    begin(&f, state);
    serve(&f, &f.other, "dra-cri-device-shim-gpu.example.com-12345678.sock");
    serve(&f, &f.driver, "gpu-reg.sock");
    elsewhere_ask(f.elsewhere, true);
    WAIT(f.world, strcmp(f.events, CAME) == 0);
    registering_close(&f.other);
    serve(&f, &f.other, "cri-device-shim-0123456789abcdef.sock");
    WAIT(f.world, (registering_close(&f.driver), f.gone));
    serve(&f, &f.driver, "gpu-2-reg.sock");
    WAIT(f.world, f.driver.asked == 2);
    assert_int_equal(f.other.asked, 0);
    stop(&f);
}

/* As long as it is asked whether any has moved. */
static void one_that_nobody_knows_is_asked_again_once_somebody_does(void **state)
{
    struct fixture f;

    begin(&f, state);
    f.unwanted = true;
    serve(&f, &f.driver, "gpu-reg.sock");
    elsewhere_ask(f.elsewhere, true);
    WAIT(f.world, strcmp(f.events, CAME) == 0);
    f.unwanted = false;
    elsewhere_known(f.elsewhere, "nic.example.com");
    world_settle(f.world);
    assert_string_equal(f.events, CAME);
    elsewhere_known(f.elsewhere, "gpu.example.com");
    WAIT(f.world, strcmp(f.events, CAME CAME) == 0);
    elsewhere_known(f.elsewhere, "gpu.example.com"); /* and it is told */
    world_settle(f.world);
    assert_string_equal(f.events, CAME CAME);
    registering_close(&f.driver);
    WAIT(f.world, f.gone == f.number);
    stop(&f);
}

/* Nobody was told that it is there. */
static void nor_does_one_go_that_nobody_knows(void **state)
{
    struct fixture f;

    begin(&f, state);
    f.unwanted = true;
    serve(&f, &f.driver, "gpu-reg.sock");
    elsewhere_ask(f.elsewhere, true);
    WAIT(f.world, strcmp(f.events, CAME) == 0);
    elsewhere_ask(f.elsewhere, false);
    world_settle(f.world);
    elsewhere_known(f.elsewhere, "gpu.example.com"); /* nobody asks */
    world_settle(f.world);
    assert_string_equal(f.events, CAME);
    stop(&f);
}

/* Such as a CSI driver's, and what makes no sense. */
static void what_is_no_driver_is_left_alone(void **state)
{
    struct fixture f;

    begin(&f, state);
    f.other.type = "CSIPlugin";
    serve(&f, &f.other, "csi-reg.sock");
    elsewhere_ask(f.elsewhere, true);
    WAIT(f.world, f.other.asked == 1);
    registering_close(&f.other);
    f.other.type = "DRAPlugin";
    f.other.name = "No Driver";
    serve(&f, &f.other, "none-reg.sock");
    WAIT(f.world, f.other.asked == 2);
    serve(&f, &f.driver, "gpu-reg.sock");
    WAIT(f.world, *f.events);
    assert_string_equal(f.events, CAME);
    stop(&f);
}

/* A kubelet that has not started yet; the directory is its own to make. */
static void a_directory_that_is_not_there_is_waited_for(void **state)
{
    struct fixture f;

    begin(&f, state);
    assert_int_equal(rmdir(f.directory), 0);
    elsewhere_ask(f.elsewhere, true);
    world_settle(f.world);
    assert_int_equal(mkdir(f.directory, 0755), 0);
    serve(&f, &f.driver, "gpu-reg.sock");
    WAIT(f.world, strcmp(f.events, CAME) == 0);
    stop(&f);
}

/* Nothing tells of it, as of a mount. */
static void they_are_looked_for_where_a_link_leads(void **state)
{
    char cwd[PATH_MAX], new[64], old[64];
    struct fixture f;

    begin(&f, state);
    memcpy(new, f.directory, sizeof new);
    snprintf(f.directory, sizeof f.directory, "/proc/self/cwd");
    snprintf(old, sizeof old, "%s/old", f.world->dir);
    assert_int_equal(mkdir(old, 0755), 0);
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(chdir(old), 0);
    elsewhere_ask(f.elsewhere, true);
    world_settle(f.world);
    assert_int_equal(chdir(new), 0);
    serve(&f, &f.driver, "gpu-reg.sock");
    WAIT(f.world, strcmp(f.events, CAME) == 0);
    registering_close(&f.driver);
    assert_int_equal(chdir(cwd), 0);
    assert_int_equal(rmdir(old), 0);
    memcpy(f.directory, new, sizeof new);
    stop(&f);
}

static void without_a_kubelet_s_directory(void **state)
{
    struct fixture f = {.world = *state};

    f.elsewhere = elsewhere_start(&f.world->loop, "", 0, &OPS, &f);
    elsewhere_ask(f.elsewhere, true);
    world_settle(f.world);
    elsewhere_stop(f.elsewhere, on_stopped, &f.stopped);
    WAIT(f.world, f.stopped);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_that_is_there_and_one_that_comes),
        TEST(nobody_is_asked_in_vain),
        TEST(nor_before_its_time),
        TEST(what_is_ours_is_not_asked),
        TEST(one_that_nobody_knows_is_asked_again_once_somebody_does),
        TEST(nor_does_one_go_that_nobody_knows),
        TEST(what_is_no_driver_is_left_alone),
        TEST(a_directory_that_is_not_there_is_waited_for),
        TEST(they_are_looked_for_where_a_link_leads),
        TEST(without_a_kubelet_s_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
