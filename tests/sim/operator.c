#include "tests/sim/operator.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/operator.h"
#include "tests/sim/check.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

#define ACTS_MS_MAX 6000
#define HEALS_MS 400
#define MORE_MS_MAX 120000
#define ALL ((1u << DEVICES_MAX) - 1)
/* Between an event and the run that acts on it (shim_run()). */
#define LATE_MS 5

/* ---- what is under way ---- */

static const struct request *open_of(const struct world *w, size_t resource)
{
    for (size_t i = 0; i < REQUESTS_MAX; i++) {
        const struct request *request = &w->operator.requests[i];

        if (request->number && request->resource == resource)
            return request;
    }
    return NULL;
}

static unsigned in_doubt(const struct world *w, size_t r)
{
    const struct request *open = open_of(w, r);

    return open && (open->kind == REQUEST_CORDON || open->kind == REQUEST_UNCORDON) ? open->mask
                                                                                    : 0;
}

static bool withdrawal_in_doubt(const struct world *w, size_t r)
{
    const struct request *open = open_of(w, r);

    return open && (open->kind == REQUEST_WITHDRAW || open->kind == REQUEST_UNDO);
}

bool operator_withdrew(const struct world *w, size_t r)
{
    return w->operator.set[r].withdrawn && !withdrawal_in_doubt(w, r);
}

bool operator_may_have_withdrawn(const struct world *w, size_t r)
{
    return w->operator.set[r].withdrawn || withdrawal_in_doubt(w, r);
}

unsigned operator_keeps(const struct world *w, size_t r)
{
    return operator_withdrew(w, r) ? ALL : w->operator.set[r].cordoned & ~in_doubt(w, r);
}

unsigned operator_may_keep(const struct world *w, size_t r)
{
    return operator_may_have_withdrawn(w, r) ? ALL : w->operator.set[r].cordoned | in_doubt(w, r);
}

unsigned operator_keeps_from(const struct world *w, unsigned uid, size_t r)
{
    unsigned mask = operator_keeps(w, r);

    for (size_t d = 0; d < DEVICES_MAX; d++) {
        if (w->operator.set[r].had[d][uid % HOLDER_UIDS_MAX])
            mask &= ~(1u << d);
    }
    return mask;
}

/* Only what the shim has forwarded, and cannot have given back. */
unsigned operator_may_keep_from(const struct world *w, unsigned uid, size_t r)
{
    unsigned mask = operator_may_keep(w, r);

    for (size_t i = 0; mask && i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        if (c->uid == uid && c->resource == r && c->kept && !c->contested)
            mask &= ~c->mask;
    }
    return mask;
}

/* ---- who has it ---- */

static void note_row(struct set_sim *set, size_t r, const struct store_row *row)
{
    Checkpoint__V1__Allocation *allocation;
    unsigned mask;

    if (row->record.kind != DEVICEMGR_RECORD_ALLOCATION ||
        resource_sim_find(row->record.key[2]) != r)
        return;
    allocation =
        checkpoint__v1__allocation__unpack(NULL, row->record.value_bytes, row->record.value);
    mask = device_sim_mask((const char *const *)allocation->device_ids, allocation->n_device_ids);
    for (size_t d = 0; d < DEVICES_MAX; d++) {
        if (mask & 1u << d)
            set->had[d][strtoul(row->record.key[0] + 1, NULL, 10) % HOLDER_UIDS_MAX] = true;
    }
    checkpoint__v1__allocation__free_unpacked(allocation, NULL);
}

static void note_running(struct world *w, size_t r)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        for (size_t d = 0; runtime_live(c) && d < DEVICES_MAX; d++) {
            if ((c->held[r] | c->noted[r]) & 1u << d)
                w->operator.set[r].had[d][c->uid % HOLDER_UIDS_MAX] = true;
        }
    }
}

/* A row that was damaged is made anew from a list which shows its container to run, though it has
 * ended since. */
static void note_claims(struct world *w, size_t r)
{
    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        for (size_t d = 0; c->uid && c->resource == r && d < DEVICES_MAX; d++) {
            if ((c->mask | c->former) & 1u << d)
                w->operator.set[r].had[d][c->uid % HOLDER_UIDS_MAX] = true;
        }
    }
}

/* Who has a device now has it when that is set. */
static void note_holders(struct world *w, size_t r)
{
    note_claims(w, r);
    for (const struct store_row *row = w->store.rows; row; row = row->next)
        note_row(&w->operator.set[r], r, row);
    note_running(w, r);
}

/* What was set before has the holders of then, and those since. */
static void forget_holders(struct world *w, size_t r)
{
    unsigned kept = w->operator.set[r].withdrawn ? ALL : w->operator.set[r].cordoned;

    for (size_t d = 0; d < DEVICES_MAX; d++) {
        if (!(kept & 1u << d))
            memset(w->operator.set[r].had[d], 0, sizeof w->operator.set[r].had[d]);
    }
}

/* ---- acting ---- */

static bool is_set(const struct set_sim *set)
{
    return set->cordoned || set->withdrawn;
}

static void send(struct world *w, const struct request *request)
{
    const char *resource = resource_sim_name(request->resource);
    struct id_list ids = device_sim_ids(request->mask);
    const char *const *v = (const char *const *)ids.v;
    struct devicemgr *core = w->shim.core;
    uint64_t now_ms = shim_now_ms(w);

    world_note(w, "operator: %" PRIu64 ", kind %d of resource %zu, %x", request->number,
               (int)request->kind, request->resource, request->mask);
    switch (request->kind) {
    case REQUEST_CORDON:
        devicemgr_cordon(core, now_ms, request->number, resource, v, ids.len, "dust", 1);
        break;
    case REQUEST_UNCORDON:
        devicemgr_uncordon(core, now_ms, request->number, resource, v, ids.len);
        break;
    case REQUEST_WITHDRAW:
        devicemgr_withdraw(core, now_ms, request->number, resource, "moved", 1);
        break;
    case REQUEST_UNDO:
        devicemgr_withdraw_undo(core, now_ms, request->number, resource);
        break;
    case REQUEST_EXTEND:
        devicemgr_grace_extend(core, now_ms, request->number, resource, request->more_ms, 1);
        break;
    case REQUEST_END:
        devicemgr_grace_end(core, now_ms, request->number, resource, 1);
        break;
    case REQUEST_KINDS:
        break;
    }
    id_list_fini(&ids);
    shim_run(w);
}

static void ask(struct world *w, enum request_kind kind, size_t r, unsigned mask, uint64_t more_ms)
{
    struct request *request = w->operator.requests;

    while (request < w->operator.requests + REQUESTS_MAX && request->number)
        request++;
    if (request == w->operator.requests + REQUESTS_MAX || open_of(w, r) || !w->shim.core)
        return;
    *request = (struct request){.number = ++w->operator.last_number,
                                .kind = kind,
                                .resource = r,
                                .mask = mask,
                                .more_ms = more_ms,
                                .served = plugin_usable(w, r) != NULL};
    forget_holders(w, r);
    note_holders(w, r);
    send(w, request);
}

static void act_at_random(struct world *w, struct rng *rng)
{
    size_t r = rng_below(rng, RESOURCES_LEN);
    unsigned mask = (unsigned)rng_between(rng, 1, ALL);
    uint64_t more_ms = rng_between(rng, 1, MORE_MS_MAX), kind = rng_below(rng, 100);

    if (kind < 40)
        ask(w, REQUEST_CORDON, r, mask, 0);
    else if (kind < 65)
        ask(w, REQUEST_UNCORDON, r, mask, 0);
    else if (kind < 72)
        ask(w, REQUEST_WITHDRAW, r, 0, 0);
    else if (kind < 85)
        ask(w, REQUEST_UNDO, r, 0, 0);
    else if (kind < 94)
        ask(w, REQUEST_EXTEND, r, 0, more_ms);
    else
        ask(w, REQUEST_END, r, 0, 0);
}

static void take_back(struct world *w)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        const struct set_sim *set = &w->operator.set[r];

        if (set->withdrawn)
            ask(w, REQUEST_UNDO, r, 0, 0);
        else if (set->cordoned)
            ask(w, REQUEST_UNCORDON, r, set->cordoned, 0);
    }
}

bool operator_is_done(const struct world *w)
{
    bool done = true;

    for (size_t r = 0; r < RESOURCES_LEN; r++)
        done = done && !is_set(&w->operator.set[r]) && !open_of(w, r);
    return done;
}

static void acts(struct world *w, uint64_t a, uint64_t b)
{
    struct rng rng = world_draw(w, DRAW_OPERATOR, 0, 0);

    (void)a;
    (void)b;
    if (w->operator.heals && operator_is_done(w) && w->shim.core)
        return;
    world_after(w, &rng, w->operator.heals ? HEALS_MS : rng_delay_ms(&rng, ACTS_MS_MAX) + HEALS_MS,
                acts, 0, 0);
    if (w->operator.heals && w->shim.core)
        take_back(w);
    else if (w->shim.core)
        act_at_random(w, &rng);
}

/* In half of the worlds, checked ones and others (shim.c). */
void operator_init(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_OPERATOR, 1, 0);

    if (!w->play.unsteered && (w->play.seed % 4 == 0 || w->play.seed % 4 == 3))
        world_after(w, &rng, ACTS_MS_MAX, acts, 0, 0);
    else
        w->operator.heals = true;
}

void operator_heals(struct world *w)
{
    w->operator.heals = true;
}

/* ---- what becomes of it ---- */

static bool has_row(const struct world *w, const char *kind, size_t r, const char *id)
{
    return store_find(&w->store, DEVICEMGR_RECORD_ORDER, kind, resource_sim_name(r), id) != NULL;
}

static unsigned cordon_rows(const struct world *w, size_t r)
{
    unsigned mask = 0;

    for (size_t d = 0; d < DEVICES_MAX; d++)
        mask |= has_row(w, "cordon", r, device_sim_id(d)) ? 1u << d : 0;
    return mask;
}

/* What is answered is durable; what is refused has not changed. */
static void check_rows(struct world *w, size_t r)
{
    const struct set_sim *set = &w->operator.set[r];

    if (w->store.reset)
        return; /* all will be with the next commit */
    check_that(w, cordon_rows(w, r) == set->cordoned,
               "what is answered of a cordon is durable: %x, rows of %x", set->cordoned,
               cordon_rows(w, r));
    check_that(w, has_row(w, "withdrawal", r, "") == set->withdrawn,
               "what is answered of a withdrawal is durable");
}

static void take_effect(struct world *w, const struct request *request)
{
    struct set_sim *set = &w->operator.set[request->resource];

    switch (request->kind) {
    case REQUEST_CORDON:
        note_holders(w, request->resource);
        set->cordoned |= request->mask;
        count_add(COUNT_CORDONED);
        break;
    case REQUEST_UNCORDON:
        count_add(COUNT_UNCORDONED);
        set->cordoned &= ~request->mask;
        break;
    case REQUEST_WITHDRAW:
        note_holders(w, request->resource);
        set->withdrawn = true;
        count_add(COUNT_WITHDRAWN);
        break;
    case REQUEST_UNDO:
        set->withdrawn = false;
        break;
    case REQUEST_EXTEND:
        set->more_ms += request->served ? 0 : request->more_ms;
        set->more_ms_max += request->more_ms;
        count_add(COUNT_EXTENDED);
        break;
    case REQUEST_END:
        set->over_ms = request->served ? 0 : w->now_ms;
        set->over_perhaps = true;
        count_add(COUNT_ENDED);
        break;
    case REQUEST_KINDS:
        break;
    }
}

static void check_refused(struct world *w, const struct request *request,
                          const struct devicemgr_steered *steered)
{
    bool of_grace = request->kind == REQUEST_EXTEND || request->kind == REQUEST_END;

    count_add(COUNT_STEER_REFUSED);
    if (steered->code == CODE_ABORTED)
        check_that(w, w->store.failed_ms > 0 && w->store.failed_ms + LATE_MS >= w->now_ms,
                   "the operator is refused for the store when that has failed: %s",
                   steered->message);
    else
        check_that(w, steered->code == CODE_FAILED_PRECONDITION && (w->shim.draining || of_grace),
                   "the operator is refused for a reason: %d, %s", steered->code, steered->message);
    if (of_grace && steered->code == CODE_FAILED_PRECONDITION && !w->shim.draining)
        check_that(w,
                   request->resource == RESOURCE_BUILTIN || request->served ||
                       publisher_saw_no(w, request->resource) ||
                       plugin_connected(w, request->resource) ||
                       w->shown.lost_ms[request->resource] == 0 ||
                       w->shown.served_ms[request->resource] == 0 ||
                       w->now_ms >= w->shown.served_ms[request->resource] +
                                        operator_grace_ms_min(w, request->resource),
                   "a grace period that is under way can be changed: %s", steered->message);
}

void operator_answered(struct world *w, uint64_t number, const struct devicemgr_steered *steered)
{
    struct request *request = w->operator.requests;
    struct request was;

    while (request < w->operator.requests + REQUESTS_MAX && request->number != number)
        request++;
    check_that(w, request < w->operator.requests + REQUESTS_MAX,
               "the operator is answered once, and what was asked: %" PRIu64, number);
    if (request == w->operator.requests + REQUESTS_MAX)
        return;
    world_note(w, "shim: operator %" PRIu64 ": %d, %s", number, steered->code, steered->message);
    was = *request;
    request->number = 0;
    if (steered->code == 0)
        take_effect(w, &was);
    else
        check_refused(w, &was, steered);
    check_rows(w, was.resource);
}

/* What the store has of the order; all zero if it has none. */
static struct set_sim grace_row(const struct world *w, size_t r)
{
    const struct store_row *row =
        store_find(&w->store, DEVICEMGR_RECORD_ORDER, "grace", resource_sim_name(r), "");
    Checkpoint__V1__Order *order;
    struct set_sim has = {0};

    if (!row)
        return has;
    order = checkpoint__v1__order__unpack(NULL, row->record.value_bytes, row->record.value);
    has.more_ms = order->more_ms;
    has.over_perhaps = order->over;
    checkpoint__v1__order__free_unpacked(order, NULL);
    return has;
}

static void read_grace(struct world *w, size_t r)
{
    const struct set_sim has = grace_row(w, r);
    struct set_sim *set = &w->operator.set[r];

    set->more_ms = set->more_ms_max = has.more_ms;
    set->over_ms = has.over_perhaps ? w->now_ms : 0;
    set->over_perhaps = has.over_perhaps;
}

void operator_shim_started(struct world *w, bool lost)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        struct set_sim *set = &w->operator.set[r];
        unsigned cordoned = cordon_rows(w, r), sure = operator_keeps(w, r);
        bool withdrawn = has_row(w, "withdrawal", r, "");

        check_that(w, lost || set->withdrawn || (sure & ~cordoned) == 0,
                   "what is cordoned is so after a restart: %x, rows of %x", sure, cordoned);
        check_that(w, lost || withdrawn || !operator_withdrew(w, r),
                   "what is withdrawn is so after a restart");
        forget_holders(w, r);
        note_holders(w, r);
        if (is_set(set) && (cordoned || withdrawn))
            count_add(COUNT_SET_RESTORED);
        set->cordoned = cordoned;
        set->withdrawn = withdrawn;
        read_grace(w, r);
    }
    memset(w->operator.requests, 0, sizeof w->operator.requests);
}

void operator_served(struct world *w, size_t r)
{
    struct set_sim *set = &w->operator.set[r];

    set->more_ms = set->more_ms_max = set->over_ms = 0;
    set->over_perhaps = false;
    for (size_t i = 0; i < REQUESTS_MAX; i++) {
        if (w->operator.requests[i].resource == r)
            w->operator.requests[i].served = true;
    }
}

/* Who runs with a device has it, however that came. */
void operator_check(struct world *w)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (is_set(&w->operator.set[r]) || open_of(w, r))
            note_running(w, r);
    }
}

/* ---- grace ---- */

uint64_t operator_grace_ms_min(const struct world *w, size_t r)
{
    const struct request *open = open_of(w, r);
    const struct set_sim *set = &w->operator.set[r];

    if (set->over_perhaps || (open && open->kind == REQUEST_END && grace_row(w, r).over_perhaps))
        return 0;
    return shim_grace_ms(w, r) + set->more_ms;
}

uint64_t operator_grace_ms_max(const struct world *w, size_t r, uint64_t served_ms)
{
    const struct request *open = open_of(w, r);
    const struct set_sim *set = &w->operator.set[r];
    uint64_t more_ms = open && open->kind == REQUEST_EXTEND ? open->more_ms : 0;

    if (set->over_ms && set->more_ms_max + more_ms == 0)
        return set->over_ms > served_ms ? set->over_ms - served_ms : 0;
    return shim_grace_ms(w, r) + set->more_ms_max + more_ms;
}
