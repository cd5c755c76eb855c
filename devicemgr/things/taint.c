#include "devicemgr/things/taint.h"

#include <string.h>

#include "devicemgr/things/enum.h"

static const char *const EFFECTS[TAINT_EFFECTS] = {
    [TAINT_NONE] = "None", [TAINT_NO_SCHEDULE] = "NoSchedule", [TAINT_NO_EXECUTE] = "NoExecute"};

static const char *const SOURCES[TAINT_SOURCES] = {[TAINT_BY_OPERATOR] = "operator",
                                                   [TAINT_BY_SETTINGS] = "settings",
                                                   [TAINT_BY_HEALTH] = "health",
                                                   [TAINT_BY_SLICE] = "slice",
                                                   [TAINT_BY_RULE] = "rule"};

const char *taint_effect_name(enum taint_effect effect)
{
    return EFFECTS[effect];
}

bool taint_effect_find(const char *name, enum taint_effect *out)
{
    return ENUM_FIND(EFFECTS, name, out);
}

const char *taint_source_name(enum taint_source source)
{
    return SOURCES[source];
}

/* ---- names ---- */

const char *taint_device_of(const char *resource, const char *id)
{
    const char *slash = strrchr(id, '/');

    return !strchr(resource, '/') && slash && slash > id && slash[1] != '\0' ? slash : NULL;
}

/* ---- what an operator writes ---- */

static bool put(char *out, size_t bytes, const char *from, const char *end)
{
    size_t len = (size_t)(end - from);

    if (len >= bytes)
        return false;
    memcpy(out, from, len);
    out[len] = '\0';
    return true;
}

const char *taint_said_read(struct taint_said *said, const char *text)
{
    const char *end = text + strlen(text), *colon = strrchr(text, ':');
    const char *equal;

    *said = (struct taint_said){.any_effect = !colon};
    if (colon && !taint_effect_find(colon + 1, &said->effect))
        return "the effect of a taint is one of None, NoSchedule, NoExecute";
    if (colon)
        end = colon;
    equal = memchr(text, '=', (size_t)(end - text));
    if (!put(said->key, sizeof said->key, text, equal ? equal : end) ||
        !kube_name_is_qualified(said->key))
        return "a taint's key is a label's name, as example.com/broken";
    if (equal && (!put(said->value, sizeof said->value, equal + 1, end) ||
                  !kube_name_is_label_value(said->value)))
        return "a taint's value is a label's, at most 63 letters, digits and - _ . between them";
    return NULL;
}
