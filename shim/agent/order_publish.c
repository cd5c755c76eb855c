/*
 * A pool of ResourceSlices that is to be as it is ordered: they are listed and compared, then what
 * is not right is written, one request after the other, and what is there besides is deleted
 * (pool_slices.h). One attempt costs a list and at most two requests for each slice that differs.
 *
 * Names are made of the pool and the slice's number in it, not by the server: so one whose answer
 * was lost is not made twice. As with upstream's helper for drivers the Node owns them, so that
 * they go with it.
 */
#include "shim/agent/order_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/agent/json_splitter.h"
#include "shim/agent/pool_slices.h"
#include "shim/agent/slice_json.h"
#include "shim/hash.h"
#include "shim/must.h"

/* A node's name that is longer would leave no room for the rest of 253 characters. */
#define NODE_IN_NAME_BYTES_MAX 150
#define SLICE_NAME_BYTES_MAX 254

struct publishing {
    struct pool_slices slices;
    int64_t generation; /* once all are listed */
    size_t at;          /* the slice of the request under way */
    size_t deleted;     /* of the stale ones */
    bool too_many;      /* there are more of those */
    size_t list_bytes;
    struct json_splitter splitter;
    char *node_uid; /* NULL: not asked for yet */
};

void publishing_free(struct publishing *publishing)
{
    if (!publishing)
        return;
    pool_slices_fini(&publishing->slices);
    json_splitter_fini(&publishing->splitter);
    free(publishing->node_uid);
    free(publishing);
}

static void go_on(struct run *run);

/* What is not there, or not as it was, is looked at anew by the next attempt. */
static void fail(struct run *run, const struct api_result *result)
{
    if (result->outcome == API_NOT_FOUND)
        run_end(run, AGENT__V1__OUTCOME__AGAIN, result->words, result->retry_after_ms);
    else
        run_fail(run, result);
}

/* ---- names and paths ---- */

static bool is_basic(const struct run *run)
{
    return strcmp(run->version, "v1beta1") == 0;
}

static void slice_name(const struct run *run, size_t index, char out[SLICE_NAME_BYTES_MAX])
{
    const Agent__V1__PublishPool *what = run->order->publish_pool;
    const char *node = run->orders->node;
    bool fits = strlen(node) <= NODE_IN_NAME_BYTES_MAX;

    snprintf(out, SLICE_NAME_BYTES_MAX, "%s%s%s-%016llx-%zu", fits ? node : "", fits ? "-" : "",
             what->driver, (unsigned long long)hash_text(HASH_BEGIN, what->pool), index);
}

/* The index of the slice that is to have that name; the number of slices: none is. */
static size_t index_of(const struct run *run, const char *name)
{
    size_t len = run->order->publish_pool->n_slices;
    const char *dash = strrchr(name, '-');
    char wanted[SLICE_NAME_BYTES_MAX];
    unsigned long index = dash ? strtoul(dash + 1, NULL, 10) : len;

    if (index >= len)
        return len;
    slice_name(run, index, wanted);
    return strcmp(wanted, name) == 0 ? index : len;
}

static void slices_path(const struct run *run, struct query *query, const char *name)
{
    query_begin(query, SERVED_GROUP_PATH);
    query_segment(query, run->version);
    query_segment(query, "resourceslices");
    if (name)
        query_segment(query, name);
}

/* `body` is taken. */
static void send_json(struct run *run, const char *method, const char *name, const char *type,
                      json_t *body, const struct api_ops *ops)
{
    struct query query;

    slices_path(run, &query, name);
    run_ask_json(run, method, &query, type, body, "its names are not UTF-8", ops);
}

/* ---- what is wanted ---- */

/* NULL: it is none. */
static Agent__V1__PoolSlice *unpack(const struct run *run, size_t index)
{
    const ProtobufCBinaryData *packed = &run->order->publish_pool->slices[index];

    return agent__v1__pool_slice__unpack(NULL, packed->len, packed->data);
}

/* NULL: they are none. */
static json_t *wanted_devices(const struct run *run, size_t index)
{
    Agent__V1__PoolSlice *slice = unpack(run, index);
    json_t *devices = slice ? slice_json_devices(slice, is_basic(run)) : NULL;

    agent__v1__pool_slice__free_unpacked(slice, NULL);
    return devices;
}

static json_t *wanted_pool(const struct run *run)
{
    const Agent__V1__PublishPool *what = run->order->publish_pool;

    return json_pack("{s:s, s:I, s:I}", "name", what->pool, "generation",
                     (json_int_t)run->publishing->generation, "resourceSliceCount",
                     (json_int_t)what->n_slices);
}

/* ---- the writes ---- */

static void on_written(void *user, const struct api_result *result)
{
    struct run *run = user;

    run->request = NULL;
    if (result->outcome != API_DONE) {
        fail(run, result);
        return;
    }
    run->publishing->slices.wanted[run->publishing->at].done = true;
    go_on(run);
}

static void make(struct run *run)
{
    static const struct api_ops ops = {.done = on_written};
    const struct publishing *publishing = run->publishing;
    const Agent__V1__PublishPool *what = run->order->publish_pool;
    const char *node = run->orders->node;
    char name[SLICE_NAME_BYTES_MAX], group[64];

    slice_name(run, publishing->at, name);
    snprintf(group, sizeof group, "resource.k8s.io/%s", run->version);
    send_json(run, "POST", NULL, "application/json",
              json_pack("{s:s, s:s, s:{s:s, s:[{s:s, s:s, s:s, s:s, s:b}]}, s:{s:s, s:s, s:o, "
                        "s:o}}",
                        "apiVersion", group, "kind", "ResourceSlice", "metadata", "name", name,
                        "ownerReferences", "apiVersion", "v1", "kind", "Node", "name", node, "uid",
                        publishing->node_uid, "controller", 1, "spec", "driver", what->driver,
                        "nodeName", node, "pool", wanted_pool(run), "devices",
                        wanted_devices(run, publishing->at)),
              &ops);
}

static void on_node(void *user, const struct api_result *result)
{
    struct run *run = user;
    json_t *node = result->outcome == API_DONE ? answer_json(&run->answer) : NULL;
    const char *uid = json_string_value(json_object_get(json_object_get(node, "metadata"), "uid"));

    run->request = NULL;
    if (result->outcome != API_DONE) {
        fail(run, result);
    } else if (!uid) {
        run_end(run, AGENT__V1__OUTCOME__AGAIN, "the node that was answered has no uid", 0);
    } else {
        run->publishing->node_uid = must(strdup(uid));
        make(run);
    }
    json_decref(node);
}

static void ask_node(struct run *run)
{
    static const struct api_ops ops = {.body = run_body, .done = on_node};
    struct query query;

    query_begin(&query, "/api/v1/nodes");
    query_segment(&query, run->orders->node);
    if (!run_too_long(run, &query))
        run_ask(run, "GET", &query, NULL, NULL, &ops);
}

/* `devices`: taken; NULL: only what it says of the pool. It is changed only if it is still that
 * `version`; NULL: in any case. */
static void patch(struct run *run, const char *version, json_t *devices)
{
    static const struct api_ops ops = {.done = on_written};
    json_t *spec = json_pack("{s:o}", "pool", wanted_pool(run));
    char name[SLICE_NAME_BYTES_MAX];
    json_t *body;

    if (spec && devices && json_object_set_new(spec, "devices", devices) < 0)
        abort(); /* out of memory */
    body = version
               ? json_pack("{s:{s:s}, s:o}", "metadata", "resourceVersion", version, "spec", spec)
               : json_pack("{s:o}", "spec", spec);
    slice_name(run, run->publishing->at, name);
    send_json(run, "PATCH", name, "application/merge-patch+json", body, &ops);
}

static void on_slice(void *user, const struct api_result *result)
{
    struct run *run = user;
    json_t *slice = result->outcome == API_DONE ? answer_json(&run->answer) : NULL;
    const json_t *devices = json_object_get(json_object_get(slice, "spec"), "devices");
    const char *version =
        json_string_value(json_object_get(json_object_get(slice, "metadata"), "resourceVersion"));
    json_t *wanted = version ? wanted_devices(run, run->publishing->at) : NULL;

    run->request = NULL;
    if (result->outcome != API_DONE) {
        fail(run, result);
    } else if (!version) {
        run_end(run, AGENT__V1__OUTCOME__AGAIN, "the slice that was answered is none", 0);
    } else if (!wanted) {
        run_end(run, AGENT__V1__OUTCOME__REFUSED, "its names are not UTF-8", 0);
    } else {
        slice_json_keep_times(wanted, devices);
        patch(run, version, wanted);
    }
    json_decref(slice);
}

/* Read once more: of all slices no more is kept than whether they are right. */
static void change(struct run *run)
{
    static const struct api_ops ops = {.body = run_body, .done = on_slice};
    char name[SLICE_NAME_BYTES_MAX];
    struct query query;

    slice_name(run, run->publishing->at, name);
    slices_path(run, &query, name);
    if (!run_too_long(run, &query))
        run_ask(run, "GET", &query, NULL, NULL, &ops);
}

static void on_deleted(void *user, const struct api_result *result)
{
    struct run *run = user;

    run->request = NULL;
    if (result->outcome != API_DONE && result->outcome != API_NOT_FOUND) {
        fail(run, result);
        return;
    }
    run->publishing->deleted++;
    go_on(run);
}

static void delete_stale(struct run *run)
{
    static const struct api_ops ops = {.done = on_deleted};
    const struct pool_stale *stale = &run->publishing->slices.stale[run->publishing->deleted];

    send_json(run, "DELETE", stale->name, "application/json",
              json_pack("{s:s, s:s, s:{s:s}}", "kind", "DeleteOptions", "apiVersion", "v1",
                        "preconditions", "uid", stale->uid),
              &ops);
}

/* Stale ones last: of an older generation they count no more. */
static void go_on(struct run *run)
{
    struct publishing *publishing = run->publishing;

    switch (pool_slices_next(&publishing->slices, publishing->generation, &publishing->at)) {
    case POOL_MAKE:
        if (publishing->node_uid)
            make(run);
        else
            ask_node(run);
        break;
    case POOL_CHANGE:
        change(run);
        break;
    case POOL_COUNT:
        patch(run, NULL, NULL);
        break;
    case POOL_DONE:
        if (publishing->deleted < publishing->slices.stale_len)
            delete_stale(run);
        else if (publishing->too_many)
            run_end(run, AGENT__V1__OUTCOME__AGAIN, "more is there to be deleted", 0);
        else
            run_end(run, AGENT__V1__OUTCOME__DONE, "", 0);
        break;
    }
}

/* ---- what is there ---- */

/* False: what is ordered is none. */
static bool judge(struct run *run, size_t index, const json_t *spec)
{
    const json_t *pool = json_object_get(spec, "pool"), *devices = json_object_get(spec, "devices");
    struct pool_slice *slice = &run->publishing->slices.wanted[index];
    json_t *wanted = wanted_devices(run, index);

    if (!wanted)
        return false;
    *slice = (struct pool_slice){
        .there = true,
        .named = slice_json_named(devices, wanted),
        .same = slice_json_same(devices, wanted),
        .counted = json_integer_value(json_object_get(pool, "resourceSliceCount")) ==
                   (json_int_t)run->order->publish_pool->n_slices,
        .generation = json_integer_value(json_object_get(pool, "generation")),
    };
    json_decref(wanted);
    return true;
}

/* Slices of other pools of the driver are other orders'. */
static bool on_listed(void *user, const char *text, size_t len, bool head)
{
    struct run *run = user;
    json_t *object = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *spec = json_object_get(object, "spec"), *pool = json_object_get(spec, "pool");
    const char *name = json_string_value(json_object_get(metadata, "name"));
    const char *uid = json_string_value(json_object_get(metadata, "uid"));
    const char *of = json_string_value(json_object_get(pool, "name"));
    bool right = object != NULL;

    if (right && !head && name && uid && of && strcmp(of, run->order->publish_pool->pool) == 0) {
        size_t index = index_of(run, name);

        if (index < run->order->publish_pool->n_slices)
            right = judge(run, index, spec);
        else if (!pool_slices_add_stale(&run->publishing->slices, name, uid,
                                        json_integer_value(json_object_get(pool, "generation"))))
            run->publishing->too_many = true;
    }
    json_decref(object);
    return right;
}

static bool on_list_body(void *user, const char *bytes, size_t len)
{
    struct run *run = user;
    struct publishing *publishing = run->publishing;

    publishing->list_bytes += len;
    return publishing->list_bytes <= LIST_BYTES_MAX &&
           json_splitter_feed(&publishing->splitter, bytes, len);
}

static void on_list(void *user, const struct api_result *result)
{
    struct run *run = user;
    struct publishing *publishing = run->publishing;

    run->request = NULL;
    if (result->outcome == API_NOT_FOUND) /* it may have them in another version */
        served_missing(run->orders->served, SERVED_SLICES, run->version);
    if (result->outcome != API_DONE) {
        fail(run, result);
    } else if (!json_splitter_whole(&publishing->splitter)) {
        run_end(run, AGENT__V1__OUTCOME__AGAIN, "the list of slices ends within", 0);
    } else {
        publishing->generation = pool_slices_generation(&publishing->slices);
        go_on(run);
    }
}

/* ---- its begin ---- */

/* NULL: it can be done; else why not. */
static const char *wrong(const struct run *run)
{
    const Agent__V1__PublishPool *what = run->order->publish_pool;

    if (!*what->driver || strpbrk(what->driver, ",=\\")) /* it would select something else */
        return "that is no driver's name";
    if (what->n_slices > POOL_SLICES_MAX)
        return "there are too many slices";
    for (size_t i = 0; i < what->n_slices; i++) {
        json_t *devices = wanted_devices(run, i);

        if (!devices)
            return "its names are not UTF-8";
        json_decref(devices);
    }
    return NULL;
}

/* Of a server without any there is nothing left to be taken away. */
void run_publish_pool(struct run *run)
{
    static const struct api_ops ops = {.body = on_list_body, .done = on_list};
    const Agent__V1__PublishPool *what = run->order->publish_pool;
    struct publishing *publishing;
    struct query query;
    const char *words;
    char *selector;

    if (!run_version(run, SERVED_SLICES,
                     what->n_slices > 0 ? AGENT__V1__OUTCOME__REFUSED : AGENT__V1__OUTCOME__DONE))
        return;
    words = wrong(run);
    if (words) {
        run_end(run, AGENT__V1__OUTCOME__REFUSED, words, 0);
        return;
    }
    publishing = run->publishing = must(calloc(1, sizeof *publishing));
    pool_slices_init(&publishing->slices, what->n_slices);
    json_splitter_init(&publishing->splitter, JSON_SPLIT_LIST, on_listed, run);
    if (asprintf(&selector, "spec.driver=%s,spec.nodeName=%s", what->driver, run->orders->node) < 0)
        abort();
    slices_path(run, &query, NULL);
    query_add(&query, "fieldSelector", selector);
    free(selector);
    if (!run_too_long(run, &query))
        run_ask(run, "GET", &query, NULL, NULL, &ops);
}
