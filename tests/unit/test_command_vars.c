/* shim/relay/command_vars.c: which references become values, and every other byte as it came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "h2_script.h"
#include "shim/relay/command_vars.h"
#include "shim/relay/limits.h"

/* ---- the wire by hand ---- */

enum { CONFIG = 2, COMMAND = 3, ARGS = 4, ENVS = 6, KEY = 1, VALUE = 2, UNKNOWN = 77 };

static void put_varint(struct buffer *out, size_t value)
{
    for (;; value >>= 7) {
        uint8_t byte = (uint8_t)(value < 0x80 ? value : value | 0x80);

        h2_put(out, &byte, 1);
        if (value < 0x80)
            return;
    }
}

static void put_bytes(struct buffer *out, unsigned number, const void *value, size_t len)
{
    put_varint(out, number << 3 | 2);
    put_varint(out, len);
    h2_put(out, value, len);
}

static void put_text(struct buffer *out, unsigned number, const char *value)
{
    put_bytes(out, number, value, strlen(value));
}

/* `inner` is used up. */
static void put_inner(struct buffer *out, unsigned number, struct buffer *inner)
{
    put_bytes(out, number, buffer_data(inner), buffer_len(inner));
    buffer_fini(inner);
}

static void put_env(struct buffer *config, const char *key)
{
    struct buffer env = {0};

    put_text(&env, KEY, key);
    put_text(&env, VALUE, "the pod's");
    put_inner(config, ENVS, &env);
}

/* A request with one text, with fields around it that nobody knows; the pod sets OWN. */
static void put_request(struct buffer *out, unsigned number, const char *text)
{
    struct buffer config = {0};

    put_text(&config, UNKNOWN, "$(GPU)");
    put_text(&config, number, text);
    put_env(&config, "OWN");
    put_text(out, 1, "$(GPU)");
    put_inner(out, CONFIG, &config);
    put_text(out, UNKNOWN, "$(GPU)");
}

/* ---- what is put in front ---- */

#define ENVS_MAX 8

static int expand_with(const char *const *pairs, const struct buffer *in, struct buffer *out)
{
    V1beta1__ContainerAllocateResponse options = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    V1beta1__ContainerAllocateResponse__EnvsEntry envs[ENVS_MAX], *list[ENVS_MAX];
    size_t len = buffer_len(in);
    uint8_t *exact = malloc(len + !len); /* so that a sanitizer sees a read behind it */
    int r;

    assert_non_null(exact);
    if (len > 0)
        memcpy(exact, buffer_data(in), len);
    for (; pairs[2 * options.n_envs]; options.n_envs++) {
        list[options.n_envs] = &envs[options.n_envs];
        v1beta1__container_allocate_response__envs_entry__init(list[options.n_envs]);
        list[options.n_envs]->key = (char *)pairs[2 * options.n_envs];
        list[options.n_envs]->value = (char *)pairs[2 * options.n_envs + 1];
    }
    options.envs = list;
    r = command_vars_expand(exact, len, &options, out);
    free(exact);
    return r;
}

/* GPU comes twice, as it might to a container: the last one is what that has. */
static int expand(const struct buffer *in, struct buffer *out)
{
    static const char *const pairs[] = {"GPU",          "first", "NIC", "eth$(GPU)", "OWN",
                                        "the plugin's", "EMPTY", "",    "GPU",       "g0",
                                        "A$(B",         "odd",   "",    "no name",   NULL};

    return expand_with(pairs, in, out);
}

static void assert_buffers_equal(const struct buffer *a, const struct buffer *b)
{
    assert_int_equal(buffer_len(a), buffer_len(b));
    assert_memory_equal(buffer_data(a), buffer_data(b), buffer_len(a));
}

/* `expected` NULL: it stays. */
static void becomes(const char *text, const char *expected)
{
    for (unsigned number = COMMAND; number <= ARGS; number++) {
        struct buffer in = {0}, after = {0}, out = {0};

        put_request(&in, number, text);
        put_request(&after, number, expected ? expected : text);
        assert_int_equal(expand(&in, &out), expected != NULL);
        if (expected)
            assert_buffers_equal(&out, &after);
        else
            assert_null(out.bytes);
        buffer_fini(&in);
        buffer_fini(&after);
        buffer_fini(&out);
    }
}

static void a_reference_becomes_its_value(void **state)
{
    (void)state;
    becomes("$(GPU)", "g0");
    becomes("--gpu=$(GPU),$(GPU)$(EMPTY).", "--gpu=g0,g0.");
    becomes("$(EMPTY)", "");
    becomes("\xc3\xa4$(GPU)\xc3\xa4", "\xc3\xa4g0\xc3\xa4");
    becomes(
        "$(GPU) and a text that is so long with it that the length around it, of all that there "
        "is, "
        "has one byte more",
        "g0 and a text that is so long with it that the length around it, of all that there is, "
        "has one byte more");
}

/* Values are not looked into. */
static void a_value_is_no_reference(void **state)
{
    (void)state;
    becomes("$(NIC)$(GPU)", "eth$(GPU)g0");
    becomes("$($(EMPTY)GPU)", NULL); /* of "$(EMPTY" */
}

/* As in third_party/forked/golang/expansion. */
static void a_name_goes_up_to_the_next_closer(void **state)
{
    (void)state;
    becomes("$(A$(B)", "odd");
    becomes("$(X$(GPU)", NULL);
    becomes("$(X$(GPU)$(GPU)", "$(X$(GPU)g0");
    becomes("$()", "no name");
    becomes("$(GPU))", "g0)");
    becomes("$( GPU)", NULL);
    becomes("$(gpu)", NULL);
    becomes("$(GPU1)$(GP)", NULL);
}

static void what_is_no_reference_stays(void **state)
{
    static const char *const texts[] = {"",          "$",        "$$",     "$(",      "$(GPU",
                                        "(GPU)",     "$GPU",     "${GPU}", "$ (GPU)", "$(GPU$(GPU",
                                        "$$(OTHER)", "$(OTHER)", "sleep 1"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        becomes(texts[i], NULL);
    becomes("$(GPU)$(GPU", "g0$(GPU");
    becomes("$$ $x $(OTHER) $(GPU)$", "$$ $x $(OTHER) g0$");
}

/* The kubelet has made "$" of each "$$" of the pod's. */
static void two_dollars_escape_nothing_any_more(void **state)
{
    (void)state;
    becomes("$$(GPU)", "$g0");
    becomes("$$$(GPU)$$", "$$g0$$");
}

/* The kubelet has known it: what is left was escaped. */
static void what_the_request_sets_is_none_of_ours(void **state)
{
    (void)state;
    becomes("$(OWN)", NULL);
    becomes("$(OWN)$(GPU)", "$(OWN)g0");
}

/* Of a request in two parts; what the second one sets is of both. Of two keys the last counts. */
static void every_text_of_every_config(void **state)
{
    struct buffer first = {0}, second = {0}, env = {0}, in = {0}, after = {0}, out = {0};

    (void)state;
    put_text(&first, COMMAND, "$(GPU)");
    put_text(&first, COMMAND, "$(EMPTY)");
    put_text(&first, ARGS, "$(NIC)");
    put_text(&second, ARGS, "$(GPU)");
    put_text(&second, ARGS, "-");
    put_text(&env, KEY, "GPU");
    put_text(&env, KEY, "EMPTY");
    put_inner(&second, ENVS, &env);
    put_inner(&in, CONFIG, &first);
    put_inner(&in, CONFIG, &second);
    put_text(&first, COMMAND, "g0");
    put_text(&first, COMMAND, "$(EMPTY)");
    put_text(&first, ARGS, "eth$(GPU)");
    put_text(&second, ARGS, "g0");
    put_text(&second, ARGS, "-");
    put_text(&env, KEY, "GPU");
    put_text(&env, KEY, "EMPTY");
    put_inner(&second, ENVS, &env);
    put_inner(&after, CONFIG, &first);
    put_inner(&after, CONFIG, &second);
    assert_int_equal(expand(&in, &out), 1);
    assert_buffers_equal(&out, &after);
    buffer_fini(&in);
    buffer_fini(&after);
    buffer_fini(&out);
}

/* An env without a key has the empty one. */
static void an_env_without_a_name(void **state)
{
    struct buffer config = {0}, in = {0}, out = {0};

    (void)state;
    put_text(&config, ARGS, "$()");
    put_text(&config, ENVS, "");
    put_inner(&in, CONFIG, &config);
    assert_int_equal(expand(&in, &out), 0);
    buffer_fini(&in);
}

static void without_variables_nothing_changes(void **state)
{
    static const char *const none[] = {NULL}, *const owns[] = {"OWN", "the plugin's", NULL};
    struct buffer in = {0}, out = {0};

    (void)state;
    put_request(&in, ARGS, "$(GPU)$(OWN)");
    assert_int_equal(expand_with(none, &in, &out), 0);
    assert_int_equal(expand_with(owns, &in, &out), 0);
    buffer_fini(&in);
}

/* Nothing is taken for it then. */
static void without_an_opener_it_costs_nothing(void **state)
{
    struct buffer in = {0}, out = {0};

    (void)state;
    put_request(&in, ARGS, "$GPU)");
    alloc_fail_at(2); /* the first one is the test's own */
    alloc_fail_enable(true);
    assert_int_equal(expand(&in, &out), 0);
    alloc_fail_enable(false);
    assert_false(alloc_failed());
    alloc_fail_at(0);
    buffer_fini(&in);
}

static void what_is_malformed_passes_as_it_is(void **state)
{
    static const uint8_t types[][16] = {
        {0x12, 8, COMMAND << 3 | 2, 6, '$', '(', 'G', 'P', 'U', ')'}, /* as it should be */
        {0x10, 8},
        {0x12, 10, COMMAND << 3 | 2, 6, '$', '(', 'G', 'P', 'U', ')', COMMAND << 3, 1},
        {0x12, 10, COMMAND << 3 | 2, 6, '$', '(', 'G', 'P', 'U', ')', ENVS << 3, 1},
        {0x12, 12, COMMAND << 3 | 2, 6, '$', '(', 'G', 'P', 'U', ')', ENVS << 3 | 2, 2, 8, 1},
        {0x12, 11, COMMAND << 3 | 2, 6, '$', '(', 'G', 'P', 'U', ')', ENVS << 3 | 2, 1, 8},
    };
    struct buffer in = {0}, out = {0};

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        h2_put(&in, types[i], i == 1 ? 2 : types[i][1] + 2u);
        assert_int_equal(expand(&in, &out), i == 0);
        buffer_fini(&in);
        buffer_fini(&out);
    }
}

static void every_cut(void **state)
{
    struct buffer in = {0};

    (void)state;
    put_request(&in, COMMAND, "$(GPU)");
    for (size_t len = buffer_len(&in); len-- > 0;) { /* at the end of a field it is whole */
        struct buffer cut = {.bytes = in.bytes, .end = len}, out = {0};
        int r = expand(&cut, &out);

        assert_true(r == 0 || r == 1);
        assert_int_equal(out.bytes != NULL, r);
        buffer_fini(&out);
    }
    buffer_fini(&in);
}

/* Refused, not cut; and at once, however often it stands there. */
static void it_must_not_grow_over_the_limit(void **state)
{
    size_t value_len = RELAY_MESSAGE_BYTES_MAX / 4;
    char *value = malloc(value_len + 1), *text = malloc(RELAY_MESSAGE_BYTES_MAX / 2 + 1);
    const char *const pairs[] = {"X", value, NULL};
    struct buffer in = {0}, out = {0};

    (void)state;
    assert_true(value && text);
    memset(value, 'v', value_len);
    value[value_len] = '\0';
    put_request(&in, ARGS, "$(X)$(X)$(X)");
    assert_int_equal(expand_with(pairs, &in, &out), 1);
    buffer_fini(&out);
    buffer_fini(&in);
    put_request(&in, ARGS, "$(X)$(X)$(X)$(X)");
    assert_int_equal(expand_with(pairs, &in, &out), -EMSGSIZE);
    assert_null(out.bytes);
    buffer_fini(&in);
    for (size_t i = 0; i < RELAY_MESSAGE_BYTES_MAX / 2; i++)
        text[i] = "$(X)"[i % 4];
    text[RELAY_MESSAGE_BYTES_MAX / 2] = '\0';
    put_request(&in, ARGS, text);
    assert_int_equal(expand_with(pairs, &in, &out), -EMSGSIZE);
    assert_null(out.bytes);
    buffer_fini(&in);
    free(value);
    free(text);
}

static void many_openers_are_gone_through_once(void **state)
{
    char *text = malloc(RELAY_MESSAGE_BYTES_MAX / 2 + 1);
    struct buffer in = {0}, out = {0};

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < RELAY_MESSAGE_BYTES_MAX / 2; i++)
        text[i] = "$("[i % 2];
    text[RELAY_MESSAGE_BYTES_MAX / 2] = '\0';
    put_request(&in, ARGS, text);
    assert_int_equal(expand(&in, &out), 0);
    buffer_fini(&in);
    free(text);
}

static void without_memory(void **state)
{
    struct buffer in = {0};
    int r;

    (void)state;
    put_request(&in, COMMAND, "$(GPU)");
    for (unsigned n = 2;; n++) { /* the first one is the test's own */
        struct buffer out = {0};

        alloc_fail_at(n);
        alloc_fail_enable(true);
        r = expand(&in, &out);
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

#define TEST(f) cmocka_unit_test(f)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reference_becomes_its_value),
        TEST(a_value_is_no_reference),
        TEST(a_name_goes_up_to_the_next_closer),
        TEST(what_is_no_reference_stays),
        TEST(two_dollars_escape_nothing_any_more),
        TEST(what_the_request_sets_is_none_of_ours),
        TEST(every_text_of_every_config),
        TEST(an_env_without_a_name),
        TEST(without_variables_nothing_changes),
        TEST(without_an_opener_it_costs_nothing),
        TEST(what_is_malformed_passes_as_it_is),
        TEST(every_cut),
        TEST(it_must_not_grow_over_the_limit),
        TEST(many_openers_are_gone_through_once),
        TEST(without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
