/* shim/registry/handshake.c with a plugin's registration socket. */
#include "tests/unit/registering.h"
#include "tests/unit/waiting.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/registry/handshake.h"
#include "shim/registry/limits.h"

enum reaction { ANSWER_YES, ANSWER_NO, ANSWER_LATER, LEAVE, STOP };

struct fixture {
    struct world *world;
    struct registering plugin;
    char path[64];
    int file;
    struct handshake *handshake;
    enum reaction reaction;
    unsigned asked, refused;
    char type[32], name[64], endpoint[64], versions[128];
    uid_t uid;
};

static void on_asked(void *user, const Pluginregistration__PluginInfo *info, uid_t uid)
{
    struct fixture *f = user;

    f->asked++;
    f->uid = uid;
    snprintf(f->type, sizeof f->type, "%s", info->type);
    snprintf(f->name, sizeof f->name, "%s", info->name);
    snprintf(f->endpoint, sizeof f->endpoint, "%s", info->endpoint);
    f->versions[0] = '\0';
    for (size_t i = 0; i < info->n_supported_versions; i++) {
        strcat(f->versions, info->supported_versions[i]);
        strcat(f->versions, ";");
    }
    if (f->reaction == ANSWER_YES)
        handshake_answer(f->handshake, NULL);
    else if (f->reaction == ANSWER_NO)
        handshake_answer(f->handshake, "no such luck");
    else if (f->reaction == LEAVE)
        handshake_leave(f->handshake);
    else if (f->reaction == STOP)
        handshake_stop(f->handshake);
}

static void on_refused(void *user)
{
    ((struct fixture *)user)->refused++;
}

static const struct handshake_ops OPS = {.asked = on_asked, .refused = on_refused};

static void prepare(struct fixture *f, void **state)
{
    memset(f, 0, sizeof *f);
    f->world = *state;
    snprintf(f->path, sizeof f->path, "%s/gpu-reg.sock", f->world->dir);
    f->plugin = (struct registering){.type = "DRAPlugin",
                                     .name = "gpu.example.com",
                                     .endpoint = "/run/dra.sock",
                                     .versions = {"v1.DRAPlugin", "v1beta1.DRAPlugin"},
                                     .versions_len = 2};
}

static void dial(struct fixture *f)
{
    f->file = open(f->path, O_PATH | O_CLOEXEC);
    assert_true(f->file >= 0);
    f->handshake = handshake_start(&f->world->loop, f->path, f->file, &OPS, f);
    assert_int_equal(f->asked, 0);
}

static void begin(struct fixture *f)
{
    registering_serve(&f->plugin, f->world, f->path);
    dial(f);
}

static void stop(struct fixture *f)
{
    if (f->reaction != STOP)
        handshake_stop(f->handshake);
    registering_close(&f->plugin);
    world_settle(f->world);
    close(f->file);
}

static void asks_and_tells(void **state)
{
    struct fixture f;

    prepare(&f, state);
    begin(&f);
    WAIT(f.world, f.plugin.notified == 1);
    assert_string_equal(f.type, "DRAPlugin");
    assert_string_equal(f.name, "gpu.example.com");
    assert_string_equal(f.endpoint, "/run/dra.sock");
    assert_string_equal(f.versions, "v1.DRAPlugin;v1beta1.DRAPlugin;");
    assert_int_equal(f.uid, getuid());
    assert_true(f.plugin.registered);
    assert_string_equal(f.plugin.error, "");
    world_settle(f.world);
    assert_int_equal(f.plugin.asked, 1);
    stop(&f);
}

static void an_answer_may_come_later(void **state)
{
    struct fixture f;

    prepare(&f, state);
    f.reaction = ANSWER_LATER;
    begin(&f);
    WAIT(f.world, f.asked == 1);
    handshake_answer(f.handshake, NULL);
    WAIT(f.world, f.plugin.notified == 1);
    assert_true(f.plugin.registered);
    stop(&f);
}

static void one_that_is_refused_is_told_why_and_asked_again(void **state)
{
    struct fixture f;

    prepare(&f, state);
    f.reaction = ANSWER_NO;
    begin(&f); /* logs a warning */
    WAIT(f.world, f.plugin.notified == 1);
    assert_false(f.plugin.registered);
    assert_string_equal(f.plugin.error, "no such luck");
    f.reaction = ANSWER_YES;
    WAIT(f.world, f.plugin.registered);
    assert_int_equal(f.plugin.asked, 2);
    assert_int_equal(f.refused, 0);
    stop(&f);
}

/* What it did not take is not so: it is not registered, and asked again. */
static void one_that_does_not_take_its_success_is_not_registered(void **state)
{
    struct fixture f;

    prepare(&f, state);
    f.plugin.notify_code = RPC_INTERNAL;
    begin(&f); /* logs a warning */
    WAIT(f.world, f.refused == 1);
    f.plugin.notify_code = RPC_OK;
    WAIT(f.world, f.plugin.notified == 2);
    world_settle(f.world);
    assert_int_equal(f.refused, 1);
    assert_int_equal(f.asked, 2);
    stop(&f);
}

static void one_that_went_before_its_answer_is_not_registered(void **state)
{
    struct fixture f;

    prepare(&f, state);
    f.reaction = ANSWER_LATER;
    begin(&f);
    WAIT(f.world, f.asked == 1);
    registering_close(&f.plugin);
    world_settle(f.world);
    handshake_answer(f.handshake, NULL);
    assert_int_equal(f.refused, 0);
    WAIT(f.world, f.refused == 1); /* logs a warning */
    stop(&f);
}

static void an_error_of_get_info_is_not_told(void **state)
{
    struct fixture f;

    prepare(&f, state);
    f.plugin.info_code = RPC_UNKNOWN;
    begin(&f); /* logs a warning */
    WAIT(f.world, f.plugin.asked == 2);
    assert_int_equal(f.asked, 0);
    assert_int_equal(f.plugin.notified, 0);
    f.plugin.info_code = RPC_OK;
    WAIT(f.world, f.plugin.registered);
    stop(&f);
}

static void one_that_does_not_answer_has_a_second(void **state)
{
    struct fixture f;
    uint64_t began_ms;

    prepare(&f, state);
    f.plugin.mute = true;
    uv_update_time(&f.world->loop);
    began_ms = uv_now(&f.world->loop);
    begin(&f); /* logs a warning */
    WAIT(f.world, f.plugin.asked == 2);
    assert_true(uv_now(&f.world->loop) - began_ms >= HANDSHAKE_INFO_MS + HANDSHAKE_AGAIN_MS_MIN);
    f.plugin.mute = false;
    WAIT(f.world, f.plugin.registered);
    stop(&f);
}

static void an_answer_that_is_too_long_is_not_taken(void **state)
{
    struct fixture f;

    prepare(&f, state);
    f.plugin.padding = REGISTRY_RECEIVED_BYTES_MAX;
    begin(&f); /* logs a warning */
    WAIT(f.world, f.plugin.asked == 2);
    assert_int_equal(f.asked, 0);
    f.plugin.padding = 0;
    WAIT(f.world, f.plugin.registered);
    stop(&f);
}

/* Its file is there before it listens. */
static void one_that_listens_later_is_found(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct fixture f;
    int fd;

    prepare(&f, state);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(address.sun_path, f.path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    dial(&f);
    world_settle(f.world);
    assert_int_equal(listen(fd, 8), 0);
    /* It is connected to: its backlog has somebody. */
    WAIT(f.world, (wait_turn(f.world), poll(&(struct pollfd){fd, POLLIN, 0}, 1, 0)) == 1);
    close(fd);
    stop(&f);
    assert_int_equal(unlink(f.path), 0);
}

static void one_that_is_left_is_told_nothing(void **state)
{
    struct fixture f;

    prepare(&f, state);
    f.reaction = LEAVE;
    begin(&f);
    WAIT(f.world, f.asked == 1);
    world_settle(f.world);
    assert_int_equal(f.plugin.notified, 0);
    stop(&f);
}

static void may_be_stopped_at_any_time(void **state)
{
    struct fixture f;

    prepare(&f, state); /* before it has dialled */
    begin(&f);
    stop(&f);

    prepare(&f, state); /* while it asks */
    f.plugin.mute = true;
    begin(&f);
    WAIT(f.world, f.plugin.asked == 1);
    stop(&f);

    prepare(&f, state); /* from inside */
    f.reaction = STOP;
    begin(&f);
    WAIT(f.world, f.asked == 1);
    stop(&f);

    prepare(&f, state); /* while it tells */
    begin(&f);
    WAIT(f.world, f.asked == 1);
    stop(&f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(asks_and_tells),
        TEST(an_answer_may_come_later),
        TEST(one_that_is_refused_is_told_why_and_asked_again),
        TEST(one_that_does_not_take_its_success_is_not_registered),
        TEST(one_that_went_before_its_answer_is_not_registered),
        TEST(an_error_of_get_info_is_not_told),
        TEST(one_that_does_not_answer_has_a_second),
        TEST(an_answer_that_is_too_long_is_not_taken),
        TEST(one_that_listens_later_is_found),
        TEST(one_that_is_left_is_told_nothing),
        TEST(may_be_stopped_at_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
