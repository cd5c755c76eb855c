/* shim/relay/mount_redirect.c: where a path is, and the wire rewritten byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "cri-proto/cri_v1.pb-c.h"
#include "h2_script.h"
#include "shim/relay/limits.h"
#include "shim/relay/mount_redirect.h"

#define FROM "/var/lib/kubelet/device-plugins"
#define TO "/var/lib/cri-device-shim/device-plugins"
#define TEXT(text) ((char[]){text}) /* protobuf-c wants char * */

/* ---- paths ---- */

static enum mount_place place(const char *path)
{
    return mount_place(path, strlen(path), FROM);
}

static void the_directory_itself_in_any_spelling(void **state)
{
    (void)state;
    assert_int_equal(place(FROM), MOUNT_AT);
    assert_int_equal(place(FROM "/"), MOUNT_AT);
    assert_int_equal(place(FROM "///"), MOUNT_AT);
    assert_int_equal(place(FROM "/."), MOUNT_AT);
    assert_int_equal(place(FROM "/./"), MOUNT_AT);
    assert_int_equal(place("//var//lib/./kubelet/././device-plugins"), MOUNT_AT);
    assert_int_equal(mount_place("/a/b", 4, "//a/./b//"), MOUNT_AT);
    assert_int_equal(mount_place("/.", 2, "/"), MOUNT_AT);
}

static void what_holds_it_and_what_lies_in_it(void **state)
{
    static const char *const above[] = {
        "/", "//", "/.", "/var", "/var/", "/var/lib/kubelet", "/var/lib/kubelet/", "/var/./lib"};
    static const char *const below[] = {FROM "/kubelet.sock", FROM "//x/y/", FROM "/./..."};

    (void)state;
    for (size_t i = 0; i < sizeof above / sizeof *above; i++)
        assert_int_equal(place(above[i]), MOUNT_ABOVE);
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        assert_int_equal(place(below[i]), MOUNT_BELOW);
}

static void what_is_elsewhere(void **state)
{
    static const char *const paths[] = {
        "",
        ".",
        "var/lib/kubelet/device-plugins",
        FROM "2",
        "/var/lib/kubelet/device-plugin",
        "/var/lib/kubelet/pods",
        "/var/lib/kubelet/device-plugins2/x",
        "/Var",
        FROM "/..",
        FROM "/x/../",
        "/var/../var",
        "/var/lib/kubelet/x/../device-plugins",
        "/..",
    };

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_int_equal(place(paths[i]), MOUNT_ELSEWHERE);
    /* a NUL is a byte like any other */
    assert_int_equal(mount_place(FROM "\0", sizeof FROM, FROM), MOUNT_ELSEWHERE);
}

/* ---- the wire by hand ---- */

/* A field with a value of fewer than 128 bytes. */
static void put_text(struct buffer *out, uint8_t tag, const void *value, size_t len)
{
    uint8_t head[2] = {tag, (uint8_t)len};

    h2_put(out, head, sizeof head);
    h2_put(out, value, len);
}

static void put_string(struct buffer *out, uint8_t tag, const char *value)
{
    put_text(out, tag, value, strlen(value));
}

/* The length in two bytes more than it needs. */
static void put_wordy(struct buffer *out, uint8_t tag, const struct buffer *value)
{
    uint8_t head[4] = {tag, (uint8_t)(buffer_len(value) | 0x80), 0x80 | buffer_len(value) >> 7, 0};

    h2_put(out, head, sizeof head);
    h2_put(out, buffer_data(value), buffer_len(value));
}

static void put_inner(struct buffer *out, uint8_t tag, struct buffer *inner)
{
    uint8_t head[3] = {tag, (uint8_t)(buffer_len(inner) | 0x80), (uint8_t)(buffer_len(inner) >> 7)};

    if (buffer_len(inner) < 128)
        put_text(out, tag, buffer_data(inner), buffer_len(inner));
    else {
        h2_put(out, head, sizeof head);
        h2_put(out, buffer_data(inner), buffer_len(inner));
    }
    buffer_fini(inner);
}

enum { CONFIG = 2 << 3 | 2, MOUNTS = 7 << 3 | 2, HOST_PATH = 2 << 3 | 2 };

/* A request whose one mount is `mount`, which is used up. */
static void put_request(struct buffer *out, struct buffer *mount)
{
    struct buffer config = {0};

    put_inner(&config, MOUNTS, mount);
    put_inner(out, CONFIG, &config);
}

static int redirect(const struct buffer *in, struct buffer *out)
{
    size_t len = buffer_len(in);
    uint8_t *exact = malloc(len + !len); /* so that a sanitizer sees a read behind it */
    int r;

    assert_non_null(exact);
    if (len > 0)
        memcpy(exact, buffer_data(in), len);
    r = mount_redirect(exact, len, FROM, TO, out);
    free(exact);
    return r;
}

static void becomes(struct buffer *in, struct buffer *expected)
{
    struct buffer out = {0};

    assert_int_equal(redirect(in, &out), 1);
    assert_int_equal(buffer_len(&out), buffer_len(expected));
    assert_memory_equal(buffer_data(&out), buffer_data(expected), buffer_len(expected));
    buffer_fini(&out);
    buffer_fini(in);
    buffer_fini(expected);
}

static void stays(struct buffer *in)
{
    struct buffer out = {0};

    assert_int_equal(redirect(in, &out), 0);
    assert_int_equal(buffer_len(&out), 0);
    assert_null(out.bytes);
    buffer_fini(in);
}

static void only_the_path_and_the_lengths_change(void **state)
{
    /* unknown fields of every type that is in use, around and in between */
    static const char VARINT[] = "\xf8\x7f\xff\xff\x01",
                      FIXED64[] = "\xf9\x7f"
                                  "12345678",
                      BYTES[] = "\xfa\x7f\x03"
                                "abc",
                      GROUP[] = "\xfb\x7f\x08\x01\xfc\x7f",
                      FIXED32[] = "\xfd\x7f"
                                  "1234";
    struct buffer in = {0}, expected = {0};

    (void)state;
    for (int after = 0; after <= 1; after++) {
        struct buffer *out = after ? &expected : &in;
        struct buffer mount = {0}, config = {0}, other = {0};

        put_string(&mount, 1 << 3 | 2, "/in/the/container");
        h2_put(&mount, VARINT, 5);
        put_string(&mount, HOST_PATH, after ? TO : FROM "/");
        h2_put(&mount, "\x20\x01\x28\x02", 4); /* selinux_relabel, propagation */
        h2_put(&mount, FIXED64, 10);
        put_string(&other, HOST_PATH, "/dev");
        h2_put(&config, BYTES, 6);
        put_wordy(&config, MOUNTS, &other); /* its length stays as it is */
        put_inner(&config, MOUNTS, &mount);
        h2_put(&config, FIXED32, 6);
        h2_put(&config, GROUP, 6);
        put_string(out, 1 << 3 | 2, "box");
        put_inner(out, CONFIG, &config);
        h2_put(out, VARINT, 5);
        buffer_fini(&other);
    }
    becomes(&in, &expected);
}

static void every_mount_of_every_config(void **state)
{
    struct buffer in = {0}, expected = {0};

    (void)state;
    for (int after = 0; after <= 1; after++) {
        struct buffer *out = after ? &expected : &in;

        for (int i = 0; i < 2; i++) {
            struct buffer config = {0};

            for (int j = 0; j < 2; j++) {
                struct buffer mount = {0};

                put_string(&mount, HOST_PATH, after ? TO : FROM);
                put_inner(&config, MOUNTS, &mount);
            }
            put_inner(out, CONFIG, &config);
        }
    }
    becomes(&in, &expected);
}

static void of_two_paths_the_last_one_counts(void **state)
{
    struct buffer in = {0}, expected = {0}, mount = {0};

    (void)state;
    put_string(&mount, HOST_PATH, FROM);
    put_string(&mount, HOST_PATH, "/dev");
    put_request(&in, &mount);
    stays(&in);
    put_string(&mount, HOST_PATH, FROM);
    put_string(&mount, HOST_PATH, FROM);
    put_request(&in, &mount);
    put_string(&mount, HOST_PATH, FROM);
    put_string(&mount, HOST_PATH, TO);
    put_request(&expected, &mount);
    becomes(&in, &expected);
}

static void the_length_around_is_said_in_as_few_bytes_as_it_needs(void **state)
{
    struct buffer in = {0}, expected = {0}, mount = {0}, config = {0}, path = {0};

    (void)state;
    h2_put(&path, FROM, strlen(FROM));
    put_wordy(&mount, HOST_PATH, &path);
    put_wordy(&config, MOUNTS, &mount);
    put_wordy(&in, CONFIG, &config);
    buffer_fini(&path);
    buffer_fini(&mount);
    buffer_fini(&config);
    put_string(&mount, HOST_PATH, TO);
    put_request(&expected, &mount);
    becomes(&in, &expected);
}

static void nothing_to_change(void **state)
{
    static const char *const paths[] = {"/var/lib/kubelet", "/",    FROM "/kubelet.sock",
                                        FROM "x",           "/dev", ""};
    struct buffer in = {0};

    (void)state;
    stays(&in);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct buffer mount = {0};

        put_string(&mount, HOST_PATH, paths[i]);
        put_request(&in, &mount);
        stays(&in);
    }
    /* in the container, and in what is not the config */
    for (int i = 0; i < 2; i++) {
        struct buffer mount = {0}, config = {0};

        put_string(&mount, i == 0 ? 1 << 3 | 2 : HOST_PATH, FROM);
        put_inner(&config, MOUNTS, &mount);
        put_inner(&in, i == 0 ? CONFIG : 3 << 3 | 2, &config);
        stays(&in);
    }
}

/* Of one that is said twice the last one counts. */
static void what_is_mounted_read_only_stays(void **state)
{
    static const struct {
        const char *readonly;
        size_t len;
        bool stays;
    } cases[] = {{"\x18\x01", 2, true},         {"\x18\x80\x02", 3, true},
                 {"\x18\x00", 2, false},        {"\x18\x80\x00", 3, false},
                 {"\x18\x00\x18\x01", 4, true}, {"\x18\x01\x18\x00", 4, false}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int first = 0; first <= 1; first++) {
            struct buffer in = {0}, expected = {0};

            for (int after = 0; after <= 1; after++) {
                struct buffer mount = {0};

                if (first)
                    h2_put(&mount, cases[i].readonly, cases[i].len);
                put_string(&mount, HOST_PATH, after ? TO : FROM);
                if (!first)
                    h2_put(&mount, cases[i].readonly, cases[i].len);
                put_request(after ? &expected : &in, &mount);
            }
            if (cases[i].stays) {
                stays(&in);
                buffer_fini(&expected);
            } else {
                becomes(&in, &expected);
            }
        }
    }
}

/* `tail` behind what else would be redirected, on each of the three levels. */
static void stays_with(const char *tail, size_t len)
{
    for (int level = 0; level < 3; level++) {
        struct buffer in = {0}, config = {0}, mount = {0};

        put_string(&mount, HOST_PATH, FROM);
        if (level == 2)
            h2_put(&mount, tail, len);
        put_inner(&config, MOUNTS, &mount);
        if (level == 1)
            h2_put(&config, tail, len);
        put_inner(&in, CONFIG, &config);
        if (level == 0)
            h2_put(&in, tail, len);
        stays(&in);
    }
}

static void what_is_not_well_formed_stays(void **state)
{
    struct buffer in = {0}, mount = {0};

    (void)state;
    stays_with("\x80", 1);         /* half a tag */
    stays_with("\xf8\x7f", 2);     /* no value */
    stays_with("\xf8\x7f\x80", 3); /* half a value */
    stays_with("\xf9\x7f"
               "1234567",
               9); /* half a fixed64 */
    stays_with("\xfd\x7f"
               "123",
               5); /* half a fixed32 */
    stays_with("\xfa\x7f\x04"
               "abc",
               6);                                                          /* a length too large */
    stays_with("\xfa\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);     /* 2^64 - 1 */
    stays_with("\xfa\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 12);     /* and over */
    stays_with("\xf8\x7f\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 13); /* eleven bytes */
    stays_with("\x02\x00", 2);                                              /* field number 0 */
    stays_with("\x80\x80\x80\x80\x40\x00", 6);                              /* and 2^31 */
    stays_with("\xfb\x7f", 2); /* a group without an end */
    stays_with("\xfe\x7f", 2); /* no such type */
    /* our own fields, of another type */
    put_string(&mount, HOST_PATH, FROM);
    h2_put(&mount, "\x10\x01", 2);
    put_request(&in, &mount);
    stays(&in);
    put_string(&mount, HOST_PATH, FROM);
    put_request(&in, &mount);
    h2_put(&in, "\x10\x01", 2);
    stays(&in);
}

/* Cut anywhere it is another message, or none; nothing is read behind its end. */
static void every_cut(void **state)
{
    struct buffer in = {0}, mount = {0};

    (void)state;
    put_string(&mount, HOST_PATH, FROM);
    put_request(&in, &mount);
    while (buffer_len(&in) > 0) {
        struct buffer out = {0};

        in.end--;
        assert_int_equal(redirect(&in, &out), 0);
    }
    buffer_fini(&in);
}

static void a_real_request_is_the_same_but_for_the_path(void **state)
{
    Runtime__V1__CreateContainerRequest request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
    Runtime__V1__ContainerConfig config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
    Runtime__V1__Mount mount = RUNTIME__V1__MOUNT__INIT;
    Runtime__V1__Mount *mounts[] = {&mount};
    uint8_t before[512], after[512];
    struct buffer out = {0};
    size_t len;

    (void)state;
    mount.container_path = TEXT(FROM);
    mount.host_path = TEXT(FROM);
    mount.selinux_relabel = true;
    mount.propagation = RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_HOST_TO_CONTAINER;
    config.mounts = mounts;
    config.n_mounts = 1;
    request.config = &config;
    request.pod_sandbox_id = TEXT("box");
    len = runtime__v1__create_container_request__pack(&request, before);
    mount.host_path = TEXT(TO);
    assert_int_equal(mount_redirect(before, len, FROM, TO, &out), 1);
    len = runtime__v1__create_container_request__pack(&request, after);
    assert_int_equal(buffer_len(&out), len);
    assert_memory_equal(buffer_data(&out), after, len);
    buffer_fini(&out);
}

/* A short path, many times, and a long one in its place. */
static void it_must_not_grow_over_the_limit(void **state)
{
    char to[4096];
    struct buffer config = {0}, in = {0}, out = {0};

    (void)state;
    memset(to, 'x', sizeof to);
    to[0] = '/';
    to[sizeof to - 1] = '\0';
    while (buffer_len(&config) * 100 < RELAY_MESSAGE_BYTES_MAX)
        h2_put(&config, "\x3a\x03\x12\x01/", 5);
    h2_put(&in, "\x12", 1);
    for (size_t n = buffer_len(&config); n > 0; n >>= 7) {
        uint8_t byte = (uint8_t)(n < 0x80 ? n : n | 0x80);

        h2_put(&in, &byte, 1);
    }
    h2_put(&in, buffer_data(&config), buffer_len(&config));
    assert_int_equal(mount_redirect(buffer_data(&in), buffer_len(&in), "/", to, &out), -EMSGSIZE);
    assert_null(out.bytes);
    assert_int_equal(mount_redirect(buffer_data(&in), buffer_len(&in), "/", "/y", &out), 1);
    buffer_fini(&out);
    buffer_fini(&config);
    buffer_fini(&in);
}

static void without_memory(void **state)
{
    struct buffer in = {0}, mount = {0};
    int r;

    (void)state;
    put_string(&mount, HOST_PATH, FROM);
    put_request(&in, &mount);
    for (unsigned n = 1;; n++) {
        struct buffer out = {0};

        alloc_fail_at(n);
        alloc_fail_enable(true);
        r = mount_redirect(buffer_data(&in), buffer_len(&in), FROM, TO, &out);
        alloc_fail_enable(false);
        if (!alloc_failed()) {
            buffer_fini(&out);
            break;
        }
        assert_int_equal(r, -ENOMEM);
        assert_null(out.bytes);
    }
    alloc_fail_at(0);
    assert_int_equal(r, 1);
    buffer_fini(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_directory_itself_in_any_spelling),
        cmocka_unit_test(what_holds_it_and_what_lies_in_it),
        cmocka_unit_test(what_is_elsewhere),
        cmocka_unit_test(only_the_path_and_the_lengths_change),
        cmocka_unit_test(every_mount_of_every_config),
        cmocka_unit_test(of_two_paths_the_last_one_counts),
        cmocka_unit_test(the_length_around_is_said_in_as_few_bytes_as_it_needs),
        cmocka_unit_test(nothing_to_change),
        cmocka_unit_test(what_is_mounted_read_only_stays),
        cmocka_unit_test(what_is_not_well_formed_stays),
        cmocka_unit_test(every_cut),
        cmocka_unit_test(a_real_request_is_the_same_but_for_the_path),
        cmocka_unit_test(it_must_not_grow_over_the_limit),
        cmocka_unit_test(without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
