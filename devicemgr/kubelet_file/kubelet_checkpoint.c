#include "devicemgr/kubelet_file/kubelet_checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "devicemgr/kubelet_file/base64.h"
#include "devicemgr/kubelet_file/kubelet_sum.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/options.h"

#define NODE_NONE (-1) /* the key of devices without topology */
#define NODE_TEXT_BYTES_MAX 24

struct parser {
    struct kubelet_checkpoint out;
    struct kubelet_sum sum;
    bool with_lists; /* some entry has the old form */
    char *err;
    size_t err_bytes;
};

static int fail(struct parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int fail(struct parser *parser, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(parser->err, parser->err_bytes, format, args);
    va_end(args);
    return -1;
}

/* ---- JSON ---- */

/*
 * The member as `json_type`. 0 with NULL in *out for null or no member, which Go reads alike; -1
 * for another type.
 */
static int get(struct parser *parser, const json_t *object, const char *name, json_type type,
               const json_t **out)
{
    static const char *const TYPES[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array",     [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a real number", [JSON_TRUE] = "a boolean",
        [JSON_FALSE] = "a boolean",  [JSON_NULL] = "null"};
    const json_t *value = json_object_get(object, name);

    *out = NULL;
    if (json_is_null(value))
        value = NULL;
    if (value && json_typeof(value) != type)
        return fail(parser, "\"%s\" is %s, not %s", name, TYPES[json_typeof(value)], TYPES[type]);
    *out = value;
    return 0;
}

static int check_strings(struct parser *parser, const json_t *list, const char *what)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!json_is_string(json_array_get(list, i)))
            return fail(parser, "%s: an id is no string", what);
    }
    return 0;
}

/* ---- the devices of an entry ---- */

struct node_ids {
    int64_t node;
    const char *key;
    const json_t *ids; /* NULL: a nil slice */
};

/* One id under one node. */
struct placed {
    const char *id;
    int64_t node;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *left = a, *right = b;
    int order = strverscmp(left->id, right->id);

    return order ? order : (left->node > right->node) - (left->node < right->node);
}

static int add_placed(struct parser *parser, struct kubelet_allocation *to,
                      const struct placed *placed)
{
    struct kubelet_device *last = to->devices_len ? &to->devices[to->devices_len - 1] : NULL;
    bool again = last && strcmp(last->id, placed->id) == 0;

    /* It stands there once for each time that its plugin has named the node. */
    if (again && last->nodes_len > 0 && last->nodes[last->nodes_len - 1] == placed->node)
        return 0;
    if (again && last->nodes_len == 0)
        return fail(parser, "\"DeviceIDs\": an id stands twice");
    if (!again) {
        to->devices = mem_grow(to->devices, to->devices_len, sizeof *to->devices);
        last = &to->devices[to->devices_len++];
        *last = (struct kubelet_device){.id = mem_strdup(placed->id)};
    }
    if (placed->node == NODE_NONE)
        return 0;
    last->nodes = mem_grow(last->nodes, last->nodes_len, sizeof *last->nodes);
    last->nodes[last->nodes_len++] = placed->node;
    return 0;
}

static int add_devices(struct parser *parser, struct kubelet_allocation *to,
                       const struct node_ids *nodes, size_t nodes_len)
{
    struct placed *placed = NULL;
    size_t len = 0;
    int rc = 0;

    for (size_t n = 0; n < nodes_len && rc == 0; n++) {
        rc = check_strings(parser, nodes[n].ids, "\"DeviceIDs\"");
        for (size_t i = 0; i < json_array_size(nodes[n].ids) && rc == 0; i++) {
            placed = mem_grow(placed, len, sizeof *placed);
            placed[len++] =
                (struct placed){json_string_value(json_array_get(nodes[n].ids, i)), nodes[n].node};
        }
    }
    if (len > 0)
        qsort(placed, len, sizeof *placed, compare_placed);
    for (size_t i = 0; i < len && rc == 0; i++)
        rc = add_placed(parser, to, &placed[i]);
    free(placed);
    return rc;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct node_ids *left = a, *right = b;

    return (left->node > right->node) - (left->node < right->node);
}

/* Only the text that Go would write: else two keys could be one number. */
static bool parse_node(const char *key, int64_t *node)
{
    char again[NODE_TEXT_BYTES_MAX];

    errno = 0;
    *node = strtoll(key, NULL, 10);
    snprintf(again, sizeof again, "%" PRId64, *node);
    return errno == 0 && strcmp(key, again) == 0;
}

static int read_nodes(struct parser *parser, const json_t *map, struct node_ids *nodes)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)map, key, value) {
        if (!parse_node(key, &nodes->node))
            return fail(parser, "\"DeviceIDs\": a key is no NUMA node's number");
        if (!json_is_array(value) && !json_is_null(value))
            return fail(parser, "\"DeviceIDs\": a NUMA node's ids are no array");
        nodes->key = key;
        nodes->ids = json_is_null(value) ? NULL : value;
        nodes++;
    }
    return 0;
}

/* The map of NUMA nodes; `map` NULL is Go's nil map. */
static int take_nodes(struct parser *parser, const json_t *map, struct kubelet_allocation *to)
{
    size_t len = json_object_size(map);
    struct node_ids *nodes = mem_alloc(len, sizeof *nodes);
    int rc = read_nodes(parser, map, nodes);

    qsort(nodes, len, sizeof *nodes, compare_nodes);
    kubelet_sum_text(&parser->sum,
                     map ? "(checkpoint.DevicesPerNUMA)map[" : "(checkpoint.DevicesPerNUMA)<nil>");
    if (rc == 0)
        rc = add_devices(parser, to, nodes, len);
    for (size_t i = 0; i < len && rc == 0; i++) {
        kubelet_sum_text(&parser->sum, i ? " " : "");
        kubelet_sum_text(&parser->sum, nodes[i].key);
        kubelet_sum_text(&parser->sum, ":");
        kubelet_sum_strings(&parser->sum, nodes[i].ids);
    }
    if (map)
        kubelet_sum_text(&parser->sum, "]");
    free(nodes);
    return rc;
}

/* The old format's list; NULL is Go's nil slice. */
static int take_list(struct parser *parser, const json_t *list, struct kubelet_allocation *to)
{
    const struct node_ids node = {.node = NODE_NONE, .ids = list};

    if (add_devices(parser, to, &node, 1) < 0)
        return -1;
    kubelet_sum_text(&parser->sum, "([]string)");
    kubelet_sum_strings(&parser->sum, list);
    return 0;
}

static int take_devices(struct parser *parser, const json_t *entry, struct kubelet_allocation *to)
{
    const json_t *ids;

    if (get(parser, entry, "DeviceIDs", parser->with_lists ? JSON_ARRAY : JSON_OBJECT, &ids) < 0)
        return -1;
    kubelet_sum_text(&parser->sum, "DeviceIDs:");
    return parser->with_lists ? take_list(parser, ids, to) : take_nodes(parser, ids, to);
}

/* ---- entries ---- */

static int take_string(struct parser *parser, const json_t *entry, const char *name, char **to)
{
    const json_t *value;

    if (get(parser, entry, name, JSON_STRING, &value) < 0)
        return -1;
    *to = mem_strdup(value ? json_string_value(value) : "");
    kubelet_sum_field(&parser->sum, name, *to);
    return 0;
}

static int take_options(struct parser *parser, const json_t *entry, struct kubelet_allocation *to)
{
    const json_t *value;
    uint8_t *octets = NULL;
    size_t len = 0;

    if (get(parser, entry, "AllocResp", JSON_STRING, &value) < 0)
        return -1;
    if (value && base64_decode(json_string_value(value), &octets, &len) < 0)
        return fail(parser, "\"AllocResp\" is no base64");
    kubelet_sum_text(&parser->sum, " AllocResp:([]uint8)");
    if (value)
        kubelet_sum_octets(&parser->sum, octets, len);
    else
        kubelet_sum_text(&parser->sum, "<nil>");
    to->options = options_unpack(octets, len);
    free(octets);
    return 0;
}

static int take_entry(struct parser *parser, const json_t *entry)
{
    struct kubelet_checkpoint *out = &parser->out;
    struct kubelet_allocation *to;

    if (!json_is_object(entry))
        return fail(parser, "an element of \"PodDeviceEntries\" is no object");
    out->allocations = mem_grow(out->allocations, out->allocations_len, sizeof *out->allocations);
    to = &out->allocations[out->allocations_len++];
    *to = (struct kubelet_allocation){0};
    kubelet_sum_text(&parser->sum, "{");
    if (take_string(parser, entry, "PodUID", &to->pod_uid) < 0 ||
        take_string(parser, entry, "ContainerName", &to->container) < 0 ||
        take_string(parser, entry, "ResourceName", &to->resource) < 0 ||
        take_devices(parser, entry, to) < 0 || take_options(parser, entry, to) < 0)
        return -1;
    kubelet_sum_text(&parser->sum, "}");
    return 0;
}

/* Which of the two formats: the kubelet tries one after the other, the file shows it. */
static void detect_format(struct parser *parser, const json_t *entries)
{
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *ids = json_object_get(json_array_get(entries, i), "DeviceIDs");

        parser->with_lists = parser->with_lists || json_is_array(ids);
        parser->out.with_nodes = parser->out.with_nodes || json_is_object(ids);
    }
}

static int take_entries(struct parser *parser, const json_t *data)
{
    const json_t *entries;

    if (get(parser, data, "PodDeviceEntries", JSON_ARRAY, &entries) < 0)
        return -1;
    detect_format(parser, entries);
    kubelet_sum_text(&parser->sum, "PodDeviceEntries:([]checkpoint.PodDevicesEntry)");
    kubelet_sum_text(&parser->sum, entries ? "[" : "<nil>");
    for (size_t i = 0; i < json_array_size(entries); i++) {
        kubelet_sum_text(&parser->sum, i ? " " : "");
        if (take_entry(parser, json_array_get(entries, i)) < 0)
            return -1;
    }
    kubelet_sum_text(&parser->sum, entries ? "]" : "");
    return 0;
}

/* ---- registered resources ---- */

struct named_list {
    const char *name;
    const json_t *ids; /* NULL: a nil slice */
};

/* Go compares strings byte by byte, as strcmp(3) does. */
static int compare_names(const void *a, const void *b)
{
    const struct named_list *left = a, *right = b;

    return strcmp(left->name, right->name);
}

static int read_lists(struct parser *parser, const json_t *map, struct named_list *lists)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)map, key, value) {
        if (!json_is_array(value) && !json_is_null(value))
            return fail(parser, "\"RegisteredDevices\": a resource's ids are no array");
        lists->name = key;
        lists->ids = json_is_null(value) ? NULL : value;
        if (check_strings(parser, lists->ids, "\"RegisteredDevices\"") < 0)
            return -1;
        lists++;
    }
    return 0;
}

static void take_resource(struct parser *parser, const struct named_list *list)
{
    struct kubelet_resource *to = &parser->out.resources[parser->out.resources_len++];

    to->name = mem_strdup(list->name);
    for (size_t i = 0; i < json_array_size(list->ids); i++)
        ids_add(&to->healthy, json_string_value(json_array_get(list->ids, i)));
    kubelet_sum_text(&parser->sum, to->name);
    kubelet_sum_text(&parser->sum, ":");
    kubelet_sum_strings(&parser->sum, list->ids);
}

static int take_resources(struct parser *parser, const json_t *data)
{
    const json_t *map;
    struct named_list *lists;
    size_t len;
    int rc;

    if (get(parser, data, "RegisteredDevices", JSON_OBJECT, &map) < 0)
        return -1;
    len = json_object_size(map);
    lists = mem_alloc(len, sizeof *lists);
    rc = read_lists(parser, map, lists);
    if (rc == 0) {
        qsort(lists, len, sizeof *lists, compare_names);
        parser->out.resources = mem_alloc(len, sizeof *parser->out.resources);
        kubelet_sum_text(&parser->sum, " RegisteredDevices:(map[string][]string)");
        kubelet_sum_text(&parser->sum, map ? "map[" : "<nil>");
        for (size_t i = 0; i < len; i++) {
            kubelet_sum_text(&parser->sum, i ? " " : "");
            take_resource(parser, &lists[i]);
        }
        kubelet_sum_text(&parser->sum, map ? "]" : "");
    }
    free(lists);
    return rc;
}

/* ---- the whole ---- */

static int take_data(struct parser *parser, const json_t *root)
{
    const json_t *data;

    if (get(parser, root, "Data", JSON_OBJECT, &data) < 0)
        return -1;
    if (!data)
        return fail(parser, "it has no \"Data\"");
    kubelet_sum_text(&parser->sum, "(checkpoint.checkpointData){");
    if (take_entries(parser, data) < 0 || take_resources(parser, data) < 0)
        return -1;
    kubelet_sum_text(&parser->sum, "}");
    return 0;
}

static int check_sum(struct parser *parser, const json_t *root)
{
    const json_t *told;

    if (get(parser, root, "Checksum", JSON_INTEGER, &told) < 0)
        return -1;
    if (!told)
        return fail(parser, "it has no \"Checksum\"");
    if (json_integer_value(told) != parser->sum.value)
        return fail(parser, "its checksum is %" JSON_INTEGER_FORMAT ", its data gives %" PRIu32,
                    json_integer_value(told), parser->sum.value);
    parser->out.checksum = parser->sum.value;
    return 0;
}

static int take_root(struct parser *parser, const json_t *root)
{
    if (!json_is_object(root))
        return fail(parser, "it is no JSON object");
    if (take_data(parser, root) < 0)
        return -1;
    return check_sum(parser, root);
}

int kubelet_checkpoint_parse(const char *text, size_t bytes, struct kubelet_checkpoint *out,
                             char *err, size_t err_bytes)
{
    struct parser parser = {.err = err, .err_bytes = err_bytes};
    json_error_t error;
    json_t *root;
    int rc;

    if (bytes > KUBELET_CHECKPOINT_BYTES_MAX)
        return fail(&parser, "it has more than %u MiB",
                    KUBELET_CHECKPOINT_BYTES_MAX / (1024 * 1024));
    kubelet_sum_init(&parser.sum);
    root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return fail(&parser, "it is no JSON: line %d, column %d: %s", error.line, error.column,
                    error.text);
    rc = take_root(&parser, root);
    json_decref(root);
    if (rc < 0)
        kubelet_checkpoint_fini(&parser.out);
    else
        *out = parser.out;
    return rc;
}

static void allocation_fini(struct kubelet_allocation *allocation)
{
    for (size_t i = 0; i < allocation->devices_len; i++) {
        free(allocation->devices[i].id);
        free(allocation->devices[i].nodes);
    }
    free(allocation->devices);
    free(allocation->pod_uid);
    free(allocation->container);
    free(allocation->resource);
    options_free(allocation->options);
}

void kubelet_checkpoint_fini(struct kubelet_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->allocations_len; i++)
        allocation_fini(&checkpoint->allocations[i]);
    for (size_t i = 0; i < checkpoint->resources_len; i++) {
        free(checkpoint->resources[i].name);
        ids_fini(&checkpoint->resources[i].healthy);
    }
    free(checkpoint->allocations);
    free(checkpoint->resources);
    *checkpoint = (struct kubelet_checkpoint){0};
}
