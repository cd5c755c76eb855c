#include "shim/checkpoint_json.h"

#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "shim/base64.h"
#include "shim/must.h"

/* ---- values ---- */

json_t *checkpoint_json_text(const char *text)
{
    json_t *value = json_string(text);
    char *copy;

    if (value)
        return value;
    copy = must(strdup(text));
    for (char *c = copy; *c; c++)
        *c = (unsigned char)*c < 0x80 ? *c : '?';
    value = must(json_string(copy));
    free(copy);
    return value;
}

static json_t *text_or_null(const char *text)
{
    return text[0] ? checkpoint_json_text(text) : json_null();
}

static json_t *number(uint64_t is)
{
    return must(json_integer((json_int_t)is));
}

void checkpoint_json_set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) < 0)
        abort(); /* out of memory */
}

static void append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) < 0)
        abort(); /* out of memory */
}

static json_t *texts_of(char *const *texts, size_t len)
{
    json_t *all = must(json_array());

    for (size_t i = 0; i < len; i++)
        append(all, checkpoint_json_text(texts[i]));
    return all;
}

/* ---- rows ---- */

static json_t *device_of(const Checkpoint__V1__Device *device)
{
    json_t *one = must(json_object()), *nodes = must(json_array());

    for (size_t i = 0; i < device->n_numa_nodes; i++)
        append(nodes, must(json_integer(device->numa_nodes[i])));
    checkpoint_json_set(one, "id", checkpoint_json_text(device->id));
    checkpoint_json_set(one, "healthy", json_boolean(device->healthy));
    checkpoint_json_set(one, "numaNodes", nodes);
    return one;
}

static json_t *resource_of(const uint8_t *value, size_t bytes)
{
    Checkpoint__V1__Resource *row = checkpoint__v1__resource__unpack(NULL, bytes, value);
    json_t *one, *devices;

    if (!row)
        return NULL;
    one = must(json_object());
    devices = must(json_array());
    for (size_t i = 0; i < row->n_devices; i++)
        append(devices, device_of(row->devices[i]));
    checkpoint_json_set(one, "name", checkpoint_json_text(row->name));
    checkpoint_json_set(one, "socket", text_or_null(row->endpoint));
    checkpoint_json_set(one, "preStart", json_boolean(row->pre_start_required));
    checkpoint_json_set(one, "preferred", json_boolean(row->get_preferred_allocation_available));
    checkpoint_json_set(one, "devices", devices);
    checkpoint_json_set(one, "away", json_boolean(row->stopped));
    checkpoint_json_set(one, "awayFor", text_or_null(row->stop_reason));
    checkpoint_json_set(one, "awaySinceMs", row->stopped ? number(row->stopped_ms) : json_null());
    checkpoint_json_set(one, "awayBoot", text_or_null(row->stopped_boot_id));
    checkpoint__v1__resource__free_unpacked(row, NULL);
    return one;
}

static json_t *allocation_of(const uint8_t *value, size_t bytes)
{
    Checkpoint__V1__Allocation *row = checkpoint__v1__allocation__unpack(NULL, bytes, value);
    json_t *one;

    if (!row)
        return NULL;
    one = must(json_object());
    checkpoint_json_set(one, "podUid", checkpoint_json_text(row->pod_uid));
    checkpoint_json_set(one, "container", checkpoint_json_text(row->container));
    checkpoint_json_set(one, "resource", checkpoint_json_text(row->resource));
    checkpoint_json_set(one, "ids", texts_of(row->device_ids, row->n_device_ids));
    checkpoint_json_set(one, "chosenBy",
                        checkpoint_json_text(row->own_choice ? "shim" : "kubelet"));
    checkpoint_json_set(one, "optionsCached", json_boolean(row->has_options));
    checkpoint_json_set(one, "optionsBoot", text_or_null(row->boot_id));
    checkpoint__v1__allocation__free_unpacked(row, NULL);
    return one;
}

static json_t *pod_of(const uint8_t *value, size_t bytes)
{
    Checkpoint__V1__Pod *row = checkpoint__v1__pod__unpack(NULL, bytes, value);
    json_t *one;

    if (!row)
        return NULL;
    one = must(json_object());
    checkpoint_json_set(one, "uid", checkpoint_json_text(row->uid));
    checkpoint_json_set(one, "namespace", text_or_null(row->namespace_));
    checkpoint_json_set(one, "name", text_or_null(row->name));
    checkpoint_json_set(one, "sandbox", text_or_null(row->sandbox_id));
    checkpoint_json_set(one, "attempt", number(row->attempt));
    checkpoint_json_set(one, "stopped", json_boolean(row->stopped));
    checkpoint_json_set(one, "died", json_boolean(row->died));
    checkpoint_json_set(one, "remade", json_boolean(row->remade));
    checkpoint_json_set(one, "boot", text_or_null(row->boot_id));
    checkpoint_json_set(one, "tokens", texts_of(row->tokens, row->n_tokens));
    checkpoint__v1__pod__free_unpacked(row, NULL);
    return one;
}

static json_t *order_of(const uint8_t *value, size_t bytes)
{
    Checkpoint__V1__Order *row = checkpoint__v1__order__unpack(NULL, bytes, value);
    json_t *one;

    if (!row)
        return NULL;
    one = must(json_object());
    checkpoint_json_set(one, "kind", checkpoint_json_text(row->kind));
    checkpoint_json_set(one, "resource", checkpoint_json_text(row->resource));
    checkpoint_json_set(one, "id", text_or_null(row->id));
    checkpoint_json_set(one, "reason", text_or_null(row->reason));
    checkpoint_json_set(one, "atSeconds", number(row->at_s));
    checkpoint_json_set(one, "moreSeconds", number(row->more_ms / 1000));
    checkpoint_json_set(one, "over", json_boolean(row->over));
    checkpoint__v1__order__free_unpacked(row, NULL);
    return one;
}

static json_t *driver_of(const uint8_t *value, size_t bytes)
{
    Checkpoint__V1__Driver *row = checkpoint__v1__driver__unpack(NULL, bytes, value);
    json_t *one;

    if (!row)
        return NULL;
    one = must(json_object());
    checkpoint_json_set(one, "name", checkpoint_json_text(row->name));
    checkpoint_json_set(one, "services", texts_of(row->services, row->n_services));
    checkpoint__v1__driver__free_unpacked(row, NULL);
    return one;
}

static json_t *bytes_or_null(bool is_there, const ProtobufCBinaryData *bytes)
{
    char *text;
    json_t *value;

    if (!is_there)
        return json_null();
    text = base64_encode(bytes->data, bytes->len);
    value = checkpoint_json_text(text);
    free(text);
    return value;
}

static json_t *claim_of(const uint8_t *value, size_t bytes)
{
    Checkpoint__V1__Claim *row = checkpoint__v1__claim__unpack(NULL, bytes, value);
    json_t *one;

    if (!row)
        return NULL;
    one = must(json_object());
    checkpoint_json_set(one, "uid", checkpoint_json_text(row->uid));
    checkpoint_json_set(one, "driver", checkpoint_json_text(row->driver));
    checkpoint_json_set(one, "namespace", text_or_null(row->namespace_));
    checkpoint_json_set(one, "name", text_or_null(row->name));
    checkpoint_json_set(one, "state", checkpoint_json_text(row->state));
    checkpoint_json_set(one, "answer", bytes_or_null(row->has_response, &row->response));
    checkpoint__v1__claim__free_unpacked(row, NULL);
    return one;
}

/* ---- all of them ---- */

static const struct {
    const char *kind, *list;
    json_t *(*row)(const uint8_t *value, size_t bytes);
} LISTS[] = {{"resource", "resources", resource_of},
             {"allocation", "allocations", allocation_of},
             {"pod", "pods", pod_of},
             {"order", "orders", order_of},
             {"driver", "drivers", driver_of},
             {"claim", "claims", claim_of}};
#define LISTS_LEN (sizeof LISTS / sizeof LISTS[0])

json_t *checkpoint_json_new(void)
{
    json_t *document = must(json_object());

    checkpoint_json_set(document, "format", checkpoint_json_text(CHECKPOINT_JSON_FORMAT));
    for (size_t i = 0; i < LISTS_LEN; i++)
        checkpoint_json_set(document, LISTS[i].list, must(json_array()));
    return document;
}

void checkpoint_json_set_head(json_t *document, uint64_t schema_version, bool sound)
{
    checkpoint_json_set(document, "schemaVersion", number(schema_version));
    checkpoint_json_set(document, "sound", json_boolean(sound));
}

void checkpoint_json_add(json_t *document, const char *kind, const uint8_t *value, size_t bytes)
{
    for (size_t i = 0; i < LISTS_LEN; i++) {
        json_t *row = strcmp(kind, LISTS[i].kind) == 0 ? LISTS[i].row(value, bytes) : NULL;

        if (row)
            append(json_object_get(document, LISTS[i].list), row);
    }
}
