#include "devicemgr/books/claim_refused.h"

#include <stdlib.h>
#include <string.h>

#include "cri-proto/utf8.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/text.h"

static void one_free(struct claim_refused *refused, struct claim_refused_one *one)
{
    HASH_DEL(refused->by_key, one);
    free(one->uid);
    free(one->driver);
    free(one->pod_namespace);
    free(one->name);
    free(one->text);
    free(one->key);
    free(one);
}

void claim_refused_fini(struct claim_refused *refused)
{
    while (refused->by_key)
        one_free(refused, refused->by_key);
}

static struct claim_refused_one *find(const struct claim_refused *refused, const char *uid,
                                      const char *driver)
{
    const char *parts[] = {uid, driver};
    struct claim_refused_one *one;
    struct mem_sought sought;

    mem_seek(&sought, parts, sizeof parts / sizeof *parts);
    HASH_FIND(hh, refused->by_key, sought.key, sought.key_bytes, one);
    mem_sought_drop(&sought);
    return one;
}

const struct claim_refused_one *claim_refused_find(const struct claim_refused *refused,
                                                   const char *uid, const char *driver)
{
    return find(refused, uid, driver);
}

static bool can_be_told(const struct claim_refused_one *said)
{
    const char *const names[] = {said->uid, said->driver, said->pod_namespace, said->name};
    size_t bytes = 0;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bytes += strlen(names[i]);
        if (bytes > CLAIM_NAMES_BYTES_MAX || !utf8_is_text(names[i]))
            return false;
    }
    return true;
}

static struct claim_refused_one *copy_of(const struct claim_refused_one *said)
{
    struct claim_refused_one *one = mem_alloc(1, sizeof *one);
    const char *parts[] = {said->uid, said->driver};

    *one = *said;
    one->uid = mem_strdup(said->uid);
    one->driver = mem_strdup(said->driver);
    one->pod_namespace = mem_strdup(said->pod_namespace);
    one->name = mem_strdup(said->name);
    one->text = mem_strdup(said->text);
    one->key = mem_key(parts, sizeof parts / sizeof *parts, &one->key_bytes);
    return one;
}

void claim_refused_note(struct claim_refused *refused, uint64_t now_ms,
                        const struct claim_refused_one *said)
{
    struct claim_refused_one *one, *before;
    bool again;

    if (!can_be_told(said))
        return;
    before = find(refused, said->uid, said->driver);
    again = before && before->unprepare == said->unprepare;
    one = copy_of(said);
    one->times = again ? before->times + 1 : 1;
    one->first_ms = again ? before->first_ms : now_ms;
    one->last_ms = now_ms;
    if (before)
        one_free(refused, before);
    else if (HASH_COUNT(refused->by_key) >= CLAIMS_REFUSED_MAX)
        one_free(refused, refused->by_key);
    HASH_ADD_KEYPTR(hh, refused->by_key, one->key, one->key_bytes, one);
}
