#include "shim/offline/document.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/store/store.h"
#include "shim/checkpoint_json.h"
#include "shim/must.h"
#include "shim/offline/document_reading.h"

/* ---- resources ---- */

/* What was read of a resource so far, to be let go of. */
struct devices {
    Checkpoint__V1__Device *v;
    Checkpoint__V1__Device **pointers;
    size_t len;
};

static void devices_fini(struct devices *devices)
{
    for (size_t i = 0; i < devices->len; i++)
        free(devices->v[i].numa_nodes);
    free(devices->v);
    free(devices->pointers);
}

static int read_nodes(const struct reading *at, const json_t *list, Checkpoint__V1__Device *device)
{
    size_t i;
    json_t *one;

    if (!json_is_array(list))
        return reading_wrong(at, "numaNodes is no list");
    device->numa_nodes = must(calloc(json_array_size(list) + 1, sizeof *device->numa_nodes));
    device->n_numa_nodes = json_array_size(list);
    json_array_foreach(list, i, one) {
        if (!json_is_integer(one))
            return reading_wrong(at, "numaNodes is no list of numbers");
        device->numa_nodes[i] = json_integer_value(one);
    }
    return 0;
}

/* Earlier releases wrote no unhealthySinceMs. */
static int read_devices(const struct reading *at, const json_t *list, struct devices *devices)
{
    size_t i;
    json_t *one;

    if (!json_is_array(list))
        return reading_wrong(at, "devices is no list");
    devices->v = must(calloc(json_array_size(list) + 1, sizeof *devices->v));
    devices->pointers = must(calloc(json_array_size(list) + 1, sizeof(void *)));
    json_array_foreach(list, i, one) {
        Checkpoint__V1__Device *device = &devices->v[i];
        const json_t *nodes;
        json_int_t since = 0;
        int healthy;

        checkpoint__v1__device__init(device);
        devices->pointers[i] = device;
        devices->len++;
        if (reading_unpack(at, one, "{s:s, s:b, s:o, s?I}", "id", &device->id, "healthy", &healthy,
                           "numaNodes", &nodes, "unhealthySinceMs", &since) < 0 ||
            reading_number_from_0(at, since, INT64_MAX, "unhealthySinceMs") < 0 ||
            read_nodes(at, nodes, device) < 0)
            return -1;
        device->unhealthy_since_ms = (uint64_t)since;
        device->healthy = healthy;
    }
    return 0;
}

static int read_away(const struct reading *at, const json_t *since, Checkpoint__V1__Resource *row)
{
    if (!row->stopped)
        return json_is_null(since) ? 0 : reading_wrong(at, "awaySinceMs of one that is not away");
    if (!json_is_integer(since) || json_integer_value(since) < 0)
        return reading_wrong(at, "awaySinceMs is no number of milliseconds");
    row->stopped_ms = (uint64_t)json_integer_value(since);
    return 0;
}

/* Earlier releases wrote neither of the two, nor healthClosed. */
static int read_no_execute(const struct reading *at, const json_t *ids, const json_t *boot,
                           Checkpoint__V1__Resource *row)
{
    if (boot && reading_text_or_empty(at, boot, "noExecuteBoot", &row->no_execute_boot_id) < 0)
        return -1;
    return ids ? reading_texts_of(at, ids, "noExecute", &row->no_execute_ids,
                                  &row->n_no_execute_ids)
               : 0;
}

static int read_resource(const struct reading *at, json_t *value)
{
    Checkpoint__V1__Resource row = CHECKPOINT__V1__RESOURCE__INIT;
    struct devices devices = {0};
    const json_t *socket, *list, *reason, *since, *boot, *no_execute = NULL, *no_boot = NULL;
    int start, preferred, away, closed = 0, rc;
    json_int_t uid = 0; /* earlier releases wrote none */

    rc = reading_unpack(at, value,
                        "{s:s, s:o, s?I, s:b, s:b, s:o, s:b, s:o, s:o, s:o, s?o, s?o, s?b}", "name",
                        &row.name, "socket", &socket, "socketUid", &uid, "preStart", &start,
                        "preferred", &preferred, "devices", &list, "away", &away, "awayFor",
                        &reason, "awaySinceMs", &since, "awayBoot", &boot, "noExecute", &no_execute,
                        "noExecuteBoot", &no_boot, "healthClosed", &closed);
    if (rc < 0)
        return rc;
    row.health_closed = closed;
    row.pre_start_required = start;
    row.get_preferred_allocation_available = preferred;
    row.stopped = away;
    row.uid = (uint32_t)uid;
    if (reading_text_or_empty(at, socket, "socket", &row.endpoint) < 0 ||
        reading_number_from_0(at, uid, UINT32_MAX, "socketUid") < 0 ||
        reading_text_or_empty(at, reason, "awayFor", &row.stop_reason) < 0 ||
        reading_text_or_empty(at, boot, "awayBoot", &row.stopped_boot_id) < 0 ||
        read_away(at, since, &row) < 0 || read_no_execute(at, no_execute, no_boot, &row) < 0)
        return -1;
    rc = read_devices(at, list, &devices);
    row.devices = devices.pointers;
    row.n_devices = devices.len;
    if (rc == 0)
        reading_add_row(at, DEVICEMGR_RECORD_RESOURCE, row.name, "", "", &row.base);
    devices_fini(&devices);
    free(row.no_execute_ids);
    return rc;
}

/* ---- allocations ---- */

/* What was read of the claims of one so far, to be let go of. */
struct by_claims_read {
    Checkpoint__V1__ByClaim *v;
    Checkpoint__V1__ByClaim **pointers;
    size_t len;
};

static int read_by_claims(const struct reading *at, const json_t *list, struct by_claims_read *by)
{
    size_t i;
    json_t *one;

    if (json_array_size(list) == 0)
        return reading_wrong(at, "byClaims is no list of claims");
    by->v = must(calloc(json_array_size(list) + 1, sizeof *by->v));
    by->pointers = must(calloc(json_array_size(list) + 1, sizeof(void *)));
    json_array_foreach(list, i, one) {
        Checkpoint__V1__ByClaim *pair = &by->v[i];
        int looks;

        checkpoint__v1__by_claim__init(pair);
        by->pointers[i] = pair;
        by->len++;
        if (reading_unpack(at, one, "{s:s, s:s, s:b}", "id", &pair->device_id, "claimUid",
                           &pair->claim_uid, "adminAccess", &looks) < 0)
            return -1;
        pair->looks = looks;
    }
    return 0;
}

/* Without the plugin's answer there is no boot that it is of. */
static int read_allocation(const struct reading *at, json_t *value)
{
    Checkpoint__V1__Allocation row = CHECKPOINT__V1__ALLOCATION__INIT;
    const json_t *ids, *boot, *asked = NULL, *by_claims = NULL;
    struct by_claims_read by = {0};
    const char *chosen_by;
    char *ignored;
    int cached, rc;

    if (reading_unpack(at, value, "{s:s, s:s, s:s, s:o, s?o, s:s, s?o, s:b, s:o}", "podUid",
                       &row.pod_uid, "container", &row.container, "resource", &row.resource, "ids",
                       &ids, "asked", &asked, "chosenBy", &chosen_by, "byClaims", &by_claims,
                       "optionsCached", &cached, "optionsBoot", &boot) < 0 ||
        reading_text_or_empty(at, boot, "optionsBoot", &ignored) < 0)
        return -1;
    row.own_choice = strcmp(chosen_by, "shim") == 0;
    row.claimed = strcmp(chosen_by, "claim") == 0;
    if (!row.own_choice && !row.claimed && strcmp(chosen_by, "kubelet") != 0)
        return reading_wrong(at, "chosenBy is neither shim, kubelet nor claim");
    if (by_claims && !row.claimed)
        return reading_wrong(at, "byClaims of one that was chosen by no claim");
    if (asked && json_array_size(asked) == 0)
        return reading_wrong(at, "asked names nothing");
    rc = reading_texts_of(at, ids, "ids", &row.device_ids, &row.n_device_ids);
    if (rc == 0 && asked)
        rc = reading_texts_of(at, asked, "asked", &row.asked_ids, &row.n_asked_ids);
    if (rc == 0 && by_claims)
        rc = read_by_claims(at, by_claims, &by);
    row.by_claims = by.pointers;
    row.n_by_claims = by.len;
    if (rc == 0)
        reading_add_row(at, DEVICEMGR_RECORD_ALLOCATION, row.pod_uid, row.container, row.resource,
                        &row.base);
    free(row.device_ids);
    free(row.asked_ids);
    free(by.v);
    free(by.pointers);
    return rc;
}

/* ---- the other rows ---- */

static int read_pod(const struct reading *at, json_t *value)
{
    Checkpoint__V1__Pod row = CHECKPOINT__V1__POD__INIT;
    const json_t *name_space, *name, *sandbox, *boot, *tokens;
    int stopped, died, remade;
    json_int_t attempt;

    if (reading_unpack(at, value, "{s:s, s:o, s:o, s:o, s:I, s:b, s:b, s:b, s:o, s:o}", "uid",
                       &row.uid, "namespace", &name_space, "name", &name, "sandbox", &sandbox,
                       "attempt", &attempt, "stopped", &stopped, "died", &died, "remade", &remade,
                       "boot", &boot, "tokens", &tokens) < 0 ||
        reading_text_or_empty(at, name_space, "namespace", &row.namespace_) < 0 ||
        reading_text_or_empty(at, name, "name", &row.name) < 0 ||
        reading_text_or_empty(at, sandbox, "sandbox", &row.sandbox_id) < 0 ||
        reading_text_or_empty(at, boot, "boot", &row.boot_id) < 0 ||
        reading_number_from_0(at, attempt, UINT32_MAX, "attempt") < 0 ||
        reading_texts_of(at, tokens, "tokens", &row.tokens, &row.n_tokens) < 0)
        return -1;
    row.attempt = (uint32_t)attempt;
    row.stopped = stopped;
    row.died = died;
    row.remade = remade;
    reading_add_row(at, DEVICEMGR_RECORD_POD, row.uid, "", "", &row.base);
    free(row.tokens);
    return 0;
}

/* All that an order has, and what a taint has besides. */
#define ORDER_FORMAT "{s:s, s:s, s:o, s:o, s:I, s:I, s:b"
#define TAINT_FORMAT ORDER_FORMAT ", s:o, s:I}"

static int read_order(const struct reading *at, json_t *value)
{
    Checkpoint__V1__Order row = CHECKPOINT__V1__ORDER__INIT;
    const json_t *id, *reason, *taint = json_null();
    const char *kind = json_string_value(json_object_get(value, "kind"));
    bool is_taint = kind && strcmp(kind, "taint") == 0;
    json_int_t at_s, more_s, for_s = 0;
    int over;

    if (reading_unpack(at, value, is_taint ? TAINT_FORMAT : ORDER_FORMAT "}", "kind", &row.kind,
                       "resource", &row.resource, "id", &id, "reason", &reason, "atSeconds", &at_s,
                       "moreSeconds", &more_s, "over", &over, "value", &taint, "forSeconds",
                       &for_s) < 0 ||
        reading_text_or_empty(at, id, "id", &row.id) < 0 ||
        reading_text_or_empty(at, reason, "reason", &row.reason) < 0 ||
        reading_text_or_empty(at, taint, "value", &row.value) < 0 ||
        reading_number_from_0(at, at_s, INT64_MAX, "atSeconds") < 0 ||
        reading_number_from_0(at, more_s, INT64_MAX / 1000, "moreSeconds") < 0 ||
        reading_number_from_0(at, for_s, INT64_MAX / 1000, "forSeconds") < 0)
        return -1;
    row.at_s = (uint64_t)at_s;
    row.more_ms = (uint64_t)more_s * 1000;
    row.over = over;
    row.for_ms = (uint64_t)for_s * 1000; /* from the daemon's start on: no boot is said */
    reading_add_row(at, DEVICEMGR_RECORD_ORDER, row.kind, row.resource, row.id, &row.base);
    return 0;
}

/* null: the pod's own. */
static int read_grace(const struct reading *at, const json_t *grace, const char *wrong,
                      protobuf_c_boolean *own, uint64_t *grace_ms)
{
    *own = json_is_null(grace);
    *grace_ms = (uint64_t)json_integer_value(grace);
    if (*own || (json_is_integer(grace) && json_integer_value(grace) >= 0))
        return 0;
    return reading_wrong(at, wrong);
}

/* Earlier releases wrote neither askedMs, orLess nor told. */
static int read_ask(const struct reading *at, json_t *value, Checkpoint__V1__EndingAsk *ask)
{
    json_int_t token, at_s, asked = 0;
    const json_t *grace, *why;
    int here, or_less = 0, told = 0;

    checkpoint__v1__ending_ask__init(ask);
    if (reading_unpack(at, value, "{s:s, s:I, s?I, s:o, s?b, s:b, s:o, s:I, s?b}", "asker",
                       &ask->asker, "token", &token, "askedMs", &asked, "graceMs", &grace, "orLess",
                       &or_less, "here", &here, "why", &why, "atSeconds", &at_s, "told",
                       &told) < 0 ||
        reading_number_from_0(at, asked, INT64_MAX, "askedMs") < 0 ||
        reading_number_from_0(at, token, INT64_MAX, "token") < 0 ||
        reading_number_from_0(at, at_s, INT64_MAX, "atSeconds") < 0 ||
        read_grace(at, grace, "graceMs is neither a number from 0 on nor null", &ask->own_grace,
                   &ask->grace_ms) < 0 ||
        reading_text_or_empty(at, why, "why", &ask->why) < 0)
        return -1;
    ask->token = (uint64_t)token;
    ask->asked_ms = (uint64_t)asked;
    ask->or_less = or_less;
    ask->here = here;
    ask->at_s = (uint64_t)at_s;
    ask->told = told;
    return 0;
}

/* With `asks`, which has room for those of `list`. */
static int read_asks(const struct reading *at, const json_t *list, Checkpoint__V1__EndingAsk *asks,
                     Checkpoint__V1__Ending *row)
{
    size_t i;
    json_t *one;

    json_array_foreach(list, i, one) {
        if (read_ask(at, one, &asks[i]) < 0)
            return -1;
        row->asks[row->n_asks++] = &asks[i];
    }
    return 0;
}

/* Earlier releases wrote none of the last five. */
static int read_ending(const struct reading *at, json_t *value)
{
    Checkpoint__V1__Ending row = CHECKPOINT__V1__ENDING__INIT;
    Checkpoint__V1__EndingAsk *asks;
    const json_t *name_space, *name, *list, *boot, *order = NULL, *sidecars = NULL;
    json_int_t asked, due, unasked = 0, unasked_since = 0;
    int is_static, earlier_boot = 0, rc;

    if (reading_unpack(
            at, value, "{s:s, s:o, s:o, s:s, s:o, s:o, s:I, s:I, s:b, s?b, s?o, s?I, s?I, s?o}",
            "uid", &row.pod_uid, "namespace", &name_space, "name", &name, "state", &row.state,
            "asks", &list, "boot", &boot, "askedMs", &asked, "dueMs", &due, "static", &is_static,
            "earlierBoot", &earlier_boot, "orderGraceMs", &order, "unaskedMs", &unasked,
            "unaskedSinceMs", &unasked_since, "sidecars", &sidecars) < 0 ||
        (order && read_grace(at, order, "orderGraceMs is neither a number from 0 on nor null",
                             &row.order_own_grace, &row.order_grace_ms) < 0) ||
        reading_text_or_empty(at, name_space, "namespace", &row.namespace_) < 0 ||
        reading_text_or_empty(at, name, "name", &row.name) < 0 ||
        reading_text_or_empty(at, boot, "boot", &row.boot_id) < 0 ||
        reading_number_from_0(at, asked, INT64_MAX, "askedMs") < 0 ||
        reading_number_from_0(at, due, INT64_MAX, "dueMs") < 0 ||
        reading_number_from_0(at, unasked, INT64_MAX, "unaskedMs") < 0 ||
        reading_number_from_0(at, unasked_since, INT64_MAX, "unaskedSinceMs") < 0)
        return -1;
    if (!json_is_array(list))
        return reading_wrong(at, "asks is no list");
    if (sidecars && reading_texts_of(at, sidecars, "sidecars", &row.sidecars, &row.n_sidecars) < 0)
        return -1;
    row.asked_ms = (uint64_t)asked;
    row.due_ms = (uint64_t)due;
    row.static_pod = is_static;
    row.earlier_boot = earlier_boot;
    row.unasked_ms = (uint64_t)unasked;
    row.unasked_since_ms = (uint64_t)unasked_since;
    asks = must(calloc(json_array_size(list) + 1, sizeof *asks));
    row.asks = must(calloc(json_array_size(list) + 1, sizeof *row.asks));
    rc = read_asks(at, list, asks, &row);
    if (rc == 0)
        reading_add_row(at, DEVICEMGR_RECORD_ENDING, row.pod_uid, "", "", &row.base);
    free(row.sidecars);
    free(row.asks);
    free(asks);
    return rc;
}

/* ---- all of it ---- */

static int read_list(struct reading *at, const char *name, const json_t *list,
                     int (*read)(const struct reading *at, json_t *value))
{
    json_t *one;

    at->list = name;
    if (!json_is_array(list)) {
        snprintf(at->err, at->err_bytes, "%s is no list", name);
        return -1;
    }
    json_array_foreach(list, at->index, one) {
        if (read(at, one) < 0)
            return -1;
    }
    return 0;
}

static int judge_head(const struct reading *at, const json_t *root)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    const json_t *version = json_object_get(root, "schemaVersion");

    if (!format || strcmp(format, CHECKPOINT_JSON_FORMAT) != 0) {
        snprintf(at->err, at->err_bytes,
                 "it is no document of \"checkpoint export\": its format is "
                 "not " CHECKPOINT_JSON_FORMAT);
        return -1;
    }
    if (json_is_integer(version) && json_integer_value(version) >= 1 &&
        json_integer_value(version) <= store_version())
        return 0;
    snprintf(at->err, at->err_bytes,
             "its schema version is none that this program knows, which are up to %d",
             store_version());
    return -1;
}

static int read_all(struct reading *at, json_t *root)
{
    const json_t *resources, *allocations, *pods, *orders, *drivers, *claims, *endings;
    json_error_t error;
    const char *format;
    int sound;

    if (judge_head(at, root) < 0)
        return -1;
    if (json_unpack_ex(root, &error, JSON_STRICT,
                       "{s:s, s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "format", &format,
                       "schemaVersion", &at->document->version, "sound", &sound, "resources",
                       &resources, "allocations", &allocations, "pods", &pods, "orders", &orders,
                       "drivers", &drivers, "claims", &claims, "endings", &endings) < 0) {
        snprintf(at->err, at->err_bytes, "%s", error.text);
        return -1;
    }
    at->document->sound = sound;
    return read_list(at, "resources", resources, read_resource) < 0 ||
                   read_list(at, "allocations", allocations, read_allocation) < 0 ||
                   read_list(at, "pods", pods, read_pod) < 0 ||
                   read_list(at, "orders", orders, read_order) < 0 ||
                   read_list(at, "drivers", drivers, document_read_driver) < 0 ||
                   read_list(at, "claims", claims, document_read_claim) < 0 ||
                   read_list(at, "endings", endings, read_ending) < 0
               ? -1
               : 0;
}

int document_parse(const char *text, size_t len, struct document *out, char *err, size_t err_bytes)
{
    struct document document = {0};
    struct reading at = {.document = &document, .err = err, .err_bytes = err_bytes};
    json_error_t error;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    int rc;

    if (!root) {
        snprintf(err, err_bytes, "it is neither a checkpoint nor JSON: line %d, column %d: %s",
                 error.line, error.column, error.text);
        return -1;
    }
    rc = read_all(&at, root);
    json_decref(root);
    if (rc < 0)
        document_fini(&document);
    else
        *out = document;
    return rc;
}

void document_fini(struct document *document)
{
    rows_fini(&document->rows);
}
