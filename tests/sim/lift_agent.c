/*
 * The agent of the world of lifted resources: what it does of its orders, one request after the
 * other, as shim/agent/order_publish.c and order_dra.c have it, and what it tells the shim.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/lift_world.h"
#include "tests/sim/world.h"

#define LOST_PERCENT 6

/* ---- a pool that is to be as it is ordered ---- */

static bool same_attribute(const Agent__V1__Attribute *a, const Agent__V1__Attribute *b)
{
    return strcmp(a->name, b->name) == 0 && a->value_case == b->value_case &&
           (a->value_case != AGENT__V1__ATTRIBUTE__VALUE_TEXT || strcmp(a->text, b->text) == 0) &&
           (a->value_case != AGENT__V1__ATTRIBUTE__VALUE_NUMBER || a->number == b->number);
}

static bool same_device(const Agent__V1__PoolDevice *a, const Agent__V1__PoolDevice *b)
{
    bool same = strcmp(a->name, b->name) == 0 && a->n_attributes == b->n_attributes &&
                a->n_taints == b->n_taints;

    for (size_t i = 0; same && i < a->n_attributes; i++)
        same = same_attribute(a->attributes[i], b->attributes[i]);
    for (size_t i = 0; same && i < a->n_taints; i++)
        same = strcmp(a->taints[i]->key, b->taints[i]->key) == 0 &&
               strcmp(a->taints[i]->effect, b->taints[i]->effect) == 0;
    return same;
}

static struct pool_slice compare(const struct lw_slice *there, const ProtobufCBinaryData *packed,
                                 size_t count)
{
    Agent__V1__PoolSlice *wanted = agent__v1__pool_slice__unpack(NULL, packed->len, packed->data);
    struct pool_slice is = {
        .there = true, .counted = there->count == count, .generation = there->generation};

    is.named = is.same = wanted->n_devices == there->what->n_devices;
    for (size_t i = 0; i < wanted->n_devices && is.named; i++) {
        is.named = strcmp(wanted->devices[i]->name, there->what->devices[i]->name) == 0;
        is.same = is.same && is.named && same_device(wanted->devices[i], there->what->devices[i]);
    }
    is.same = is.same && is.named;
    agent__v1__pool_slice__free_unpacked(wanted, NULL);
    return is;
}

static void list(struct lift_world *h, struct lw_order *order)
{
    const Agent__V1__PublishPool *what = order->what->publish_pool;
    char uid[24];

    order->listed = true;
    pool_slices_init(&order->slices, what->n_slices);
    for (size_t i = 0; i < LW_SLICES; i++) {
        const struct lw_slice *slice = &h->slices[i];

        if (!slice->uid || strcmp(slice->pool, what->pool) != 0)
            continue;
        if (slice->index < what->n_slices) {
            order->slices.wanted[slice->index] =
                compare(slice, &what->slices[slice->index], what->n_slices);
            continue;
        }
        snprintf(uid, sizeof uid, "%llu", (unsigned long long)slice->uid);
        check_that(h->w, pool_slices_add_stale(&order->slices, slice->pool, uid, slice->generation),
                   "there is room for what is stale");
        order->stale[order->slices.stale_len - 1] = slice->uid;
    }
    order->generation = pool_slices_generation(&order->slices);
}

static void delete_stale(struct lift_world *h, uint64_t uid)
{
    for (size_t i = 0; i < LW_SLICES; i++) {
        if (h->slices[i].uid == uid)
            lift_api_delete(h, &h->slices[i]);
    }
}

/* The next of its requests. False: there is none any more; `again`: it cannot be done. */
static bool write_next(struct lift_world *h, struct lw_order *order, bool *again)
{
    const Agent__V1__PublishPool *what = order->what->publish_pool;
    size_t index = 0;
    enum pool_write next = pool_slices_next(&order->slices, order->generation, &index);
    struct lw_slice *slice = next == POOL_DONE ? NULL : lift_api_find(h, what->pool, index);

    if (next == POOL_DONE && order->deleted == order->slices.stale_len)
        return false;
    if (next == POOL_DONE) {
        delete_stale(h, order->stale[order->deleted++]);
    } else if (next == POOL_MAKE) {
        *again = !lift_api_make(h, what->pool, index, order->generation, what->n_slices,
                                &what->slices[index]);
        count_add(COUNT_LIFT_SLICES_MADE);
    } else if (!slice) {
        *again = true;
    } else {
        count_add(order->generation > slice->generation ? COUNT_LIFT_GENERATIONS
                                                        : COUNT_LIFT_SLICES_CHANGED);
        if (next == POOL_CHANGE)
            lift_api_change(slice, &what->slices[index]);
        slice->generation = order->generation;
        slice->count = what->n_slices;
    }
    if (next != POOL_DONE && !*again)
        order->slices.wanted[index].done = true;
    return true;
}

static void publish(struct lift_world *h, struct lw_order *order)
{
    const char *pool = order->what->publish_pool->pool;
    bool again = false, more = true;

    if (!order->listed)
        list(h, order);
    else
        more = write_next(h, order, &again);
    if (more)
        lift_api_judge(h);
    /* What was done may be, whose answer is lost. */
    again = again || (!h->calm && rng_percent(&h->rng, LOST_PERCENT));
    if (again) {
        count_add(COUNT_LIFT_ORDER_AGAIN);
        lift_note(h, "the order of %s is to be tried again", pool);
        lift_order_ends(h, order, AGENT__V1__OUTCOME__AGAIN, "it failed", NULL);
    } else if (!more) {
        lift_note(h, "the order of %s is done, %zu slices", pool,
                  order->what->publish_pool->n_slices);
        lift_order_ends(h, order, AGENT__V1__OUTCOME__DONE, "", NULL);
    }
}

/* ---- a claim that is read ---- */

static void fill(const struct lw_claim *claim, Agent__V1__Claim *out,
                 Agent__V1__ClaimDevice devices[LW_CLAIM_DEVICES],
                 Agent__V1__ClaimDevice *v[LW_CLAIM_DEVICES])
{
    out->allocated = claim->allocated;
    out->extended = claim->extended;
    out->devices = v;
    for (size_t i = 0; claim->allocated && i < claim->results_len; i++) {
        const struct lw_result *result = &claim->results[i];

        agent__v1__claim_device__init(&devices[i]);
        devices[i].driver = (char *)DEVICEMGR_LIFT_DRIVER;
        devices[i].pool = (char *)(uintptr_t)result->pool;
        devices[i].device = (char *)(uintptr_t)result->name;
        devices[i].request = (char *)(uintptr_t)result->request;
        devices[i].admin_access = claim->admin;
        v[out->n_devices++] = &devices[i];
    }
}

static void read_claim(struct lift_world *h, struct lw_order *order)
{
    const struct lw_claim *claim = &h->claims[lift_claim_find(order->what->get_claim->uid)];
    Agent__V1__ClaimDevice devices[LW_CLAIM_DEVICES], *v[LW_CLAIM_DEVICES];
    Agent__V1__Claim is = AGENT__V1__CLAIM__INIT;

    if (!h->calm && rng_percent(&h->rng, LOST_PERCENT)) {
        lift_order_ends(h, order, AGENT__V1__OUTCOME__AGAIN, "it failed", NULL);
        return;
    }
    if (claim->life == LW_GONE) {
        lift_order_ends(h, order, AGENT__V1__OUTCOME__REFUSED, "not found", NULL);
        return;
    }
    is.uid = order->what->get_claim->uid;
    fill(claim, &is, devices, v);
    lift_order_ends(h, order, AGENT__V1__OUTCOME__DONE, "", &is);
}

/* ---- orders ---- */

static bool is_due(const struct lift_world *h, const struct lw_order *order)
{
    return order->id && (order->state != LW_LATER || order->due_ms <= h->now_ms);
}

bool lift_agent_works(struct lift_world *h)
{
    size_t from = rng_below(&h->rng, LW_ORDERS);
    struct lw_order *order = NULL;

    for (size_t i = 0; i < LW_ORDERS && !order; i++) {
        if (is_due(h, &h->orders[(from + i) % LW_ORDERS]))
            order = &h->orders[(from + i) % LW_ORDERS];
    }
    if (!order || !h->agent || h->api_away)
        return false;
    order->state = LW_SENT;
    if (order->what->what_case == AGENT__V1__ORDER__WHAT_PUBLISH_POOL)
        publish(h, order);
    else
        read_claim(h, order);
    return true;
}

/* ---- what it tells ---- */

static void tell_claim(struct lift_world *h, size_t id)
{
    struct lw_claim *claim = &h->claims[id];
    struct devicemgr_claim_device devices[LW_CLAIM_DEVICES];
    char uid[16];

    snprintf(uid, sizeof uid, "c%zu", id);
    for (size_t i = 0; i < claim->results_len; i++)
        devices[i] = (struct devicemgr_claim_device){.driver = DEVICEMGR_LIFT_DRIVER,
                                                     .pool = claim->results[i].pool,
                                                     .device = claim->results[i].name,
                                                     .admin_access = claim->admin};
    claim->looked_for = false;
    claim->told = claim->allocated;
    lift_note(h, "the agent tells of %s: %sallocated", uid, claim->allocated ? "" : "not ");
    devicemgr_claim_allocation(h->core, h->now_ms, uid, claim->allocated, devices,
                               claim->allocated ? claim->results_len : 0);
    lift_shim_run(h);
}

void lift_agent_tells(struct lift_world *h)
{
    if (!h->agent || h->api_away)
        return;
    lift_api_told(h);
    for (size_t i = 0; i < h->claims_len && !*h->w->broken; i++) {
        if (h->claims[i].looked_for)
            tell_claim(h, i);
    }
    lift_shim_run(h);
}

/* ---- its life ---- */

/* What it had is to be sent to the next one. */
void lift_agent_goes(struct lift_world *h)
{
    if (!h->agent)
        return;
    lift_note(h, "the agent goes");
    count_add(COUNT_LIFT_AGENT_AWAY);
    h->agent = h->agent_told = false;
    h->agent_lost_ms = h->now_ms;
    lift_host_complete(h, false);
    for (size_t i = 0; i < LW_ORDERS; i++) {
        if (!h->orders[i].id)
            continue;
        lift_order_reset(&h->orders[i]);
        h->orders[i].state = LW_DUE;
    }
}

void lift_agent_comes(struct lift_world *h)
{
    if (h->agent)
        return;
    lift_note(h, "the agent is there");
    h->agent = true;
}

void lift_agent_acts(struct lift_world *h)
{
    uint64_t what = rng_below(&h->rng, 100);

    if (!h->agent && what < 30)
        lift_agent_comes(h);
    else if (h->agent && what < 4)
        lift_agent_goes(h);
    else if (what < 8)
        h->api_away = !h->api_away;
    else if (h->api_away && what < 25)
        h->api_away = false;
    else if (what < 30)
        lift_agent_tells(h);
    else
        lift_agent_works(h);
}
