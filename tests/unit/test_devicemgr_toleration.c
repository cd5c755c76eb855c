/* devicemgr/things/toleration.c. */
#include <stdio.h>

#include "devicemgr/things/limits.h"
#include "devicemgr/things/toleration.h"
#include "devicemgr_world.h"

/* "k=v:NoExecute", added at 1000. */
static struct taint taint_of(struct taint_said *said, const char *text)
{
    assert_null(taint_said_read(said, text));
    return (struct taint){
        .key = said->key, .value = said->value, .effect = said->effect, .added_ms = 1000};
}

static uint64_t until(const char *json, const char *text)
{
    struct tolerations tolerations = {0};
    struct text wrong = {0};
    struct taint_said said;
    struct taint taint = taint_of(&said, text);
    uint64_t ms;

    assert_int_equal(tolerations_read(&tolerations, json, &wrong), 0);
    ms = tolerations_until_ms(&tolerations, &taint);
    tolerations_fini(&tolerations);
    return ms;
}

static void it_matches_as_upstream_does(void **state)
{
    static const struct {
        const char *json, *taint;
        uint64_t until_ms;
    } all[] = {
        {"[]", "k:NoExecute", 0},
        {"[{\"operator\":\"Exists\"}]", "k=v:NoExecute", UINT64_MAX}, /* no key: each */
        {"[{\"operator\":\"Exists\"}]", "k:NoSchedule", UINT64_MAX},  /* no effect: each */
        {"[{\"key\":\"k\",\"operator\":\"Exists\"}]", "k=v:NoExecute", UINT64_MAX},
        {"[{\"key\":\"k\",\"operator\":\"Exists\"}]", "l=v:NoExecute", 0},
        {"[{\"key\":\"k\",\"value\":\"v\"}]", "k=v:NoExecute", UINT64_MAX}, /* Equal is meant */
        {"[{\"key\":\"k\",\"value\":\"v\",\"operator\":\"Equal\"}]", "k=w:NoExecute", 0},
        {"[{\"key\":\"k\",\"operator\":\"Equal\"}]", "k:NoExecute", UINT64_MAX},
        {"[{\"key\":\"k\",\"operator\":\"Equal\"}]", "k=v:NoExecute", 0},
        {"[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]", "k:NoExecute", 0},
        {"[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]", "k:NoSchedule", UINT64_MAX},
        {"[{\"key\":\"k\",\"effect\":\"NoExecute\",\"tolerationSeconds\":60}]", "k:NoExecute",
         61000},
        {"[{\"key\":\"k\",\"effect\":\"NoExecute\",\"tolerationSeconds\":0}]", "k:NoExecute", 0},
        {"[{\"key\":\"k\",\"effect\":\"NoExecute\",\"tolerationSeconds\":-5}]", "k:NoExecute", 0},
        {"[{\"key\":\"k\",\"effect\":\"NoExecute\",\"tolerationSeconds\":9223372036854775807}]",
         "k:NoExecute", UINT64_MAX},
        /* seconds of another effect are not looked at */
        {"[{\"key\":\"k\",\"tolerationSeconds\":60}]", "k:NoExecute", UINT64_MAX},
        {"[{\"key\":\"k\",\"effect\":\"NoExecute\",\"tolerationSeconds\":60},"
         "{\"key\":\"k\",\"effect\":\"NoExecute\",\"tolerationSeconds\":30}]",
         "k:NoExecute", 31000},
        {"[{\"key\":\"k\",\"effect\":\"NoExecute\",\"tolerationSeconds\":60},"
         "{\"key\":\"k\",\"effect\":\"NoExecute\"}]",
         "k:NoExecute", UINT64_MAX},
        {"[{\"key\":\"k\",\"effect\":\"NoExecute\",\"tolerationSeconds\":0},"
         "{\"key\":\"k\",\"effect\":\"NoExecute\",\"tolerationSeconds\":30}]",
         "k:NoExecute", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (until(all[i].json, all[i].taint) != all[i].until_ms)
            fail_msg("%s of %s", all[i].json, all[i].taint);
    }
}

static void what_is_none_is_refused_and_changes_nothing(void **state)
{
    static const struct {
        const char *json, *wrong;
    } all[] = {
        {"", "it is no list"},
        {"{}", "it is no list"},
        {"[1]", "toleration 1: it is an object"},
        {"[{\"keys\":\"k\"}]", "toleration 1: it is an object"},
        {"[{}]", "toleration 1: without a key"},
        {"[{\"key\":\"k\"},{\"key\":\"a b\"}]", "toleration 2: its key"},
        {"[{\"key\":\"k\",\"operator\":\"Is\"}]", "toleration 1: its operator"},
        {"[{\"key\":\"k\",\"operator\":\"Exists\",\"value\":\"v\"}]", "toleration 1: with Exists"},
        {"[{\"key\":\"k\",\"value\":\"a b\"}]", "toleration 1: its value"},
        {"[{\"key\":\"k\",\"effect\":\"Never\"}]", "toleration 1: its effect"},
    };
    struct tolerations tolerations = {0};
    struct text wrong = {0};
    char many[TOLERATIONS_BYTES_MAX + 64] = "[";

    (void)state;
    assert_int_equal(tolerations_read(&tolerations, "[{\"key\":\"k\"}]", &wrong), 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        wrong = (struct text){0};
        assert_int_equal(tolerations_read(&tolerations, all[i].json, &wrong), -1);
        assert_int_equal(strncmp(wrong.buf, all[i].wrong, strlen(all[i].wrong)), 0);
        assert_int_equal(tolerations.len, 1);
    }
    for (size_t i = 0; i < TOLERATIONS_MAX; i++)
        strcat(many, "{\"key\":\"k\"},");
    strcat(many, "{\"key\":\"k\"}]");
    wrong = (struct text){0};
    assert_int_equal(tolerations_read(&tolerations, many, &wrong), -1);
    assert_string_equal(wrong.buf, "toleration 17: there are too many of them");
    memset(many, ' ', sizeof many - 1);
    many[0] = '[';
    many[sizeof many - 2] = ']';
    many[sizeof many - 1] = '\0';
    assert_int_equal(tolerations_read(&tolerations, many, &wrong), -1);
    tolerations_fini(&tolerations);
}

static void a_container_may_be_called_so(void **state)
{
    (void)state;
    assert_true(tolerations_is_annotation("devices.cri-device-shim/tolerations", " []"));
    assert_false(tolerations_is_annotation("devices.cri-device-shim/tolerations", GPU "=1"));
    assert_false(tolerations_is_annotation("devices.cri-device-shim/main", "[]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_matches_as_upstream_does),
        cmocka_unit_test(what_is_none_is_refused_and_changes_nothing),
        cmocka_unit_test(a_container_may_be_called_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
