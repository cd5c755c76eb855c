#include "devicemgr/things/toleration.h"

#include <string.h>

#include <jansson.h>

#include "devicemgr/things/limits.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/request.h"

void tolerations_fini(struct tolerations *tolerations)
{
    for (size_t i = 0; i < tolerations->len; i++) {
        free(tolerations->v[i].key);
        free(tolerations->v[i].value);
    }
    free(tolerations->v);
    *tolerations = (struct tolerations){0};
}

bool tolerations_is_annotation(const char *key, const char *value)
{
    return strcmp(key, REQUEST_KEY_PREFIX "tolerations") == 0 &&
           value[strspn(value, " \t\r\n")] == '[';
}

/* ---- one ---- */

/* NULL: it is one. */
static const char *check(const struct devicemgr_toleration *is, struct toleration *out)
{
    out->exists = strcmp(is->op, "Exists") == 0;
    out->any_effect = is->effect[0] == '\0';
    if (!out->exists && strcmp(is->op, "Equal") != 0 && is->op[0] != '\0')
        return "its operator is neither Equal nor Exists";
    if (is->key[0] == '\0' && !out->exists)
        return "without a key its operator must be Exists";
    if (is->key[0] != '\0' && !kube_name_is_qualified(is->key))
        return "its key is no label's name";
    if (out->exists && is->value[0] != '\0')
        return "with Exists it has no value";
    if (!kube_name_is_label_value(is->value))
        return "its value is no label's";
    if (!out->any_effect && !taint_effect_find(is->effect, &out->effect))
        return "its effect is none of None, NoSchedule, NoExecute";
    out->for_ever = !is->has_seconds || out->any_effect || out->effect != TAINT_NO_EXECUTE;
    return NULL;
}

static const char *add(struct tolerations *tolerations, const struct devicemgr_toleration *is)
{
    struct toleration one = {0};
    const char *wrong =
        tolerations->len == TOLERATIONS_MAX ? "there are too many of them" : check(is, &one);

    if (wrong)
        return wrong;
    one.key = mem_strdup(is->key);
    one.value = mem_strdup(is->value);
    one.seconds = is->seconds;
    tolerations->v = mem_grow(tolerations->v, tolerations->len, sizeof *tolerations->v);
    tolerations->v[tolerations->len++] = one;
    return NULL;
}

bool tolerations_add(struct tolerations *tolerations, const struct devicemgr_toleration *is)
{
    return add(tolerations, is) == NULL;
}

/* ---- the annotation ---- */

static const char *add_json(struct tolerations *tolerations, json_t *one)
{
    struct devicemgr_toleration is = {.key = "", .op = "", .value = "", .effect = ""};
    json_int_t seconds = 0;

    if (json_unpack(one, "{s?:s, s?:s, s?:s, s?:s, s?:I !}", "key", &is.key, "operator", &is.op,
                    "value", &is.value, "effect", &is.effect, "tolerationSeconds", &seconds) < 0)
        return "it is an object of key, operator, value, effect and tolerationSeconds";
    is.has_seconds = json_object_get(one, "tolerationSeconds") != NULL;
    is.seconds = seconds;
    return add(tolerations, &is);
}

int tolerations_read(struct tolerations *tolerations, const char *json, struct text *error)
{
    struct tolerations read = {0};
    const char *wrong = NULL;
    json_error_t at;
    json_t *list = strlen(json) <= TOLERATIONS_BYTES_MAX
                       ? json_loads(json, JSON_REJECT_DUPLICATES, &at)
                       : NULL;
    size_t i;
    json_t *one;

    if (!json_is_array(list)) {
        text_add(error, "it is no list in JSON of at most %d bytes", TOLERATIONS_BYTES_MAX);
        json_decref(list);
        return -1;
    }
    json_array_foreach(list, i, one) {
        wrong = add_json(&read, one);
        if (wrong) {
            text_add(error, "toleration %zu: %s", i + 1, wrong);
            break;
        }
    }
    json_decref(list);
    if (wrong) {
        tolerations_fini(&read);
        return -1;
    }
    tolerations_fini(tolerations);
    *tolerations = read;
    return 0;
}

/* ---- what is tolerated ---- */

bool toleration_matches(const struct toleration *toleration, const struct taint *taint)
{
    if (!toleration->any_effect && toleration->effect != taint->effect)
        return false;
    if (toleration->key[0] != '\0' && strcmp(toleration->key, taint->key) != 0)
        return false;
    return toleration->exists || strcmp(toleration->value, taint->value) == 0;
}

static uint64_t until_ms(const struct toleration *toleration, const struct taint *taint)
{
    uint64_t ms;

    if (toleration->for_ever)
        return UINT64_MAX;
    if (toleration->seconds <= 0)
        return 0;
    if (__builtin_mul_overflow((uint64_t)toleration->seconds, 1000, &ms))
        return UINT64_MAX;
    return ms <= taint->earlier_ms ? 0 : later_by(taint->added_ms, ms - taint->earlier_ms);
}

uint64_t tolerations_until_ms(const struct tolerations *tolerations, const struct taint *taint)
{
    uint64_t until = 0;
    bool found = false;

    for (size_t i = 0; i < tolerations->len; i++) {
        uint64_t one;

        if (!toleration_matches(&tolerations->v[i], taint))
            continue;
        one = until_ms(&tolerations->v[i], taint);
        if (one == UINT64_MAX)
            return one;
        until = found ? earlier(until, one) : one;
        found = true;
    }
    return until;
}
