/* shim/dra/kubelet_claims.c on a real file system. */
#include "tests/unit/rpc_fixture.h"
#include "tests/unit/waiting.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/dra/kubelet_claims.h"

/* As the kubelet writes it: JSON within JSON. */
#define FILE_OF(claims)                                                                            \
    "{\"Data\":\"{\\\"kind\\\":\\\"DRACheckpoint\\\",\\\"ClaimInfoStateList\\\":[" claims          \
    "]}\",\"Checksum\":1}"
#define CLAIM_OF(uid)                                                                              \
    "{\\\"ClaimUID\\\":\\\"" uid                                                                   \
    "\\\",\\\"ClaimName\\\":\\\"gpu\\\",\\\"PodUIDs\\\":{\\\"p-1\\\":{}}}"
#define CLAIM_WITH(uid, state) "{\\\"ClaimUID\\\":\\\"" uid "\\\",\\\"DriverState\\\":{" state "}}"
#define DEVICES_OF(driver, devices) "\\\"" driver "\\\":{\\\"Devices\\\":" devices "}"

#define DRIVER "gpu.example.com"

struct answer {
    bool came;
    int found;
};

static void on_done(void *user, int found)
{
    struct answer *answer = user;

    answer->came = true;
    answer->found = found;
}

static int ask(struct world *world, const char *uid)
{
    struct answer answer = {0};
    char registry[64];

    snprintf(registry, sizeof registry, "%s/plugins_registry", world->dir);
    kubelet_claims_ask(&world->loop, registry, DRIVER, uid, on_done, &answer);
    assert_false(answer.came);
    WAIT(world, answer.came);
    return answer.found;
}

static const char *path_of(const struct world *world)
{
    static char path[64];

    snprintf(path, sizeof path, "%s/dra_manager_state", world->dir);
    return path;
}

static void write_file(const struct world *world, const char *text)
{
    FILE *file = fopen(path_of(world), "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void what_is_in_it_is_found(void **state)
{
    struct world *world = *state;

    assert_int_equal(ask(world, "c-1"), KUBELET_CLAIM_NONE); /* there is no file */
    write_file(world, FILE_OF());
    assert_int_equal(ask(world, "c-1"), KUBELET_CLAIM_NONE);
    write_file(world, FILE_OF(CLAIM_OF("c-12") "," CLAIM_OF("ac-1")));
    assert_int_equal(ask(world, "c-1"), KUBELET_CLAIM_NONE);
    assert_int_equal(ask(world, "c-12"), KUBELET_CLAIM_BEGUN);
    assert_int_equal(ask(world, "ac-1"), KUBELET_CLAIM_BEGUN);
    write_file(world, FILE_OF(CLAIM_OF("c-12") "," CLAIM_OF("c-1")));
    assert_int_equal(ask(world, "c-1"), KUBELET_CLAIM_BEGUN);
    assert_int_equal(ask(world, ""), KUBELET_CLAIM_NONE);
    unlink(path_of(world));
}

/* By this driver: one claim may have devices of more. */
static void so_is_whether_it_is_prepared(void **state)
{
    struct world *world = *state;

    write_file(world, FILE_OF(CLAIM_OF("c-2") "," CLAIM_WITH("c-1", DEVICES_OF(DRIVER, "null"))));
    assert_int_equal(ask(world, "c-1"), KUBELET_CLAIM_BEGUN);
    write_file(world,
               FILE_OF(CLAIM_WITH(
                   "c-1", DEVICES_OF("nic.example.com", "[{}]") "," DEVICES_OF(
                              DRIVER, "null")) "," CLAIM_WITH("c-2", DEVICES_OF(DRIVER, "[{}]"))));
    assert_int_equal(ask(world, "c-1"), KUBELET_CLAIM_BEGUN);
    assert_int_equal(ask(world, "c-2"), KUBELET_CLAIM_PREPARED);
    unlink(path_of(world));
}

/* Of another form, one that ends in the midst of something. */
static void whatever_its_form(void **state)
{
    struct world *world = *state;

    write_file(world, "c-1");
    assert_int_equal(ask(world, "c-1"), KUBELET_CLAIM_NAMED);
    write_file(world, "{\"claims\": {\"c-1\": {}");
    assert_int_equal(ask(world, "c-1"), KUBELET_CLAIM_NAMED);
    write_file(world, "{\"Data\":\"[\\\"c-1\\\"]\"}");
    assert_int_equal(ask(world, "c-1"), KUBELET_CLAIM_NAMED);
    write_file(world, FILE_OF("3," CLAIM_WITH("c-1", "3")));
    assert_int_equal(ask(world, "c-1"), KUBELET_CLAIM_NAMED);
    write_file(world, "");
    assert_int_equal(ask(world, "c-1"), KUBELET_CLAIM_NONE);
    unlink(path_of(world));
}

static void what_cannot_be_read_is_said(void **state)
{
    struct world *world = *state;

    assert_int_equal(mkdir(path_of(world), 0700), 0);
    assert_true(ask(world, "c-1") < 0);
    assert_int_equal(rmdir(path_of(world)), 0);
    assert_int_equal(mkfifo(path_of(world), 0600), 0);
    assert_true(ask(world, "c-1") < 0); /* nor is it waited for */
    assert_int_equal(unlink(path_of(world)), 0);
    write_file(world, "");
    assert_int_equal(truncate(path_of(world), KUBELET_CLAIMS_BYTES_MAX + 1), 0);
    assert_int_equal(ask(world, "c-1"), -EFBIG);
    assert_int_equal(unlink(path_of(world)), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_in_it_is_found),
        TEST(so_is_whether_it_is_prepared),
        TEST(whatever_its_form),
        TEST(what_cannot_be_read_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
