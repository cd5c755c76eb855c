#include "shim/agent/orders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <jansson.h>

#include "shim/agent/objects.h"
#include "shim/agent/query.h"
#include "shim/log.h"
#include "shim/must.h"

#define SLICES_PATH "/apis/resource.k8s.io/v1/resourceslices"
#define CLAIMS_PATH "/apis/resource.k8s.io/v1/namespaces"

struct run {
    struct orders *orders;
    TAILQ_ENTRY(run) entry;
    Agent__V1__Order *order;
    struct api_request *request; /* NULL: to be begun */
    char *text;                  /* of the answer under way */
    size_t len, size;
};

struct orders {
    struct api_client *client;
    const char *node;
    void (*answer)(void *user, const Agent__V1__AnswerRequest *answer);
    void *user;
    TAILQ_HEAD(, run) runs;
    size_t runs_len;
    uint64_t done[ORDERS_DONE_MAX]; /* a ring of those that were done; 0: none */
    size_t done_next;
    uv_timer_t timer; /* begins what is to be begun */
};

/* ---- their ends ---- */

static bool was_done(const struct orders *orders, uint64_t id)
{
    for (size_t i = 0; i < ORDERS_DONE_MAX; i++) {
        if (id != 0 && orders->done[i] == id)
            return true;
    }
    return false;
}

static void run_free(struct run *run)
{
    TAILQ_REMOVE(&run->orders->runs, run, entry);
    run->orders->runs_len--;
    agent__v1__order__free_unpacked(run->order, NULL);
    free(run->text);
    free(run);
}

static void end(struct run *run, Agent__V1__AnswerRequest *answer)
{
    struct orders *orders = run->orders;

    answer->id = run->order->id;
    /* What was read is read again: it may be another by then. */
    if (answer->outcome == AGENT__V1__OUTCOME__DONE && !answer->claim &&
        !was_done(orders, answer->id)) {
        orders->done[orders->done_next] = answer->id;
        orders->done_next = (orders->done_next + 1) % ORDERS_DONE_MAX;
    }
    run_free(run);
    orders->answer(orders->user, answer);
}

static void end_with(struct run *run, Agent__V1__Outcome outcome, const char *words,
                     uint64_t retry_after_ms)
{
    Agent__V1__AnswerRequest answer = AGENT__V1__ANSWER_REQUEST__INIT;

    answer.outcome = outcome;
    answer.message = (char *)words;
    answer.retry_after_ms = retry_after_ms;
    end(run, &answer);
}

/* What did not work. */
static void end_failed(struct run *run, const struct api_result *result)
{
    bool again = result->outcome == API_AGAIN || result->outcome == API_CONFLICT ||
                 result->outcome == API_GONE;

    end_with(run, again ? AGENT__V1__OUTCOME__AGAIN : AGENT__V1__OUTCOME__REFUSED, result->words,
             result->retry_after_ms);
}

/* ---- requests ---- */

static bool on_body(void *user, const char *bytes, size_t len)
{
    struct run *run = user;

    if (len > ANSWER_BYTES_MAX - run->len)
        return false;
    if (run->len + len > run->size) {
        run->size = (run->len + len) * 2;
        run->text = must(realloc(run->text, run->size));
    }
    if (len > 0)
        memcpy(run->text + run->len, bytes, len);
    run->len += len;
    return true;
}

/* NULL: it is no JSON object. */
static json_t *answered(struct run *run)
{
    json_t *object = json_loadb(run->text ? run->text : "", run->len, 0, NULL);

    if (json_is_object(object))
        return object;
    json_decref(object);
    return NULL;
}

static void ask(struct run *run, const char *method, const struct query *query, const char *type,
                const char *body, const struct api_ops *ops)
{
    const struct transport_call call = {.method = method,
                                        .path = query->text,
                                        .content_type = type,
                                        .body = body,
                                        .timeout_ms = REQUEST_TIMEOUT_MS};

    run->len = 0;
    run->request = api_client_start(run->orders->client, &call, ops, run);
}

static bool too_long(struct run *run, const struct query *query)
{
    if (query->too_long)
        end_with(run, AGENT__V1__OUTCOME__REFUSED, "its names are too long", 0);
    return query->too_long;
}

/* ---- SetCapacity ---- */

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
        end_with(run, AGENT__V1__OUTCOME__DONE, "", 0);
    else
        end_failed(run, result);
}

/* Only capacity: the kubelet makes allocatable of it (pkg/kubelet/nodestatus/setters.go). It is changed
 * only if it is still as it was seen: whoever has published something else meanwhile is right. */
static void patch_capacity(struct run *run, const char *seen)
{
    static const struct api_ops ops = {.body = on_body, .done = on_patched};
    const Agent__V1__SetCapacity *what = run->order->set_capacity;
    char *path = must(malloc(strlen("/status/capacity/") + 2 * strlen(what->resource) + 1));
    struct query query;
    json_t *patch;
    char *body;

    put_token(stpcpy(path, "/status/capacity/"), what->resource);
    patch = json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:s}]", "op", "test", "path", path, "value",
                      seen, "op", "replace", "path", path, "value", what->quantity);
    body = patch ? json_dumps(patch, JSON_COMPACT) : NULL;
    json_decref(patch);
    free(path);
    node_path(run, &query);
    query_segment(&query, "status");
    if (!body)
        end_with(run, AGENT__V1__OUTCOME__REFUSED, "its names are no text", 0);
    else if (!too_long(run, &query))
        ask(run, "PATCH", &query, "application/json-patch+json", body, &ops);
    free(body);
}

static void on_node(void *user, const struct api_result *result)
{
    struct run *run = user;
    const Agent__V1__SetCapacity *what = run->order->set_capacity;
    json_t *node = result->outcome == API_DONE ? answered(run) : NULL;
    const json_t *capacity = json_object_get(json_object_get(node, "status"), "capacity");
    const char *seen = json_string_value(json_object_get(capacity, what->resource));

    run->request = NULL;
    if (result->outcome != API_DONE)
        end_failed(run, result);
    else if (!node)
        end_with(run, AGENT__V1__OUTCOME__AGAIN, "the node that was answered is no JSON", 0);
    else if (!seen || strcmp(seen, what->quantity) == 0)
        end_with(run, AGENT__V1__OUTCOME__DONE, "", 0);
    else
        patch_capacity(run, seen);
    json_decref(node);
}

static void begin_capacity(struct run *run)
{
    static const struct api_ops ops = {.body = on_body, .done = on_node};
    struct query query;

    node_path(run, &query);
    if (!too_long(run, &query))
        ask(run, "GET", &query, NULL, NULL, &ops);
}

/* ---- WipeSlices ---- */

static void on_wiped(void *user, const struct api_result *result)
{
    struct run *run = user;

    if (result->outcome == API_DONE || result->outcome == API_NOT_FOUND)
        end_with(run, AGENT__V1__OUTCOME__DONE, "", 0);
    else
        end_failed(run, result);
}

/* Terms in the order of their names, as the kubelet has them
 * (pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go). */
static void begin_wipe(struct run *run)
{
    static const struct api_ops ops = {.done = on_wiped};
    const char *driver = run->order->wipe_slices->driver;
    struct query query;
    char *selector;

    if (asprintf(&selector, "%s%s%sspec.nodeName=%s", *driver ? "spec.driver=" : "", driver,
                 *driver ? "," : "", run->orders->node) < 0)
        abort();
    query_begin(&query, SLICES_PATH);
    query_add(&query, "fieldSelector", selector);
    if (strpbrk(driver, ",=\\")) /* it would select something else */
        end_with(run, AGENT__V1__OUTCOME__REFUSED, "the driver's name is none", 0);
    else if (!too_long(run, &query))
        ask(run, "DELETE", &query, "application/json",
            "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}", &ops);
    free(selector);
}

/* ---- GetClaim ---- */

static void tell_claim(struct run *run, const json_t *object)
{
    Agent__V1__AnswerRequest answer = AGENT__V1__ANSWER_REQUEST__INIT;
    Agent__V1__Claim *claim = object_claim(object);

    if (strcmp(claim->uid, run->order->get_claim->uid) != 0) {
        end_with(run, AGENT__V1__OUTCOME__REFUSED, "another claim has that name", 0);
    } else {
        answer.outcome = AGENT__V1__OUTCOME__DONE;
        answer.claim = claim;
        end(run, &answer);
    }
    agent__v1__claim__free_unpacked(claim, NULL);
}

static void on_claim(void *user, const struct api_result *result)
{
    struct run *run = user;
    json_t *object = result->outcome == API_DONE ? answered(run) : NULL;

    if (result->outcome != API_DONE)
        end_failed(run, result);
    else if (!object)
        end_with(run, AGENT__V1__OUTCOME__AGAIN, "the claim that was answered is no JSON", 0);
    else
        tell_claim(run, object);
    json_decref(object);
}

static void begin_claim(struct run *run)
{
    static const struct api_ops ops = {.body = on_body, .done = on_claim};
    const Agent__V1__GetClaim *what = run->order->get_claim;
    struct query query;

    query_begin(&query, CLAIMS_PATH);
    query_segment(&query, what->namespace_);
    query_segment(&query, "resourceclaims");
    query_segment(&query, what->name);
    if (!too_long(run, &query))
        ask(run, "GET", &query, NULL, NULL, &ops);
}

/* ---- taking them ---- */

static void begin(struct run *run)
{
    if (was_done(run->orders, run->order->id)) {
        end_with(run, AGENT__V1__OUTCOME__DONE, "", 0);
        return;
    }
    switch (run->order->what_case) {
    case AGENT__V1__ORDER__WHAT_SET_CAPACITY:
        begin_capacity(run);
        break;
    case AGENT__V1__ORDER__WHAT_WIPE_SLICES:
        begin_wipe(run);
        break;
    case AGENT__V1__ORDER__WHAT_GET_CLAIM:
        begin_claim(run);
        break;
    default:
        end_with(run, AGENT__V1__OUTCOME__REFUSED, "this agent does not know such an order", 0);
    }
}

/* One in a turn, since what is told may change all of them. */
static void on_turn(uv_timer_t *timer)
{
    struct orders *orders = timer->data;
    struct run *run;

    TAILQ_FOREACH(run, &orders->runs, entry)
    {
        if (run->request)
            continue;
        uv_timer_start(timer, on_turn, 0, 0);
        begin(run);
        return;
    }
}

static struct run *find(struct orders *orders, uint64_t id)
{
    struct run *run;

    TAILQ_FOREACH(run, &orders->runs, entry)
    {
        if (run->order->id == id)
            return run;
    }
    return NULL;
}

static Agent__V1__Order *copy_of(const Agent__V1__Order *order)
{
    size_t len = agent__v1__order__get_packed_size(order);
    uint8_t *packed = must(malloc(len + 1));
    Agent__V1__Order *copy;

    agent__v1__order__pack(order, packed);
    copy = must(agent__v1__order__unpack(NULL, len, packed));
    free(packed);
    return copy;
}

void orders_take(struct orders *orders, const Agent__V1__Order *order)
{
    struct run *run;

    if (find(orders, order->id) || orders->runs_len == ORDERS_MAX) /* the daemon asks again */
        return;
    uv_timer_start(&orders->timer, on_turn, 0, 0);
    run = must(calloc(1, sizeof *run));
    run->orders = orders;
    run->order = copy_of(order);
    TAILQ_INSERT_TAIL(&orders->runs, run, entry);
    orders->runs_len++;
}

void orders_cancel(struct orders *orders, uint64_t id)
{
    struct run *run = find(orders, id);

    if (!run)
        return;
    api_request_cancel(run->request);
    run_free(run);
}

/* ---- life ---- */

struct orders *orders_new(uv_loop_t *loop, struct api_client *client, const char *node,
                          void (*answer)(void *user, const Agent__V1__AnswerRequest *answer),
                          void *user)
{
    struct orders *orders = must(calloc(1, sizeof *orders));

    orders->client = client;
    orders->node = node;
    orders->answer = answer;
    orders->user = user;
    TAILQ_INIT(&orders->runs);
    uv_timer_init(loop, &orders->timer);
    orders->timer.data = orders;
    return orders;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void orders_free(struct orders *orders)
{
    if (!orders)
        return;
    while (!TAILQ_EMPTY(&orders->runs))
        orders_cancel(orders, TAILQ_FIRST(&orders->runs)->order->id);
    uv_close((uv_handle_t *)&orders->timer, on_closed);
}
