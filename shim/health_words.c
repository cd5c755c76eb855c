#include "shim/health_words.h"

#include <stdlib.h>
#include <string.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "cri-proto/utf8.h"
#include "shim/log.h"
#include "shim/must.h"

#define TIMEOUT_S_MAX INT32_MAX
#define MORE "..." /* as the kubelet ends one that it has cut */

struct kept_word {
    struct health_word word;
    UT_hash_handle hh; /* by its device */
    struct health_driver *of;
    size_t key_len;
    char key[]; /* the pool and the device, each with its end; the last one is not counted */
};

struct health_driver {
    UT_hash_handle hh; /* by its name */
    struct kept_word *devices;
    size_t bytes;      /* of HEALTH_DRIVER_BYTES_MAX */
    uint64_t swept_ms; /* when all were looked at last; 0: never */
    bool full;         /* which was said */
    char name[];
};

void health_words_init(struct health_words *words)
{
    *words = (struct health_words){0};
    TAILQ_INIT(&words->list);
}

/* ---- drivers ---- */

static struct health_driver *find_driver(const struct health_words *words, const char *name)
{
    struct health_driver *driver;

    HASH_FIND_STR(words->drivers, name, driver);
    return driver;
}

static void drop_all_stale(struct health_words *words, uint64_t now_ms);

/* NULL: there are too many. */
static struct health_driver *make_driver(struct health_words *words, const char *name,
                                         uint64_t now_ms)
{
    struct health_driver *driver = find_driver(words, name);

    if (driver)
        return driver;
    if (HASH_COUNT(words->drivers) == HEALTH_DRIVERS_MAX)
        drop_all_stale(words, now_ms);
    if (HASH_COUNT(words->drivers) == HEALTH_DRIVERS_MAX)
        return NULL;
    driver = must(calloc(1, sizeof *driver + strlen(name) + 1));
    strcpy(driver->name, name);
    HASH_ADD_STR(words->drivers, name, driver);
    return driver;
}

static void drop_if_empty(struct health_words *words, struct health_driver *driver)
{
    if (driver->devices)
        return;
    HASH_DEL(words->drivers, driver);
    free(driver);
}

/* ---- words ---- */

static size_t cost_of(size_t key_len, size_t len)
{
    return sizeof(struct kept_word) + key_len + len;
}

static void drop(struct health_words *words, struct kept_word *kept)
{
    struct health_driver *driver = kept->of;

    TAILQ_REMOVE(&words->list, &kept->word, entry);
    HASH_DEL(driver->devices, kept);
    driver->bytes -= cost_of(kept->key_len, kept->word.len);
    free(kept->word.bytes);
    free(kept);
}

static void drop_stale(struct health_words *words, struct health_driver *driver, uint64_t now_ms)
{
    struct kept_word *kept, *next;

    driver->swept_ms = now_ms;
    HASH_ITER(hh, driver->devices, kept, next) {
        if (!health_word_is_fresh(&kept->word, now_ms))
            drop(words, kept);
    }
}

static void drop_all_stale(struct health_words *words, uint64_t now_ms)
{
    struct health_driver *driver, *next;

    HASH_ITER(hh, words->drivers, driver, next) {
        drop_stale(words, driver, now_ms);
        drop_if_empty(words, driver);
    }
}

/* All are looked at once in a moment: one message may say what has no room a million times. */
static bool make_room(struct health_words *words, struct health_driver *driver, size_t bytes,
                      uint64_t now_ms)
{
    if (driver->bytes + bytes > HEALTH_DRIVER_BYTES_MAX && driver->swept_ms != now_ms)
        drop_stale(words, driver, now_ms);
    return driver->bytes + bytes <= HEALTH_DRIVER_BYTES_MAX;
}

static uint64_t timeout_ms_of(const DraHealth__V1alpha1__DeviceHealth *health)
{
    int64_t timeout_s = health->health_check_timeout_seconds;

    if (timeout_s <= 0)
        timeout_s = HEALTH_TIMEOUT_S;
    return (uint64_t)(timeout_s < TIMEOUT_S_MAX ? timeout_s : TIMEOUT_S_MAX) * 1000;
}

/* Without a place in the tables yet. */
static struct kept_word *word_new(const DraHealth__V1alpha1__DeviceHealth *health, uint64_t source,
                                  uint64_t said_ms)
{
    const DraHealth__V1alpha1__DeviceIdentifier *device = health->device;
    size_t pool_bytes = strlen(device->pool_name) + 1, device_len = strlen(device->device_name);
    struct kept_word *kept = must(calloc(1, sizeof *kept + pool_bytes + device_len + 1));

    kept->key_len = pool_bytes + device_len;
    memcpy(kept->key, device->pool_name, pool_bytes);
    memcpy(kept->key + pool_bytes, device->device_name, device_len);
    kept->word.pool = kept->key;
    kept->word.device = kept->key + pool_bytes;
    kept->word.source = source;
    kept->word.said_ms = said_ms;
    kept->word.timeout_ms = timeout_ms_of(health);
    kept->word.len = dra_health__v1alpha1__device_health__get_packed_size(health);
    kept->word.bytes = must(malloc(kept->word.len));
    dra_health__v1alpha1__device_health__pack(health, kept->word.bytes);
    return kept;
}

static void word_free(struct kept_word *kept)
{
    free(kept->word.bytes);
    free(kept);
}

static bool is_newer(const struct kept_word *kept, const struct kept_word *before)
{
    const struct health_word *a = &kept->word, *b = &before->word;

    if (a->said_ms != b->said_ms)
        return a->said_ms > b->said_ms;
    return a->len != b->len || memcmp(a->bytes, b->bytes, a->len) != 0;
}

/* False: it is no news, or there is no room. */
static bool put(struct health_words *words, struct health_driver *driver, struct kept_word *kept)
{
    struct kept_word *before;

    HASH_FIND(hh, driver->devices, kept->key, kept->key_len, before);
    if (before && !is_newer(kept, before))
        return false;
    if (before)
        drop(words, before); /* also if the new one has no room: it is not so any more */
    if (!make_room(words, driver, cost_of(kept->key_len, kept->word.len), kept->word.said_ms)) {
        if (!driver->full)
            log_warning("driver %s: it says more of its devices' health than is passed on",
                        driver->name);
        driver->full = true;
        return false;
    }
    kept->of = driver;
    kept->word.driver = driver->name;
    kept->word.number = ++words->number;
    driver->bytes += cost_of(kept->key_len, kept->word.len);
    HASH_ADD(hh, driver->devices, key, kept->key_len, kept);
    TAILQ_INSERT_TAIL(&words->list, &kept->word, entry);
    return true;
}

static bool is_word(const DraHealth__V1alpha1__DeviceHealth *health)
{
    return health->device &&
           dra_health__v1alpha1__device_health__get_packed_size(health) <= HEALTH_WORD_BYTES_MAX;
}

/* Itself, if it is short enough; else what of it is, in `cut`. */
static char *shown_of(char *message, char cut[HEALTH_MESSAGE_BYTES_MAX + 1])
{
    if (strlen(message) <= HEALTH_MESSAGE_BYTES_MAX)
        return message;
    utf8_copy(cut, HEALTH_MESSAGE_BYTES_MAX + 1 - strlen(MORE), message);
    return strcat(cut, MORE);
}

bool health_words_say(struct health_words *words, const char *driver_name, uint64_t source,
                      uint64_t said_ms, const DraHealth__V1alpha1__DeviceHealth *health)
{
    DraHealth__V1alpha1__DeviceHealth shown = *health;
    char cut[HEALTH_MESSAGE_BYTES_MAX + 1];
    struct health_driver *driver;
    struct kept_word *kept;

    shown.message = shown_of(health->message, cut);
    if (!is_word(&shown))
        return false;
    driver = make_driver(words, driver_name, said_ms);
    if (!driver)
        return false;
    kept = word_new(&shown, source, said_ms);
    if (put(words, driver, kept))
        return true;
    word_free(kept);
    drop_if_empty(words, driver);
    return false;
}

/* ---- what holds no longer ---- */

static bool end_one(struct health_words *words, struct health_driver *driver, uint64_t said_ms,
                    const DraHealth__V1alpha1__DeviceHealth *health)
{
    struct kept_word *kept = word_new(health, 0, said_ms);

    kept->word.over = true;
    if (put(words, driver, kept))
        return true;
    word_free(kept);
    return false;
}

void health_words_end(struct health_words *words, const char *driver_name, uint64_t source,
                      uint64_t now_ms, const char *message)
{
    struct health_driver *driver = find_driver(words, driver_name);
    struct kept_word *kept, *next;

    if (!driver)
        return;
    drop_stale(words, driver, now_ms); /* whoever was told them knows */
    HASH_ITER(hh, driver->devices, kept, next) {
        DraHealth__V1alpha1__DeviceHealth health = DRA_HEALTH__V1ALPHA1__DEVICE_HEALTH__INIT;
        DraHealth__V1alpha1__DeviceIdentifier device =
            DRA_HEALTH__V1ALPHA1__DEVICE_IDENTIFIER__INIT;

        if (kept->word.source != source)
            continue;
        device.pool_name = (char *)(uintptr_t)kept->word.pool;
        device.device_name = (char *)(uintptr_t)kept->word.device;
        health.device = &device;
        health.message = (char *)(uintptr_t)message;
        (void)end_one(words, driver, now_ms, &health);
    }
    drop_if_empty(words, driver);
}

bool health_words_end_one(struct health_words *words, const char *driver_name, uint64_t said_ms,
                          const DraHealth__V1alpha1__DeviceHealth *health)
{
    const struct health_word *word;
    struct health_driver *driver;
    bool is_news;

    if (!is_word(health))
        return false;
    word = health_words_find(words, driver_name, health->device->pool_name,
                             health->device->device_name);
    driver = word && word->over ? NULL : make_driver(words, driver_name, said_ms);
    if (!driver)
        return false;
    is_news = end_one(words, driver, said_ms, health);
    drop_if_empty(words, driver);
    return is_news;
}

static void forget_driver(struct health_words *words, struct health_driver *driver)
{
    while (driver->devices)
        drop(words, driver->devices);
    drop_if_empty(words, driver);
}

void health_words_forget_all(struct health_words *words, const char *driver_name)
{
    struct health_driver *driver = find_driver(words, driver_name);

    if (driver)
        forget_driver(words, driver);
}

void health_words_fini(struct health_words *words)
{
    while (words->drivers)
        forget_driver(words, words->drivers);
}

/* ---- reading ---- */

/* From the end: most of the time it is one of the last. */
const struct health_word *health_words_after(const struct health_words *words, uint64_t number)
{
    const struct health_word *word = TAILQ_LAST(&words->list, health_word_list), *after = NULL;

    while (word && word->number > number) {
        after = word;
        word = TAILQ_PREV(word, health_word_list, entry);
    }
    return after;
}

const struct health_word *health_word_next(const struct health_word *word)
{
    return TAILQ_NEXT(word, entry);
}

const struct health_word *health_words_find(const struct health_words *words,
                                            const char *driver_name, const char *pool,
                                            const char *device)
{
    const struct health_driver *driver = find_driver(words, driver_name);
    size_t pool_bytes = strlen(pool) + 1, device_len = strlen(device);
    struct kept_word *kept = NULL;
    char *key;

    if (!driver)
        return NULL;
    key = must(malloc(pool_bytes + device_len + 1));
    memcpy(key, pool, pool_bytes);
    memcpy(key + pool_bytes, device, device_len + 1);
    HASH_FIND(hh, driver->devices, key, pool_bytes + device_len, kept);
    free(key);
    return kept ? &kept->word : NULL;
}

bool health_word_is_fresh(const struct health_word *word, uint64_t now_ms)
{
    return now_ms < word->said_ms + word->timeout_ms;
}
