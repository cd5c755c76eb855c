#include "shim/agent/order_run.h"

#include <stdlib.h>
#include <string.h>

#include "shim/must.h"

static void node_path(const struct run *run, struct query *query)
{
    query_begin(query, "/api/v1/nodes");
    query_segment(query, run->orders->node);
}

/* A JSON pointer's token (RFC 6901 section 3). */
static void put_token(char *out, const char *name)
{
    for (; *name; name++) {
        if (*name == '~' || *name == '/') {
            *out++ = '~';
            *out++ = *name == '~' ? '0' : '1';
        } else {
            *out++ = *name;
        }
    }
    *out = '\0';
}

static void on_patched(void *user, const struct api_result *result)
{
    struct run *run = user;

    if (result->outcome == API_DONE)
        run_end(run, AGENT__V1__OUTCOME__DONE, "", 0);
    else
        run_fail(run, result);
}

/* Only capacity: the kubelet makes allocatable of it (pkg/kubelet/nodestatus/setters.go). It is
 * changed only if it is still as it was seen: whoever has published something else meanwhile is
 * right. */
static void patch_capacity(struct run *run, const char *seen)
{
    static const struct api_ops ops = {.body = run_body, .done = on_patched};
    const Agent__V1__SetCapacity *what = run->order->set_capacity;
    char *path = must(malloc(strlen("/status/capacity/") + 2 * strlen(what->resource) + 1));
    struct query query;
    json_t *patch;

    put_token(stpcpy(path, "/status/capacity/"), what->resource);
    patch = json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:s}]", "op", "test", "path", path, "value",
                      seen, "op", "replace", "path", path, "value", what->quantity);
    free(path);
    node_path(run, &query);
    query_segment(&query, "status");
    run_ask_json(run, "PATCH", &query, "application/json-patch+json", patch,
                 "its names are not UTF-8", &ops);
}

static void on_node(void *user, const struct api_result *result)
{
    struct run *run = user;
    const Agent__V1__SetCapacity *what = run->order->set_capacity;
    json_t *node = result->outcome == API_DONE ? answer_json(&run->answer) : NULL;
    const json_t *capacity = json_object_get(json_object_get(node, "status"), "capacity");
    const char *seen = json_string_value(json_object_get(capacity, what->resource));

    run->request = NULL;
    if (result->outcome != API_DONE)
        run_fail(run, result);
    else if (!node)
        run_end(run, AGENT__V1__OUTCOME__AGAIN, "the node that was answered is no JSON", 0);
    else if (!seen || strcmp(seen, what->quantity) == 0)
        run_end(run, AGENT__V1__OUTCOME__DONE, "", 0);
    else
        patch_capacity(run, seen);
    json_decref(node);
}

void run_set_capacity(struct run *run)
{
    static const struct api_ops ops = {.body = run_body, .done = on_node};
    struct query query;

    node_path(run, &query);
    if (!run_too_long(run, &query))
        run_ask(run, "GET", &query, NULL, NULL, &ops);
}
