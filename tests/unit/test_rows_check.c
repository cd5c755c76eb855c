/* shim/core/rows_check.c: whether the checkpoint's rows make sense, each and together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "shim/core/rows_check.h"

#define GPU "vendor.com/gpu"
#define RECORDS_MAX 160

struct rows {
    struct devicemgr *scratch;
    struct devicemgr_record v[RECORDS_MAX];
    size_t len;
    struct rows_found found;
};

static int setup(void **state)
{
    static const struct devicemgr_resource_settings shared = {.name = "shared.com/gpu"};
    static const struct devicemgr_settings settings = {
        .boot_id = "", .resources = &shared, .resources_len = 1};
    struct rows *rows = calloc(1, sizeof *rows);

    rows->scratch = devicemgr_new(&settings, NULL, NULL);
    *state = rows;
    return 0;
}

static int teardown(void **state)
{
    struct rows *rows = *state;

    for (size_t i = 0; i < rows->len; i++) {
        for (size_t k = 0; k < 3; k++)
            free((char *)rows->v[i].key[k]);
        free((void *)rows->v[i].value);
    }
    rows_found_fini(&rows->found);
    devicemgr_free(rows->scratch);
    free(rows);
    return 0;
}

static void add(struct rows *rows, enum devicemgr_record_kind kind, const char *a, const char *b,
                const char *c, const ProtobufCMessage *message)
{
    struct devicemgr_record *record = &rows->v[rows->len++];
    uint8_t *bytes = malloc(protobuf_c_message_get_packed_size(message) + 1);

    *record = (struct devicemgr_record){.kind = kind, .key = {strdup(a), strdup(b), strdup(c)}};
    record->value_bytes = protobuf_c_message_pack(message, bytes);
    record->value = bytes;
}

static void add_allocation(struct rows *rows, const char *uid, const char *container,
                           const char *resource, const char *id)
{
    Checkpoint__V1__Allocation row = CHECKPOINT__V1__ALLOCATION__INIT;

    row.pod_uid = (char *)uid;
    row.container = (char *)container;
    row.resource = (char *)resource;
    row.device_ids = (char **)&id;
    row.n_device_ids = 1;
    add(rows, DEVICEMGR_RECORD_ALLOCATION, uid, container, resource, &row.base);
}

/* Of a resource of `[[resource]] dra`; `looks`: with admin access. */
static void add_claimed(struct rows *rows, const char *uid, const char *id, const char *claim,
                        bool looks)
{
    Checkpoint__V1__Allocation row = CHECKPOINT__V1__ALLOCATION__INIT;
    Checkpoint__V1__ByClaim by = CHECKPOINT__V1__BY_CLAIM__INIT, *bys = &by;

    by.device_id = (char *)id;
    by.claim_uid = (char *)claim;
    by.looks = looks;
    row.pod_uid = (char *)uid;
    row.container = (char *)"main";
    row.resource = (char *)GPU;
    row.device_ids = (char **)&id;
    row.n_device_ids = 1;
    row.claimed = true;
    row.by_claims = &bys;
    row.n_by_claims = 1;
    add(rows, DEVICEMGR_RECORD_ALLOCATION, uid, "main", GPU, &row.base);
}

static void add_pod(struct rows *rows, const char *uid, const char *name)
{
    Checkpoint__V1__Pod row = CHECKPOINT__V1__POD__INIT;

    row.uid = (char *)uid;
    row.namespace_ = (char *)"ns";
    row.name = (char *)name;
    add(rows, DEVICEMGR_RECORD_POD, uid, "", "", &row.base);
}

static void add_resource(struct rows *rows, const char *name)
{
    Checkpoint__V1__Resource row = CHECKPOINT__V1__RESOURCE__INIT;

    row.name = (char *)name;
    row.endpoint = (char *)"a.sock";
    add(rows, DEVICEMGR_RECORD_RESOURCE, name, "", "", &row.base);
}

static void check(struct rows *rows)
{
    rows_check(rows->scratch, rows->v, rows->len, &rows->found);
}

static void what_makes_sense_is_no_finding(void **state)
{
    struct rows *rows = *state;

    add_resource(rows, GPU);
    add_pod(rows, "u1", "web");
    add_allocation(rows, "u1", "init", GPU, "g0");
    add_allocation(rows, "u1", "main", GPU, "g0"); /* handed on in the pod */
    add_allocation(rows, "u2", "main", GPU, "g1");
    add_allocation(rows, "u3", "main", "other.com/nic", "g0"); /* of another resource */
    check(rows);
    assert_int_equal(rows->found.total, 0);
}

static void what_makes_no_sense_is_told(void **state)
{
    struct rows *rows = *state;

    add_allocation(rows, "u1", "main", GPU, "g0");
    free((char *)rows->v[0].key[0]);
    rows->v[0].key[0] = strdup("u2"); /* its key says another */
    add_allocation(rows, "u3", "main", "gpu", "g0");
    add_pod(rows, "", "web");
    check(rows);
    assert_int_equal(rows->found.total, 3);
    assert_int_equal(rows->found.against, 3);
    assert_int_equal(rows->found.v[0].kind, ROWS_FINDING_ROW);
    assert_string_equal(rows->found.v[0].text,
                        "the row of allocation (u2 main " GPU ") makes no sense");
    assert_string_equal(rows->found.v[2].text, "the row of pod (  ) makes no sense");
}

static void a_device_of_two_pods_is_told(void **state)
{
    struct rows *rows = *state;

    add_pod(rows, "u1", "web");
    add_allocation(rows, "u2", "main", GPU, "g0");
    add_allocation(rows, "u1", "main", GPU, "g0");
    check(rows);
    assert_int_equal(rows->found.total, 1);
    assert_int_equal(rows->found.against, 0); /* it may be so */
    assert_int_equal(rows->found.v[0].kind, ROWS_FINDING_DEVICE);
    assert_non_null(strstr(rows->found.v[0].text,
                           "device g0 of resource " GPU " is in the rows of pod ns/web (uid u1"));
}

static void a_shared_device_may_be_of_many(void **state)
{
    struct rows *rows = *state;

    add_resource(rows, "shared.com/gpu");
    add_allocation(rows, "u1", "main", "shared.com/gpu", "g0");
    add_allocation(rows, "u2", "main", "shared.com/gpu", "g0");
    check(rows);
    assert_int_equal(rows->found.total, 0);
}

/* Its devices are of all that name it, and with admin access one looks at any. */
static void who_shares_a_claim_is_no_finding(void **state)
{
    struct rows *rows = *state;

    add_claimed(rows, "u1", "g0", "c1", false);
    add_claimed(rows, "u2", "g0", "c1", false);
    add_claimed(rows, "u3", "g0", "c2", true);
    check(rows);
    assert_int_equal(rows->found.total, 0);
}

static void a_device_of_two_claims_is_told(void **state)
{
    struct rows *rows = *state;

    add_claimed(rows, "u1", "g0", "c1", false);
    add_claimed(rows, "u2", "g0", "c2", true); /* it is between them */
    add_claimed(rows, "u3", "g0", "c3", false);
    check(rows);
    assert_int_equal(rows->found.total, 1);
    assert_non_null(strstr(rows->found.v[0].text, "(uid u1, container main)"));
    assert_non_null(strstr(rows->found.v[0].text, "(uid u3, container main)"));
}

/* Whoever of a pod has it. */
static void a_pod_is_told_once(void **state)
{
    struct rows *rows = *state;

    add_allocation(rows, "u1", "init", GPU, "g0");
    add_allocation(rows, "u1", "main", GPU, "g0");
    add_allocation(rows, "u2", "init", GPU, "g0");
    add_allocation(rows, "u2", "main", GPU, "g0");
    check(rows);
    assert_int_equal(rows->found.total, 1);
}

static void only_the_first_are_told_one_by_one(void **state)
{
    struct rows *rows = *state;

    for (size_t i = 0; i < ROWS_FINDINGS_MAX + 7; i++)
        add_pod(rows, "", "web");
    check(rows);
    assert_int_equal(rows->found.len, ROWS_FINDINGS_MAX);
    assert_int_equal(rows->found.total, ROWS_FINDINGS_MAX + 7);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_makes_sense_is_no_finding),
        TEST(what_makes_no_sense_is_told),
        TEST(a_device_of_two_pods_is_told),
        TEST(a_shared_device_may_be_of_many),
        TEST(who_shares_a_claim_is_no_finding),
        TEST(a_device_of_two_claims_is_told),
        TEST(a_pod_is_told_once),
        TEST(only_the_first_are_told_one_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
