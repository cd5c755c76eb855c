#include "shim/checkpoint_json.h"

#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "shim/base64.h"
#include "shim/json_value.h"
#include "shim/must.h"

/* ---- rows ---- */

static json_t *device_of(const Checkpoint__V1__Device *device)
{
    json_t *one = must(json_object()), *nodes = must(json_array());

    for (size_t i = 0; i < device->n_numa_nodes; i++)
        json_value_append(nodes, must(json_integer(device->numa_nodes[i])));
    json_value_set(one, "id", json_value_text(device->id));
    json_value_set(one, "healthy", json_boolean(device->healthy));
    json_value_set(one, "numaNodes", nodes);
    json_value_set(one, "unhealthySinceMs", json_value_number(device->unhealthy_since_ms));
    return one;
}

static void put_resource(json_t *one, const ProtobufCMessage *message)
{
    const Checkpoint__V1__Resource *row = (const Checkpoint__V1__Resource *)message;
    json_t *devices = must(json_array());

    for (size_t i = 0; i < row->n_devices; i++)
        json_value_append(devices, device_of(row->devices[i]));
    json_value_set(one, "name", json_value_text(row->name));
    json_value_set(one, "socket", json_value_text_or_null(row->endpoint));
    json_value_set(one, "socketUid", json_value_number(row->uid));
    json_value_set(one, "preStart", json_boolean(row->pre_start_required));
    json_value_set(one, "preferred", json_boolean(row->get_preferred_allocation_available));
    json_value_set(one, "devices", devices);
    json_value_set(one, "away", json_boolean(row->stopped));
    json_value_set(one, "awayFor", json_value_text_or_null(row->stop_reason));
    json_value_set(one, "awaySinceMs",
                   row->stopped ? json_value_number(row->stopped_ms) : json_null());
    json_value_set(one, "awayBoot", json_value_text_or_null(row->stopped_boot_id));
    json_value_set(one, "noExecute", json_value_texts(row->no_execute_ids, row->n_no_execute_ids));
    json_value_set(one, "noExecuteBoot", json_value_text_or_null(row->no_execute_boot_id));
    json_value_set(one, "healthClosed", json_boolean(row->health_closed));
}

static json_t *by_claims_of(const Checkpoint__V1__Allocation *row)
{
    json_t *all = must(json_array());

    for (size_t i = 0; i < row->n_by_claims; i++) {
        json_t *one = must(json_object());

        json_value_set(one, "id", json_value_text(row->by_claims[i]->device_id));
        json_value_set(one, "claimUid", json_value_text(row->by_claims[i]->claim_uid));
        json_value_set(one, "adminAccess", json_boolean(row->by_claims[i]->looks));
        json_value_append(all, one);
    }
    return all;
}

static void put_allocation(json_t *one, const ProtobufCMessage *message)
{
    const Checkpoint__V1__Allocation *row = (const Checkpoint__V1__Allocation *)message;

    json_value_set(one, "podUid", json_value_text(row->pod_uid));
    json_value_set(one, "container", json_value_text(row->container));
    json_value_set(one, "resource", json_value_text(row->resource));
    json_value_set(one, "ids", json_value_texts(row->device_ids, row->n_device_ids));
    if (row->n_asked_ids > 0)
        json_value_set(one, "asked", json_value_texts(row->asked_ids, row->n_asked_ids));
    json_value_set(one, "chosenBy",
                   json_value_text(row->own_choice ? "shim"
                                   : row->claimed  ? "claim"
                                                   : "kubelet"));
    if (row->n_by_claims > 0)
        json_value_set(one, "byClaims", by_claims_of(row));
    json_value_set(one, "optionsCached", json_boolean(row->has_options));
    json_value_set(one, "optionsBoot", json_value_text_or_null(row->boot_id));
}

static void put_pod(json_t *one, const ProtobufCMessage *message)
{
    const Checkpoint__V1__Pod *row = (const Checkpoint__V1__Pod *)message;

    json_value_set(one, "uid", json_value_text(row->uid));
    json_value_set(one, "namespace", json_value_text_or_null(row->namespace_));
    json_value_set(one, "name", json_value_text_or_null(row->name));
    json_value_set(one, "sandbox", json_value_text_or_null(row->sandbox_id));
    json_value_set(one, "attempt", json_value_number(row->attempt));
    json_value_set(one, "stopped", json_boolean(row->stopped));
    json_value_set(one, "died", json_boolean(row->died));
    json_value_set(one, "remade", json_boolean(row->remade));
    json_value_set(one, "boot", json_value_text_or_null(row->boot_id));
    json_value_set(one, "tokens", json_value_texts(row->tokens, row->n_tokens));
}

static void put_order(json_t *one, const ProtobufCMessage *message)
{
    const Checkpoint__V1__Order *row = (const Checkpoint__V1__Order *)message;

    json_value_set(one, "kind", json_value_text(row->kind));
    json_value_set(one, "resource", json_value_text(row->resource));
    json_value_set(one, "id", json_value_text_or_null(row->id));
    json_value_set(one, "reason", json_value_text_or_null(row->reason));
    json_value_set(one, "atSeconds", json_value_number(row->at_s));
    json_value_set(one, "moreSeconds", json_value_number(row->more_ms / 1000));
    json_value_set(one, "over", json_boolean(row->over));
    if (strcmp(row->kind, "taint") != 0)
        return;
    json_value_set(one, "value", json_value_text_or_null(row->value));
    json_value_set(one, "forSeconds", json_value_number(row->for_ms / 1000));
}

static void put_driver(json_t *one, const ProtobufCMessage *message)
{
    const Checkpoint__V1__Driver *row = (const Checkpoint__V1__Driver *)message;

    json_value_set(one, "name", json_value_text(row->name));
    json_value_set(one, "services", json_value_texts(row->services, row->n_services));
    json_value_set(one, "wiped", json_boolean(row->wiped));
    json_value_set(one, "moved", json_boolean(row->moved));
    json_value_set(one, "wasElsewhere", json_boolean(row->was_elsewhere));
}

static json_t *bytes_or_null(bool is_there, const ProtobufCBinaryData *bytes)
{
    char *text;
    json_t *value;

    if (!is_there)
        return json_null();
    text = base64_encode(bytes->data, bytes->len);
    value = json_value_text(text);
    free(text);
    return value;
}

static json_t *user_of(const Checkpoint__V1__ClaimUser *user)
{
    json_t *one = must(json_object());

    json_value_set(one, "sandbox", json_value_text(user->sandbox_id));
    json_value_set(one, "container", json_value_text(user->container));
    json_value_set(one, "pod", json_value_text(user->pod));
    json_value_set(one, "podUid", json_value_text_or_null(user->pod_uid));
    json_value_set(one, "former", json_boolean(user->former));
    return one;
}

static json_t *claim_device_of(const Checkpoint__V1__ClaimDevice *device)
{
    json_t *one = must(json_object()), *cdi = must(json_array()), *requests = must(json_array());

    for (size_t i = 0; i < device->n_cdi; i++)
        json_value_append(cdi, json_value_text(device->cdi[i]));
    for (size_t i = 0; i < device->n_requests; i++)
        json_value_append(requests, json_value_text(device->requests[i]));
    json_value_set(one, "pool", json_value_text(device->pool));
    json_value_set(one, "device", json_value_text(device->device));
    json_value_set(one, "shareId", json_value_text_or_null(device->share_id));
    json_value_set(one, "cdi", cdi);
    json_value_set(one, "requests", requests);
    return one;
}

static void put_claim(json_t *one, const ProtobufCMessage *message)
{
    const Checkpoint__V1__Claim *row = (const Checkpoint__V1__Claim *)message;
    json_t *users = must(json_array()), *former = must(json_array()), *lapsed = must(json_array());

    for (size_t i = 0; i < row->n_users; i++)
        json_value_append(users, user_of(row->users[i]));
    for (size_t i = 0; i < row->n_former; i++)
        json_value_append(former, claim_device_of(row->former[i]));
    for (size_t i = 0; i < row->n_lapsed; i++)
        json_value_append(lapsed, claim_device_of(row->lapsed[i]));
    json_value_set(one, "uid", json_value_text(row->uid));
    json_value_set(one, "driver", json_value_text(row->driver));
    json_value_set(one, "namespace", json_value_text_or_null(row->namespace_));
    json_value_set(one, "name", json_value_text_or_null(row->name));
    json_value_set(one, "state", json_value_text(row->state));
    json_value_set(one, "answer", bytes_or_null(row->has_response, &row->response));
    json_value_set(one, "sent", json_boolean(row->sent));
    json_value_set(one, "unanswered", json_boolean(row->unanswered));
    json_value_set(one, "moved", json_boolean(row->moved));
    json_value_set(one, "local", json_boolean(row->local));
    json_value_set(one, "alone", json_boolean(row->alone));
    json_value_set(one, "users", users);
    json_value_set(one, "former", former);
    json_value_set(one, "lapsed", lapsed);
    json_value_set(one, "preparedMs",
                   row->prepared_ms > 0 ? json_value_number(row->prepared_ms) : json_null());
    json_value_set(one, "preparedBoot", json_value_text_or_null(row->boot_id));
}

static json_t *ask_of(const Checkpoint__V1__EndingAsk *ask)
{
    json_t *one = must(json_object());

    json_value_set(one, "asker", json_value_text(ask->asker));
    json_value_set(one, "token", json_value_number(ask->token));
    json_value_set(one, "askedMs", json_value_number(ask->asked_ms));
    json_value_set(one, "graceMs", ask->own_grace ? json_null() : json_value_number(ask->grace_ms));
    json_value_set(one, "orLess", json_boolean(ask->or_less));
    json_value_set(one, "here", json_boolean(ask->here));
    json_value_set(one, "why", json_value_text_or_null(ask->why));
    json_value_set(one, "atSeconds", json_value_number(ask->at_s));
    json_value_set(one, "told", json_boolean(ask->told));
    return one;
}

static void put_ending(json_t *one, const ProtobufCMessage *message)
{
    const Checkpoint__V1__Ending *row = (const Checkpoint__V1__Ending *)message;
    json_t *asks = must(json_array());

    for (size_t i = 0; i < row->n_asks; i++)
        json_value_append(asks, ask_of(row->asks[i]));
    json_value_set(one, "uid", json_value_text(row->pod_uid));
    json_value_set(one, "namespace", json_value_text_or_null(row->namespace_));
    json_value_set(one, "name", json_value_text_or_null(row->name));
    json_value_set(one, "state", json_value_text(row->state));
    json_value_set(one, "asks", asks);
    json_value_set(one, "boot", json_value_text_or_null(row->boot_id));
    json_value_set(one, "askedMs", json_value_number(row->asked_ms));
    json_value_set(one, "dueMs", json_value_number(row->due_ms));
    json_value_set(one, "static", json_boolean(row->static_pod));
    json_value_set(one, "earlierBoot", json_boolean(row->earlier_boot));
    json_value_set(one, "orderGraceMs",
                   row->order_own_grace ? json_null() : json_value_number(row->order_grace_ms));
    json_value_set(one, "unaskedMs", json_value_number(row->unasked_ms));
    json_value_set(one, "unaskedSinceMs", json_value_number(row->unasked_since_ms));
    json_value_set(one, "sidecars", json_value_texts(row->sidecars, row->n_sidecars));
}

/* ---- all of them ---- */

static const struct list {
    const char *kind, *name;
    const ProtobufCMessageDescriptor *row;
    void (*put)(json_t *one, const ProtobufCMessage *row);
} LISTS[] = {
    {"resource", "resources", &checkpoint__v1__resource__descriptor, put_resource},
    {"allocation", "allocations", &checkpoint__v1__allocation__descriptor, put_allocation},
    {"pod", "pods", &checkpoint__v1__pod__descriptor, put_pod},
    {"order", "orders", &checkpoint__v1__order__descriptor, put_order},
    {"driver", "drivers", &checkpoint__v1__driver__descriptor, put_driver},
    {"claim", "claims", &checkpoint__v1__claim__descriptor, put_claim},
    {"ending", "endings", &checkpoint__v1__ending__descriptor, put_ending},
};
#define LISTS_LEN (sizeof LISTS / sizeof LISTS[0])

json_t *checkpoint_json_new(void)
{
    json_t *document = must(json_object());

    json_value_set(document, "format", json_value_text(CHECKPOINT_JSON_FORMAT));
    for (size_t i = 0; i < LISTS_LEN; i++)
        json_value_set(document, LISTS[i].name, must(json_array()));
    return document;
}

void checkpoint_json_set_head(json_t *document, uint64_t schema_version, bool sound)
{
    json_value_set(document, "schemaVersion", json_value_number(schema_version));
    json_value_set(document, "sound", json_boolean(sound));
}

static void add(json_t *document, const struct list *list, const uint8_t *value, size_t bytes)
{
    ProtobufCMessage *row = protobuf_c_message_unpack(list->row, NULL, bytes, value);
    json_t *one;

    if (!row)
        return;
    one = must(json_object());
    list->put(one, row);
    json_value_append(json_object_get(document, list->name), one);
    protobuf_c_message_free_unpacked(row, NULL);
}

void checkpoint_json_add(json_t *document, const char *kind, const uint8_t *value, size_t bytes)
{
    for (size_t i = 0; i < LISTS_LEN; i++) {
        if (strcmp(kind, LISTS[i].kind) == 0)
            add(document, &LISTS[i], value, bytes);
    }
}
