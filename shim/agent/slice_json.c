#include "shim/agent/slice_json.h"

#include <stdlib.h>
#include <string.h>

#include "shim/must.h"

#define TIME_ADDED "timeAdded"

/* ---- what is ordered ---- */

/* Takes `value`. False: it, or the name, is not UTF-8. */
static bool put(json_t *object, const char *name, json_t *value)
{
    return value && json_object_set_new(object, name, value) == 0;
}

static json_t *attribute_json(const Agent__V1__Attribute *attribute)
{
    switch (attribute->value_case) {
    case AGENT__V1__ATTRIBUTE__VALUE_NUMBER:
        return json_pack("{s:I}", "int", (json_int_t)attribute->number);
    case AGENT__V1__ATTRIBUTE__VALUE_FLAG:
        return json_pack("{s:b}", "bool", (int)attribute->flag);
    case AGENT__V1__ATTRIBUTE__VALUE_VERSION:
        return json_pack("{s:s}", "version", attribute->version);
    default:
        return json_pack("{s:s}", "string",
                         attribute->value_case == AGENT__V1__ATTRIBUTE__VALUE_TEXT ? attribute->text
                                                                                   : "");
    }
}

static json_t *taint_json(const Agent__V1__Taint *taint)
{
    if (!*taint->value)
        return json_pack("{s:s, s:s}", "key", taint->key, "effect", taint->effect);
    return json_pack("{s:s, s:s, s:s}", "key", taint->key, "value", taint->value, "effect",
                     taint->effect);
}

static bool put_taints(json_t *to, const Agent__V1__PoolDevice *device)
{
    json_t *taints = must(json_array());
    bool right = true;

    for (size_t i = 0; right && i < device->n_taints; i++)
        right = json_array_append_new(taints, taint_json(device->taints[i])) == 0;
    if (right && device->n_taints > 0)
        right = json_object_set(to, "taints", taints) == 0;
    json_decref(taints);
    return right;
}

/* NULL: a text is not UTF-8. */
static json_t *device_json(const Agent__V1__PoolDevice *device, bool basic)
{
    json_t *json = json_pack("{s:s}", "name", device->name);
    json_t *said = basic ? must(json_object()) : json, *attributes = must(json_object());
    bool right = json != NULL;

    for (size_t i = 0; right && i < device->n_attributes; i++)
        right = put(attributes, device->attributes[i]->name, attribute_json(device->attributes[i]));
    if (right && device->n_attributes > 0)
        right = json_object_set(said, "attributes", attributes) == 0;
    right = right && put_taints(said, device);
    if (right && basic)
        right = json_object_set(json, "basic", said) == 0;
    json_decref(attributes);
    if (basic)
        json_decref(said);
    if (right)
        return json;
    json_decref(json);
    return NULL;
}

json_t *slice_json_devices(const Agent__V1__PoolSlice *slice, bool basic)
{
    json_t *devices = must(json_array());

    for (size_t i = 0; i < slice->n_devices; i++) {
        if (json_array_append_new(devices, device_json(slice->devices[i], basic)) < 0) {
            json_decref(devices);
            return NULL;
        }
    }
    return devices;
}

/* ---- beside what is there ---- */

json_t *slice_json_said(const json_t *device, const char *key)
{
    json_t *said = json_object_get(device, key);

    return said ? said : json_object_get(json_object_get(device, "basic"), key);
}

const char *slice_json_name(const json_t *device)
{
    const char *name = json_string_value(json_object_get(device, "name"));

    return name ? name : "";
}

static const json_t *find_device(const json_t *devices, const char *name)
{
    const json_t *device;
    size_t i;

    json_array_foreach(devices, i, device) {
        if (strcmp(slice_json_name(device), name) == 0)
            return device;
    }
    return NULL;
}

bool slice_json_named(const json_t *devices, const json_t *others)
{
    const json_t *device;
    size_t i;

    if (json_array_size(devices) != json_array_size(others))
        return false;
    json_array_foreach(devices, i, device) {
        if (!find_device(others, slice_json_name(device)))
            return false;
    }
    return true;
}

static json_t *without_times(const json_t *devices)
{
    json_t *copy = must(json_deep_copy(devices)), *device, *taint;
    size_t i, k;

    json_array_foreach(copy, i, device) {
        json_array_foreach(slice_json_said(device, "taints"), k, taint)
            json_object_del(taint, TIME_ADDED);
    }
    return copy;
}

bool slice_json_same(const json_t *devices, const json_t *others)
{
    json_t *a, *b;
    bool same;

    if (!json_is_array(devices) || !json_is_array(others))
        return json_array_size(devices) == json_array_size(others);
    a = without_times(devices);
    b = without_times(others);
    same = json_equal(a, b);
    json_decref(a);
    json_decref(b);
    return same;
}

static bool is_same_text(const json_t *a, const json_t *b, const char *name)
{
    const char *x = json_string_value(json_object_get(a, name));
    const char *y = json_string_value(json_object_get(b, name));

    return strcmp(x ? x : "", y ? y : "") == 0;
}

static void keep_time(json_t *taint, const json_t *taints)
{
    const json_t *other;
    size_t i;

    json_array_foreach(taints, i, other) {
        json_t *added = json_object_get(other, TIME_ADDED);

        if (added && is_same_text(taint, other, "key") && is_same_text(taint, other, "value") &&
            is_same_text(taint, other, "effect") && json_object_set(taint, TIME_ADDED, added) < 0)
            abort(); /* out of memory */
    }
}

void slice_json_keep_times(json_t *devices, const json_t *from)
{
    json_t *device, *taint;
    size_t i, k;

    json_array_foreach(devices, i, device) {
        const json_t *before = find_device(from, slice_json_name(device));

        json_array_foreach(slice_json_said(device, "taints"), k, taint)
            keep_time(taint, slice_json_said(before, "taints"));
    }
}
