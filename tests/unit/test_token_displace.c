/* shim/relay/token_displace.c: which tokens go, and every other byte as it came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "shim/relay/token_displace.h"

#define KEY_GPU "devices.cri-device-shim/v.com_gpu"
#define KEY_NIC "devices.cri-device-shim/v.com_nic"

/* ---- bytes ---- */

struct bytes {
    uint8_t v[1024];
    size_t len;
};

/* Shorter than 128 bytes. */
static void put_field(struct bytes *to, unsigned number, const void *value, size_t len)
{
    assert_true(len < 128 && to->len + len + 3 < sizeof to->v);
    if (number << 3 > 127) {
        to->v[to->len++] = (uint8_t)((number << 3 | 2) | 0x80);
        to->v[to->len++] = (uint8_t)(number >> 4);
    } else {
        to->v[to->len++] = (uint8_t)(number << 3 | 2);
    }
    to->v[to->len++] = (uint8_t)len;
    memcpy(to->v + to->len, value, len);
    to->len += len;
}

/* A request whose container has these annotations, with fields that are not known around them. */
static void request(struct bytes *out, const char *const *keys, size_t len)
{
    struct bytes config = {.len = 0};

    *out = (struct bytes){.len = 0};
    put_field(&config, 99, "x", 1);
    for (size_t i = 0; i < len; i++) {
        struct bytes entry = {.len = 0};

        put_field(&entry, 1, keys[i], strlen(keys[i]));
        put_field(&entry, 2, "1", 1);
        put_field(&config, 10, entry.v, entry.len);
    }
    put_field(out, 1, "sandbox", 7);
    put_field(out, 2, config.v, config.len);
    put_field(out, 77, "y", 1);
}

static int displace(const struct bytes *from, const char *key, struct buffer *out)
{
    V1beta1__ContainerAllocateResponse options = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    V1beta1__ContainerAllocateResponse__AnnotationsEntry own, *list[] = {&own};

    v1beta1__container_allocate_response__annotations_entry__init(&own);
    own.key = (char *)key;
    own.value = (char *)"2";
    options.annotations = list;
    options.n_annotations = 1;
    return token_displace(from->v, from->len, &options, out);
}

static void a_token_that_there_is_another_of_goes(void **state)
{
    static const char *const both[] = {KEY_GPU, "other"}, *const left[] = {"other"};
    struct bytes from, expected;
    struct buffer out = {0};

    (void)state;
    request(&from, both, 2);
    request(&expected, left, 1);
    assert_int_equal(displace(&from, KEY_GPU, &out), 1);
    assert_int_equal(buffer_len(&out), expected.len);
    assert_memory_equal(buffer_data(&out), expected.v, expected.len);
    buffer_fini(&out);
}

static void all_else_stays(void **state)
{
    static const char *const keys[] = {KEY_NIC, "other"};
    struct buffer out = {0};
    struct bytes from;

    (void)state;
    request(&from, keys, 2);
    assert_int_equal(displace(&from, KEY_GPU, &out), 0);
    assert_int_equal(displace(&from, "other", &out), 0); /* no token: the caller's counts */
    assert_int_equal(buffer_len(&out), 0);
}

static void what_is_malformed_passes_as_it_is(void **state)
{
    static const char *const keys[] = {KEY_GPU};
    struct buffer out = {0};
    struct bytes from;

    (void)state;
    request(&from, keys, 1);
    for (size_t len = from.len; len-- > 0;) { /* at the end of a field it is shorter, and whole */
        struct bytes cut = from;
        int r;

        cut.len = len;
        r = displace(&cut, KEY_GPU, &out);
        assert_true(r == 0 || r == 1);
        if (r == 1)
            buffer_fini(&out);
        assert_int_equal(buffer_len(&out), 0);
    }
}

#define TEST(f) cmocka_unit_test(f)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_that_there_is_another_of_goes),
        TEST(all_else_stays),
        TEST(what_is_malformed_passes_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
