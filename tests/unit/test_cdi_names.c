/* shim/relay/cdi_names.c: each name once, and every other byte as it came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "cri-proto/lift_marker.h"
#include "shim/relay/cdi_names.h"
#include "shim/relay/limits.h"

/* ---- bytes ---- */

struct bytes {
    uint8_t v[256 * 1024];
    size_t len;
};

static void put_varint(struct bytes *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        to->v[to->len++] = (uint8_t)(value | 0x80);
    to->v[to->len++] = (uint8_t)value;
}

static void put_field(struct bytes *to, unsigned number, const void *value, size_t len)
{
    assert_true(to->len + len + 8 < sizeof to->v);
    put_varint(to, number << 3 | 2);
    put_varint(to, len);
    memcpy(to->v + to->len, value, len);
    to->len += len;
}

static void put_text(struct bytes *to, unsigned number, const char *text)
{
    put_field(to, number, text, strlen(text));
}

/* A config's CDI_devices entry, with a field that is not known. */
static void put_device(struct bytes *config, const char *name)
{
    static struct bytes device;

    device.len = 0;
    put_text(&device, 1, name);
    put_text(&device, 99, "x");
    put_field(config, 17, device.v, device.len);
}

static void put_annotation(struct bytes *config, const char *key, const char *value)
{
    static struct bytes entry;

    entry.len = 0;
    put_text(&entry, 1, key);
    put_text(&entry, 2, value);
    put_field(config, 10, entry.v, entry.len);
}

/* `words`: "@key=a,b" an annotation, "=text" another field, all else a name of the field; in a
 * request with fields around. */
static void request(struct bytes *out, const char *words)
{
    static struct bytes config;
    char copy[512], *rest = copy, *word;

    snprintf(copy, sizeof copy, "%s", words);
    config.len = out->len = 0;
    while ((word = strsep(&rest, " "))) {
        char *value = strchr(word, '=');

        if (*word == '@') {
            *value = '\0';
            put_annotation(&config, word + 1, value + 1);
        } else if (*word == '=') {
            put_text(&config, 98, word + 1);
        } else if (*word) {
            put_device(&config, word);
        }
    }
    put_text(out, 1, "sandbox");
    put_field(out, 2, config.v, config.len);
    put_text(out, 3, "sandbox config");
    put_varint(out, 97 << 3);
    put_varint(out, 300);
}

static struct bytes before, after;
static struct buffer out;
static size_t left_out;

static struct devicemgr_rename renames[2];
static size_t renames_len;

static int once(const V1beta1__ContainerAllocateResponse *options, bool field_read)
{
    const struct cdi_names names = {options, field_read, renames, renames_len};

    left_out = 0;
    return cdi_names_once(before.v, before.len, &names, &out, &left_out);
}

static void assert_becomes(const char *words, const char *expected, bool field_read)
{
    request(&before, words);
    request(&after, expected);
    assert_int_equal(once(NULL, field_read), 1);
    assert_int_equal(buffer_len(&out), after.len);
    assert_memory_equal(buffer_data(&out), after.v, after.len);
    buffer_fini(&out);
}

static void assert_stays(const char *words, bool field_read)
{
    request(&before, words);
    assert_int_equal(once(NULL, field_read), 0);
    assert_int_equal(buffer_len(&out), 0);
    assert_null(out.bytes);
}

/* ---- tests ---- */

static void of_the_field_the_first_stays(void **state)
{
    (void)state;
    assert_becomes("=p v/c=a =q v/c=b v/c=a =r v/c=a", "=p v/c=a =q v/c=b =r", false);
    assert_int_equal(left_out, 2);
    assert_becomes("a a", "a", true);
    assert_stays("a b aa A", false);
    assert_stays("=p =p", false);
    assert_stays("", false);
}

static void of_annotations_the_first_stays(void **state)
{
    (void)state;
    assert_becomes("@cdi.k8s.io/x=a,b,a =p @cdi.k8s.io/y=c,b @k=a,a",
                   "@cdi.k8s.io/x=a,b =p @cdi.k8s.io/y=c @k=a,a", false);
    assert_int_equal(left_out, 2);
    /* one without a name is none that a runtime can read */
    assert_becomes("@cdi.k8s.io/x=a @cdi.k8s.io/y=a =p", "@cdi.k8s.io/x=a =p", false);
    assert_stays("@cdi.k8s.io/x=a,b @cdi.k8s.io=a @x=a,a", false);
}

/* A runtime that does not know the field would start the container without its device. */
static void both_ways_stay_unless_the_runtime_reads_the_field(void **state)
{
    (void)state;
    assert_stays("@cdi.k8s.io/x=a,b a b", false);
    assert_becomes("@cdi.k8s.io/x=a,b =p a b", "=p a b", true);
    assert_becomes("@cdi.k8s.io/x=a,c b a", "@cdi.k8s.io/x=c b a", true);
    assert_becomes("@cdi.k8s.io/x=a a a", "@cdi.k8s.io/x=a a", false);
}

#define MARKER LIFT_MARKER_PREFIX "vendor.com:gpu:g0:c1"

/* What stands for a device here no runtime is to see; it is no repeat. */
static void what_stands_for_a_device_here_goes(void **state)
{
    (void)state;
    assert_becomes("=p " MARKER " v/c=a =q", "=p v/c=a =q", false);
    assert_int_equal(left_out, 0);
    assert_becomes(MARKER " " MARKER, "", true);
    assert_becomes("@cdi.k8s.io/x=v/c=a," MARKER " a", "@cdi.k8s.io/x=v/c=a a", false);
    assert_becomes("@cdi.k8s.io/x=" MARKER " =p", "=p", true);
    assert_becomes(MARKER " a a", "a", false);
    assert_int_equal(left_out, 1);
    assert_stays("@other=" MARKER, true);
}

static void what_is_put_in_front_counts(void **state)
{
    V1beta1__ContainerAllocateResponse options = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    V1beta1__CDIDevice device = V1BETA1__CDIDEVICE__INIT, *devices[] = {&device};
    V1beta1__ContainerAllocateResponse__AnnotationsEntry
        entry = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__ANNOTATIONS_ENTRY__INIT,
        *entries[] = {&entry};

    (void)state;
    device.name = (char *)"a";
    entry.key = (char *)"cdi.k8s.io/plugin";
    entry.value = (char *)"b,d";
    options.n_cdi_devices = options.n_annotations = 1;
    options.cdi_devices = devices;
    options.annotations = entries;
    request(&before, "@cdi.k8s.io/x=b,c a e");
    request(&after, "@cdi.k8s.io/x=c e");
    assert_int_equal(once(&options, false), 1);
    assert_int_equal(left_out, 2);
    assert_int_equal(buffer_len(&out), after.len);
    assert_memory_equal(buffer_data(&out), after.v, after.len);
    buffer_fini(&out);
}

/* Of what the device manager knows. */
static void others_go_on_in_the_place_of_some(void **state)
{
    static const char *const to[] = {"new", "e"};

    (void)state;
    renames[0] = (struct devicemgr_rename){"old", to, 2};
    renames[1] = (struct devicemgr_rename){"gone", NULL, 0};
    renames_len = 2;
    assert_becomes("=x a old gone e f =y", "=x a new e f =y", false);
    assert_int_equal(left_out, 1); /* e */
    assert_becomes("a gone", "a", true);
    assert_int_equal(left_out, 0);
    assert_becomes("@cdi.k8s.io/x=a,old,f @cdi.k8s.io/y=gone @other=old b",
                   "@cdi.k8s.io/x=a,new,e,f @other=old b", false);
    assert_becomes("@cdi.k8s.io/x=a,old b old", "@cdi.k8s.io/x=a b new e", true);
    assert_becomes("old old", "new e", false);
    assert_stays("olden a new", false);
    request(&before, "@cdi.k8s.io/x=a @cdi.k8s.io/x=old c"); /* which of them counts? */
    assert_int_equal(once(NULL, false), -EBADMSG);
    assert_int_equal(buffer_len(&out), 0);
    renames_len = 0;
}

/* The runtime decides what that means. */
static void what_is_not_as_it_should_be_passes(void **state)
{
    struct bytes device = {.len = 0};

    (void)state;
    assert_stays("@cdi.k8s.io/x=a,b @cdi.k8s.io/x=a,a c c", false);
    request(&before, "a a");
    for (size_t len = 0; len < before.len; len++) { /* cut anywhere */
        int r = cdi_names_once(before.v, len, &(struct cdi_names){0}, &out, &left_out);

        assert_in_range(r, 0, 1);
        buffer_fini(&out);
    }
    before.len = 0; /* the field, of another wire type */
    put_varint(&device, 17 << 3);
    put_varint(&device, 1);
    put_field(&before, 2, device.v, device.len);
    assert_int_equal(once(NULL, true), 0);
}

static void a_name_in_a_config_that_comes_in_parts(void **state)
{
    (void)state;
    request(&before, "a b");
    memcpy(before.v + before.len, before.v, before.len); /* protobuf merges them */
    before.len *= 2;
    request(&after, "a b");
    assert_int_equal(once(NULL, false), 1);
    assert_int_equal(left_out, 2);
    assert_memory_equal(buffer_data(&out), after.v, after.len);
    assert_true(buffer_len(&out) < before.len);
    buffer_fini(&out);
}

static void of_too_many_each_passes(void **state)
{
    static struct bytes config;
    char name[16];

    (void)state;
    for (size_t more = 0; more < 2; more++) {
        config.len = before.len = 0;
        for (size_t i = 0; i < RELAY_CDI_NAMES_MAX + more; i++) {
            snprintf(name, sizeof name, "v/c=%zu", i);
            put_device(&config, name);
        }
        put_device(&config, "v/c=0");
        put_field(&before, 2, config.v, config.len);
        assert_int_equal(once(NULL, false), more == 0);
        buffer_fini(&out);
    }
}

static void no_memory(void **state)
{
    static const char *const to[] = {"new"};
    int r = 0;

    (void)state;
    renames[0] = (struct devicemgr_rename){"c", to, 1};
    renames_len = 1;
    request(&before, "@cdi.k8s.io/x=a,b,a,c @cdi.k8s.io/y=a a c a");
    for (unsigned n = 1; r != 1; n++) {
        alloc_fail_at(n);
        alloc_fail_enable(true);
        r = once(NULL, true);
        alloc_fail_enable(false);
        if (r != 1)
            assert_int_equal(r, -ENOMEM);
        if (r != 1)
            assert_null(out.bytes);
    }
    alloc_fail_at(0);
    buffer_fini(&out);
    renames_len = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_field_the_first_stays),
        cmocka_unit_test(of_annotations_the_first_stays),
        cmocka_unit_test(both_ways_stay_unless_the_runtime_reads_the_field),
        cmocka_unit_test(what_stands_for_a_device_here_goes),
        cmocka_unit_test(what_is_put_in_front_counts),
        cmocka_unit_test(others_go_on_in_the_place_of_some),
        cmocka_unit_test(what_is_not_as_it_should_be_passes),
        cmocka_unit_test(a_name_in_a_config_that_comes_in_parts),
        cmocka_unit_test(of_too_many_each_passes),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
