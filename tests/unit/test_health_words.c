/* shim/health_words.c: which words are kept, and how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "shim/health_words.h"

#define GPU "gpu.example.com"
#define NIC "nic.example.com"
#define BEGIN_MS 5000

static bool say_for(struct health_words *words, const char *driver, uint64_t source,
                    uint64_t said_ms, const char *device, const char *message, int64_t timeout_s)
{
    DraHealth__V1alpha1__DeviceHealth health = DRA_HEALTH__V1ALPHA1__DEVICE_HEALTH__INIT;
    DraHealth__V1alpha1__DeviceIdentifier is = DRA_HEALTH__V1ALPHA1__DEVICE_IDENTIFIER__INIT;

    is.pool_name = (char *)"node";
    is.device_name = (char *)(uintptr_t)device;
    health.device = &is;
    health.message = (char *)(uintptr_t)message;
    health.health_check_timeout_seconds = timeout_s;
    return health_words_say(words, driver, source, said_ms, &health);
}

static bool say(struct health_words *words, uint64_t said_ms, const char *device,
                const char *message)
{
    return say_for(words, GPU, 1, said_ms, device, message, 0);
}

/* "device message" of each that came after `number`. */
static void expect_after(const struct health_words *words, uint64_t number, const char *expected)
{
    char text[512] = "";
    size_t len = 0;

    for (const struct health_word *word = health_words_after(words, number); word;
         word = health_word_next(word)) {
        DraHealth__V1alpha1__DeviceHealth *health =
            dra_health__v1alpha1__device_health__unpack(NULL, word->len, word->bytes);

        assert_non_null(health);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s %s", len ? ", " : "",
                                health->device->device_name, health->message);
        dra_health__v1alpha1__device_health__free_unpacked(health, NULL);
    }
    assert_string_equal(text, expected);
}

static void the_newest_of_each_device_is_kept(void **state)
{
    struct health_words words;

    (void)state;
    health_words_init(&words);
    expect_after(&words, 0, "");
    assert_true(say(&words, BEGIN_MS, "a", "1"));
    assert_true(say(&words, BEGIN_MS, "b", "2"));
    assert_true(say(&words, BEGIN_MS + 1, "a", "3"));
    expect_after(&words, 0, "b 2, a 3");
    expect_after(&words, 2, "a 3");
    expect_after(&words, 3, "");
    assert_true(say_for(&words, NIC, 1, BEGIN_MS, "a", "4", 0));
    expect_after(&words, 0, "b 2, a 3, a 4");
    health_words_fini(&words);
}

/* What is said again later is: its age begins anew. */
static void what_is_no_news_is_not_taken(void **state)
{
    struct health_words words;

    (void)state;
    health_words_init(&words);
    assert_true(say(&words, BEGIN_MS, "a", "1"));
    assert_false(say(&words, BEGIN_MS, "a", "1"));
    assert_false(say(&words, BEGIN_MS - 1, "a", "2"));
    assert_true(say(&words, BEGIN_MS, "a", "3"));
    assert_true(say(&words, BEGIN_MS + 1, "a", "3"));
    expect_after(&words, 0, "a 3");
    health_words_fini(&words);
}

static void one_without_a_device_is_none(void **state)
{
    DraHealth__V1alpha1__DeviceHealth health = DRA_HEALTH__V1ALPHA1__DEVICE_HEALTH__INIT;
    struct health_words words;

    (void)state;
    health_words_init(&words);
    assert_false(health_words_say(&words, GPU, 1, BEGIN_MS, &health));
    expect_after(&words, 0, "");
    health_words_fini(&words);
}

static void each_is_fresh_for_its_timeout(void **state)
{
    static const struct {
        int64_t timeout_s;
        uint64_t fresh_ms;
    } cases[] = {{10, 10000},
                 {0, HEALTH_TIMEOUT_S * 1000},
                 {-1, HEALTH_TIMEOUT_S * 1000},
                 {INT64_MAX, (uint64_t)INT32_MAX * 1000}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct health_word *word;
        struct health_words words;

        health_words_init(&words);
        assert_true(say_for(&words, GPU, 1, BEGIN_MS, "a", "1", cases[i].timeout_s));
        word = health_words_after(&words, 0);
        assert_true(health_word_is_fresh(word, BEGIN_MS + cases[i].fresh_ms - 1));
        assert_false(health_word_is_fresh(word, BEGIN_MS + cases[i].fresh_ms));
        health_words_fini(&words);
    }
}

static void what_a_source_has_said_may_be_over(void **state)
{
    struct health_words words;
    const struct health_word *word;

    (void)state;
    health_words_init(&words);
    say_for(&words, GPU, 1, BEGIN_MS, "a", "1", 0);
    say_for(&words, GPU, 1, BEGIN_MS, "b", "2", 0);
    say_for(&words, GPU, 2, BEGIN_MS + 1, "b", "3", 0);
    say_for(&words, NIC, 1, BEGIN_MS, "c", "4", 0);
    health_words_end(&words, GPU, 1, BEGIN_MS + 2, "away");
    expect_after(&words, 0, "b 3, c 4, a away");
    word = health_words_find(&words, GPU, "node", "a");
    assert_true(word->over);
    assert_int_equal(word->said_ms, BEGIN_MS + 2);
    assert_false(health_words_find(&words, GPU, "node", "b")->over);
    health_words_end(&words, GPU, 1, BEGIN_MS + 3, "away"); /* once */
    health_words_end(&words, "unknown", 1, BEGIN_MS + 3, "away");
    expect_after(&words, 4, "a away");
    assert_true(say_for(&words, GPU, 1, BEGIN_MS + 4, "a", "5", 0));
    assert_false(health_words_find(&words, GPU, "node", "a")->over);
    health_words_forget_all(&words, GPU);
    expect_after(&words, 0, "c 4");
    health_words_fini(&words);
}

/* Whoever was told them holds them Unknown already. */
static void what_is_not_fresh_is_over_without_a_word(void **state)
{
    struct health_words words;

    (void)state;
    health_words_init(&words);
    say_for(&words, GPU, 1, BEGIN_MS, "a", "1", 10);
    health_words_end(&words, GPU, 1, BEGIN_MS + 10000, "away");
    expect_after(&words, 0, "");
    health_words_fini(&words);
}

static bool end_one(struct health_words *words, uint64_t said_ms, const char *device)
{
    DraHealth__V1alpha1__DeviceHealth health = DRA_HEALTH__V1ALPHA1__DEVICE_HEALTH__INIT;
    DraHealth__V1alpha1__DeviceIdentifier is = DRA_HEALTH__V1ALPHA1__DEVICE_IDENTIFIER__INIT;

    is.pool_name = (char *)"node";
    is.device_name = (char *)(uintptr_t)device;
    health.device = device ? &is : NULL;
    health.message = (char *)"over";
    return health_words_end_one(words, GPU, said_ms, &health);
}

static void one_word_may_be_over(void **state)
{
    struct health_words words;

    (void)state;
    health_words_init(&words);
    assert_true(say(&words, BEGIN_MS, "a", "1"));
    assert_false(end_one(&words, BEGIN_MS, NULL));
    assert_false(end_one(&words, BEGIN_MS - 1, "a"));
    assert_true(end_one(&words, BEGIN_MS, "a"));
    assert_false(end_one(&words, BEGIN_MS + 1, "a"));
    expect_after(&words, 0, "a over");
    health_words_fini(&words);
}

/* Whoever was told of it was so by a process before; and no longer than a word may be. */
static void one_may_be_over_of_which_nothing_is_known(void **state)
{
    static char longer[HEALTH_WORD_BYTES_MAX];
    struct health_words words;

    (void)state;
    memset(longer, 'x', sizeof longer - 1);
    health_words_init(&words);
    assert_true(end_one(&words, BEGIN_MS, "a"));
    assert_false(end_one(&words, BEGIN_MS + 1, "a"));
    assert_false(end_one(&words, BEGIN_MS, longer));
    assert_true(say(&words, BEGIN_MS + 1, "a", "1"));
    expect_after(&words, 0, "a 1");
    health_words_fini(&words);
}

static void expect_message(struct health_words *words, uint64_t said_ms, const char *message,
                           const char *expected)
{
    DraHealth__V1alpha1__DeviceHealth *health;
    const struct health_word *word;

    assert_true(say(words, said_ms, "a", message));
    word = health_words_find(words, GPU, "node", "a");
    assert_non_null(word);
    health = dra_health__v1alpha1__device_health__unpack(NULL, word->len, word->bytes);
    assert_non_null(health);
    assert_string_equal(health->message, expected);
    dra_health__v1alpha1__device_health__free_unpacked(health, NULL);
}

/* However long, it does not keep from the kubelet how the device is; and no character is cut in
 * two. */
static void a_message_is_cut_where_the_kubelet_would(void **state)
{
    static char longer[2 * HEALTH_WORD_BYTES_MAX], expected[HEALTH_MESSAGE_BYTES_MAX + 1];
    struct health_words words;

    (void)state;
    health_words_init(&words);
    memset(longer, 'x', HEALTH_MESSAGE_BYTES_MAX);
    expect_message(&words, BEGIN_MS, longer, longer);
    memset(longer, 'x', sizeof longer - 1);
    memset(expected, 'x', HEALTH_MESSAGE_BYTES_MAX);
    memcpy(expected + HEALTH_MESSAGE_BYTES_MAX - 3, "...", 4);
    expect_message(&words, BEGIN_MS + 1, longer, expected);
    for (size_t i = 0; i + 2 < sizeof longer; i += 2)
        memcpy(longer + i, "\xc3\xbc", 2);
    memcpy(expected, longer, HEALTH_MESSAGE_BYTES_MAX - 4);
    memcpy(expected + HEALTH_MESSAGE_BYTES_MAX - 4, "...", 4);
    longer[sizeof longer - 2] = '\0';
    expect_message(&words, BEGIN_MS + 2, longer, expected);
    health_words_fini(&words);
}

/* Says so. */
static void there_is_a_most_of_words(void **state)
{
    static char longest[HEALTH_MESSAGE_BYTES_MAX + 1], longer[HEALTH_WORD_BYTES_MAX];
    struct health_words words;
    char device[32], expected[64];
    unsigned count = 0;

    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    memset(longer, 'x', sizeof longer - 1);
    health_words_init(&words);
    assert_false(say(&words, BEGIN_MS, longer, "a"));
    do
        snprintf(device, sizeof device, "d%u", count++);
    while (count < 1000 && say(&words, BEGIN_MS, device, longest));
    assert_in_range(count, 2, HEALTH_DRIVER_BYTES_MAX / sizeof longest + 1);
    assert_true(say_for(&words, NIC, 1, BEGIN_MS, "a", longest, 0));
    health_words_forget_all(&words, NIC);
    assert_false(say(&words, BEGIN_MS + HEALTH_TIMEOUT_S * 1000 - 1, device, longest));
    assert_true(say(&words, BEGIN_MS + HEALTH_TIMEOUT_S * 1000, device, longest));
    assert_true(say(&words, BEGIN_MS + HEALTH_TIMEOUT_S * 1000, device, "new"));
    snprintf(expected, sizeof expected, "%s new", device);
    expect_after(&words, 0, expected); /* the others were not fresh any more */
    health_words_fini(&words);
}

/* Says so. All words that can be kept are looked at once in a moment: what is not fresh any more,
 * and has come since, makes room in the next one. */
static void too_many_at_once_look_for_room_once(void **state)
{
    struct health_words words;
    char device[16], large[400];
    unsigned count = 0;

    (void)state;
    memset(large, 'x', sizeof large);
    large[sizeof large - 1] = '\0';
    health_words_init(&words);
    assert_true(say(&words, BEGIN_MS, "first", large));
    do
        snprintf(device, sizeof device, "d%04u", count++);
    while (say(&words, BEGIN_MS, device, "1"));
    assert_true(say(&words, BEGIN_MS, "first", "1")); /* that makes room */
    assert_true(say_for(&words, GPU, 1, BEGIN_MS - 2000, "stale", "1", 1));
    do
        snprintf(device, sizeof device, "e%04u", count++);
    while (say(&words, BEGIN_MS, device, "1"));
    assert_non_null(health_words_find(&words, GPU, "node", "stale"));
    assert_true(say(&words, BEGIN_MS + 1, "late0", "1"));
    assert_null(health_words_find(&words, GPU, "node", "stale"));
    health_words_fini(&words);
}

static void a_device_s_word_is_found(void **state)
{
    struct health_words words;
    const struct health_word *word;

    (void)state;
    health_words_init(&words);
    assert_null(health_words_find(&words, GPU, "node", "a"));
    assert_true(say(&words, BEGIN_MS, "a", "1"));
    word = health_words_find(&words, GPU, "node", "a");
    assert_non_null(word);
    assert_string_equal(word->pool, "node");
    assert_string_equal(word->device, "a");
    assert_null(health_words_find(&words, GPU, "node", "b"));
    assert_null(health_words_find(&words, GPU, "nod", "ea"));
    assert_null(health_words_find(&words, NIC, "node", "a"));
    health_words_fini(&words);
}

/* Says so. */
static void there_is_a_most_of_drivers(void **state)
{
    struct health_words words;
    char driver[32];

    (void)state;
    health_words_init(&words);
    for (unsigned i = 0; i <= HEALTH_DRIVERS_MAX; i++) {
        snprintf(driver, sizeof driver, "d%u", i);
        assert_int_equal(say_for(&words, driver, 1, BEGIN_MS, "a", "1", 0), i < HEALTH_DRIVERS_MAX);
    }
    health_words_forget_all(&words, "d0");
    assert_true(say_for(&words, driver, 1, BEGIN_MS, "a", "1", 0));
    assert_false(say_for(&words, "d0", 1, BEGIN_MS + 1, "a", "1", 0));
    assert_true(say_for(&words, "d0", 1, BEGIN_MS + HEALTH_TIMEOUT_S * 1000, "a", "1", 0));
    expect_after(&words, 0, "a 1"); /* the others were not fresh any more */
    health_words_fini(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_of_each_device_is_kept),
        cmocka_unit_test(what_is_no_news_is_not_taken),
        cmocka_unit_test(one_without_a_device_is_none),
        cmocka_unit_test(each_is_fresh_for_its_timeout),
        cmocka_unit_test(what_a_source_has_said_may_be_over),
        cmocka_unit_test(what_is_not_fresh_is_over_without_a_word),
        cmocka_unit_test(one_word_may_be_over),
        cmocka_unit_test(one_may_be_over_of_which_nothing_is_known),
        cmocka_unit_test(a_message_is_cut_where_the_kubelet_would),
        cmocka_unit_test(there_is_a_most_of_words),
        cmocka_unit_test(too_many_at_once_look_for_room_once),
        cmocka_unit_test(a_device_s_word_is_found),
        cmocka_unit_test(there_is_a_most_of_drivers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
