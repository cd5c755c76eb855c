#include "shim/agent/orders.h"

#include <stdlib.h>
#include <string.h>

#include "shim/agent/order_run.h"
#include "shim/must.h"
#include "shim/rpc/message.h"

static void on_turn(uv_timer_t *timer);

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
    if (run->begun && run->orders->begun_len-- == ORDERS_AT_ONCE)
        uv_timer_start(&run->orders->timer, on_turn, 0, 0); /* another may begin */
    agent__v1__order__free_unpacked(run->order, NULL);
    answer_fini(&run->answer);
    publishing_free(run->publishing);
    free(run);
}

void run_end_by(struct run *run, Agent__V1__AnswerRequest *answer)
{
    struct orders *orders = run->orders;

    answer->id = run->order->id;
    /* What was read is read again: it may be another by then. */
    if (answer->outcome == AGENT__V1__OUTCOME__DONE && !answer->claim && !answer->evicted &&
        !was_done(orders, answer->id)) {
        orders->done[orders->done_next] = answer->id;
        orders->done_next = (orders->done_next + 1) % ORDERS_DONE_MAX;
    }
    run_free(run);
    orders->answer(orders->user, answer);
}

void run_end(struct run *run, Agent__V1__Outcome outcome, const char *words,
             uint64_t retry_after_ms)
{
    Agent__V1__AnswerRequest answer = AGENT__V1__ANSWER_REQUEST__INIT;

    answer.outcome = outcome;
    answer.message = (char *)words;
    answer.retry_after_ms = retry_after_ms;
    run_end_by(run, &answer);
}

/* What did not work. */
void run_fail(struct run *run, const struct api_result *result)
{
    bool again = result->outcome == API_AGAIN || result->outcome == API_CONFLICT ||
                 result->outcome == API_GONE;

    run_end(run, again ? AGENT__V1__OUTCOME__AGAIN : AGENT__V1__OUTCOME__REFUSED, result->words,
            result->retry_after_ms);
}

/* ---- requests ---- */

bool run_body(void *user, const char *bytes, size_t len)
{
    struct run *run = user;

    run->too_large = !answer_add(&run->answer, bytes, len);
    return !run->too_large;
}

void run_ask(struct run *run, const char *method, const struct query *query, const char *type,
             const char *body, const struct api_ops *ops)
{
    bool reads = strcmp(method, "GET") == 0;
    const struct transport_call call = {.method = method,
                                        .path = query->text,
                                        .content_type = type,
                                        .body = body,
                                        .timeout_ms =
                                            reads ? REQUEST_TIMEOUT_MS : WRITE_TIMEOUT_MS};

    answer_clear(&run->answer);
    run->too_large = false;
    run->request = api_client_start(run->orders->client, &call, ops, run);
}

bool run_too_long(struct run *run, const struct query *query)
{
    if (!query->too_long)
        return false;
    run_end(run, AGENT__V1__OUTCOME__REFUSED, "its names are too long", 0);
    return true;
}

void run_ask_json(struct run *run, const char *method, const struct query *query, const char *type,
                  json_t *body, const char *no_text, const struct api_ops *ops)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

    json_decref(body);
    if (!text)
        run_end(run, AGENT__V1__OUTCOME__REFUSED, no_text, 0);
    else if (!run_too_long(run, query))
        run_ask(run, method, query, type, text, ops);
    free(text);
}

const char *run_version(struct run *run, enum served_kind kind, Agent__V1__Outcome none)
{
    struct served *served = run->orders->served;

    run->version = served_version(served, kind);
    if (run->version)
        return run->version;
    if (served_known(served))
        run_end(run, none, "the API server does not serve resource.k8s.io", 0);
    else
        run_end(run, AGENT__V1__OUTCOME__AGAIN, "the API server has not said what it serves", 0);
    return NULL;
}

/* ---- taking them ---- */

static void begin(struct run *run)
{
    if (was_done(run->orders, run->order->id)) {
        run_end(run, AGENT__V1__OUTCOME__DONE, "", 0);
        return;
    }
    switch (run->order->what_case) {
    case AGENT__V1__ORDER__WHAT_SET_CAPACITY:
        run_set_capacity(run);
        break;
    case AGENT__V1__ORDER__WHAT_WIPE_SLICES:
        run_wipe_slices(run);
        break;
    case AGENT__V1__ORDER__WHAT_GET_CLAIM:
        run_get_claim(run);
        break;
    case AGENT__V1__ORDER__WHAT_TELL:
        run_tell(run);
        break;
    case AGENT__V1__ORDER__WHAT_EVICT_POD:
        run_evict_pod(run);
        break;
    case AGENT__V1__ORDER__WHAT_PUBLISH_POOL:
        run_publish_pool(run);
        break;
    default:
        run_end(run, AGENT__V1__OUTCOME__REFUSED, "this agent does not know such an order", 0);
    }
}

/* One in a turn, since what is told may change all of them. */
static void on_turn(uv_timer_t *timer)
{
    struct orders *orders = timer->data;
    struct run *run;

    if (orders->begun_len == ORDERS_AT_ONCE)
        return;
    TAILQ_FOREACH(run, &orders->runs, entry) {
        if (run->begun)
            continue;
        uv_timer_start(timer, on_turn, 0, 0);
        run->begun = true;
        orders->begun_len++;
        begin(run);
        return;
    }
}

static struct run *find(struct orders *orders, uint64_t id)
{
    struct run *run;

    TAILQ_FOREACH(run, &orders->runs, entry) {
        if (run->order->id == id)
            return run;
    }
    return NULL;
}

void orders_take(struct orders *orders, const Agent__V1__Order *order)
{
    struct run *run;

    if (find(orders, order->id) || orders->runs_len == ORDERS_MAX) /* the daemon asks again */
        return;
    uv_timer_start(&orders->timer, on_turn, 0, 0);
    run = must(calloc(1, sizeof *run));
    run->orders = orders;
    run->order = (Agent__V1__Order *)must(message_copy(&order->base));
    TAILQ_INSERT_TAIL(&orders->runs, run, entry);
    orders->runs_len++;
}

static void cut(struct run *run)
{
    api_request_cancel(run->request);
    run_free(run);
}

void orders_cancel(struct orders *orders, uint64_t id)
{
    struct run *run = find(orders, id);

    if (run)
        cut(run);
}

/* Whether it is an Event that is being written: no next daemon orders it again. */
static bool is_told(const struct run *run)
{
    return run->begun && run->order->what_case == AGENT__V1__ORDER__WHAT_TELL;
}

void orders_daemon_lost(struct orders *orders)
{
    struct run *run = TAILQ_FIRST(&orders->runs), *next;

    for (; run; run = next) {
        next = TAILQ_NEXT(run, entry);
        if (!is_told(run))
            cut(run);
    }
}

/* ---- life ---- */

struct orders *orders_new(uv_loop_t *loop, struct api_client *client, struct served *served,
                          const char *node,
                          void (*answer)(void *user, const Agent__V1__AnswerRequest *answer),
                          void *user)
{
    struct orders *orders = must(calloc(1, sizeof *orders));

    orders->client = client;
    orders->served = served;
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
        cut(TAILQ_FIRST(&orders->runs));
    uv_close((uv_handle_t *)&orders->timer, on_closed);
}
