#include "tests/sim/end_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/devicemgr.h"
#include "devicemgr/endings.h"
#include "devicemgr/operator.h"
#include "tests/sim/property.h"
#include "tests/sim/rng.h"
#include "tests/sim/world.h"

#define PODS 3
#define CONTAINERS 48 /* that there ever are; once there is no room none is made any more */
#define STOPS 512
#define STEPS 160
#define REST_STEPS 400
#define GRACE_MS_MAX 60000
#define NEVER UINT64_MAX

struct end_pod {
    bool asked;  /* by a row that the store has, or of which the operator was told nothing else */
    bool sent;   /* something was, since it was asked for */
    bool stored; /* there is a row of it */
    /* That it has ended was told since it was asked for last; as the commit under way has that; and
     * as the store has it, by which it is told again after a kill, or not. */
    bool told, told_carried, told_stored;
    /* Since the commit under way began it was asked for again, or taken back, or another container
     * was listed: it may end with a row of a pod that has ended, of which nobody is told yet. A
     * shim that is killed then takes it for told; in the same three moments of its life, as
     * above. */
    bool put_off, missed, missed_carried, missed_stored;
    /* The shortest grace that was asked for; that the commit under way has; that one had which is
     * over, however it went, from when on it counts; and that the store has. */
    uint64_t wants_ms, carried_ms, grace_ms, stored_ms;
};

struct end_container {
    bool exists, runs;
    bool making;  /* it is to come yet */
    bool created; /* it has come, and is to be started yet, of which nobody tells */
    bool seen;    /* by a list that was taken, as one that runs */
    unsigned pod;
};

struct end_stop {
    uint64_t op;
    unsigned container;
    uint64_t kills_ms;
    bool open;
};

struct end_world {
    struct world *w; /* for what is broken */
    struct rng rng;
    struct devicemgr *core;
    uint64_t now_ms;
    bool calm; /* no trouble any more */
    struct end_pod pods[PODS];
    struct end_container containers[CONTAINERS], listed[CONTAINERS];
    size_t containers_len, listed_len;
    bool listing, list_wanted, away;
    bool store_failed; /* the last commit did */
    bool refused;      /* what the operator asked for last */
    struct end_stop stops[STOPS];
    size_t stops_len;
    uint64_t commit, last_create;
    struct devicemgr_record *rows, *pending; /* by pod; value NULL: none */
    bool in_pending[PODS];
};

static const char *const UIDS[PODS] = {"e0", "e1", "e2"};

static unsigned pod_of(const char *uid)
{
    return (unsigned)(uid[1] - '0');
}

static void row_set(struct devicemgr_record *row, const struct devicemgr_record *from)
{
    free((void *)row->value);
    row->value = NULL;
    row->value_bytes = from->value_bytes;
    if (from->value) {
        void *copy = malloc(from->value_bytes + 1);

        memcpy(copy, from->value, from->value_bytes);
        row->value = copy;
    }
}

/* ---- ports ---- */

static void on_stop(void *user, uint64_t op, const char *container_id, uint64_t grace_ms)
{
    struct end_world *e = user;
    unsigned number = (unsigned)atoi(container_id + 1);
    struct end_container *container = &e->containers[number];
    struct end_pod *pod = &e->pods[container->pod];

    check_that(e->w, pod->asked, "only containers of pods that are to end are stopped");
    check_that(e->w, !container->created, "what is not started is not stopped, which does nothing");
    check_that(e->w, grace_ms >= 1000 && grace_ms <= pod->grace_ms,
               "a container has no more than the shortest grace: %llu of %llu ms",
               (unsigned long long)grace_ms, (unsigned long long)pod->grace_ms);
    pod->sent = true;
    if (e->stops_len < STOPS)
        e->stops[e->stops_len++] = (struct end_stop){
            .op = op, .container = number, .kills_ms = e->now_ms + grace_ms, .open = true};
}

static void on_stop_cancel(void *user, uint64_t op)
{
    struct end_world *e = user;

    for (size_t i = 0; i < e->stops_len; i++) {
        if (e->stops[i].op == op)
            e->stops[i].open = false;
    }
}

static void on_evict(void *user, uint64_t order, const struct devicemgr_eviction *eviction)
{
    struct end_world *e = user;

    (void)order;
    (void)eviction;
    check_that(e->w, false, "without a cluster none is asked to evict a pod");
}

static void on_evict_cancel(void *user, uint64_t order)
{
    (void)user;
    (void)order;
}

static void on_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                      size_t records_len)
{
    struct end_world *e = user;

    e->commit = commit;
    for (unsigned pod = 0; pod < PODS; pod++) {
        e->pods[pod].carried_ms = e->pods[pod].wants_ms;
        e->pods[pod].told_carried = e->pods[pod].told;
        e->pods[pod].missed_carried = e->pods[pod].missed;
        e->pods[pod].put_off = false;
    }
    memset(e->in_pending, 0, sizeof e->in_pending);
    for (size_t i = 0; i < records_len; i++) {
        unsigned pod = pod_of(records[i].key[0]);

        if (records[i].kind != DEVICEMGR_RECORD_ENDING)
            continue;
        row_set(&e->pending[pod], &records[i]);
        e->in_pending[pod] = true;
    }
}

static void on_list(void *user)
{
    struct end_world *e = user;

    e->list_wanted = true;
}

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    struct end_world *e = user;

    (void)create;
    check_that(e->w, verdict->code == 9,
               "what is refused of a pod that is ended is so for good: %d", verdict->code);
}

static void on_event(void *user, const struct devicemgr_event *event)
{
    struct end_world *e = user;
    struct end_pod *pod;

    if (event->kind != DEVICEMGR_EVENT_ENDED)
        return;
    pod = &e->pods[pod_of(event->pod_uid)];
    check_that(e->w, pod->asked && !pod->told, "who asks is told once that the pod has ended");
    pod->told = true;
    pod->told_stored = pod->told_stored || !e->store_failed; /* by the commit that it waited for */
    for (size_t i = 0; i < e->containers_len; i++)
        check_that(e->w,
                   e->containers[i].pod != pod_of(event->pod_uid) || !e->containers[i].runs ||
                       !e->containers[i].seen,
                   "none of its containers runs that was listed");
}

/* Of a pod that the core has not heard of since its start; what is not stored yet (ABORTED)
 * counts. */
static void on_steered(void *user, uint64_t number, const struct devicemgr_steered *steered)
{
    struct end_world *e = user;

    (void)number;
    e->refused = steered->code != 0 && steered->code != 10;
}

static void on_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    (void)user;
    (void)level;
    (void)about;
    (void)text;
}

static const struct devicemgr_ports PORTS = {.commit = on_commit,
                                             .runtime_list = on_list,
                                             .stop_container = on_stop,
                                             .stop_cancel = on_stop_cancel,
                                             .evict_pod = on_evict,
                                             .evict_cancel = on_evict_cancel,
                                             .verdict = on_verdict,
                                             .event = on_event,
                                             .steered = on_steered,
                                             .log = on_log};

/* ---- the shim ---- */

static void run(struct end_world *e)
{
    devicemgr_run(e->core);
    for (size_t i = 0; i < e->stops_len; i++) {
        for (size_t k = 0; k < i; k++)
            check_that(e->w,
                       !e->stops[i].open || !e->stops[k].open ||
                           e->stops[i].container != e->stops[k].container,
                       "one StopContainer of a container is under way");
    }
}

static void start(struct end_world *e)
{
    static const struct devicemgr_settings settings = {.boot_id = "boot"};

    e->core = devicemgr_new(&settings, &PORTS, e);
    for (unsigned pod = 0; pod < PODS; pod++) {
        struct devicemgr_record row = {.kind = DEVICEMGR_RECORD_ENDING,
                                       .key = {UIDS[pod], "", ""},
                                       .value = e->rows[pod].value,
                                       .value_bytes = e->rows[pod].value_bytes};

        e->pods[pod].asked = e->pods[pod].stored = row.value != NULL;
        e->pods[pod].told = e->pods[pod].told_stored;
        e->pods[pod].missed = e->pods[pod].missed_stored;
        e->pods[pod].wants_ms = e->pods[pod].grace_ms = e->pods[pod].stored_ms;
        check_that(e->w, !row.value || devicemgr_restore(e->core, e->now_ms, &row) == 0,
                   "a pod's ending is restored");
    }
    devicemgr_restored(e->core, e->now_ms);
    devicemgr_kubelet_listed(e->core, e->now_ms);
    e->list_wanted = true; /* as a lister that has connected */
    run(e);
}

/* Its connection to the runtime ends, which gives up what it was stopping. */
static void kill_shim(struct end_world *e)
{
    devicemgr_free(e->core);
    for (size_t i = 0; i < e->stops_len; i++)
        e->stops[i].open = false;
    e->commit = 0;
    e->listing = e->list_wanted = false;
    start(e);
}

/* What is under way since before a shorter grace was asked for ends by that as well, in whole
 * seconds. */
static void check_stops(const struct end_world *e)
{
    for (size_t i = 0; i < e->stops_len; i++) {
        const struct end_stop *stop = &e->stops[i];
        const struct end_pod *pod = &e->pods[e->containers[stop->container].pod];

        check_that(e->w,
                   !stop->open || pod->stored_ms == NEVER ||
                       stop->kills_ms < e->now_ms + pod->stored_ms + 1000,
                   "what is being stopped has no longer than was asked for since");
    }
}

static void end_commit(struct end_world *e, bool fails)
{
    uint64_t commit = e->commit;

    if (commit == 0)
        return;
    e->commit = 0;
    for (unsigned pod = 0; pod < PODS; pod++)
        e->pods[pod].grace_ms = e->pods[pod].carried_ms;
    for (unsigned pod = 0; pod < PODS && !fails; pod++) {
        e->pods[pod].stored_ms = e->pods[pod].carried_ms;
        e->pods[pod].told_stored = e->pods[pod].told_carried;
        if (!e->in_pending[pod])
            continue;
        row_set(&e->rows[pod], &e->pending[pod]);
        e->pods[pod].missed_stored = e->pods[pod].missed_carried || e->pods[pod].put_off;
        e->pods[pod].stored = e->rows[pod].value != NULL;
    }
    e->store_failed = fails;
    devicemgr_committed(e->core, e->now_ms, commit, fails ? "the disk is full" : NULL);
    run(e);
    if (!fails)
        check_stops(e);
}

/* ---- the runtime ---- */

static void begin_list(struct end_world *e)
{
    if (e->away || e->listing)
        return;
    e->listing = true;
    e->list_wanted = false;
    devicemgr_runtime_listing(e->core);
    memcpy(e->listed, e->containers, sizeof e->listed);
    e->listed_len = e->containers_len;
}

/* As it was when it was asked for. */
static void end_list(struct end_world *e)
{
    struct devicemgr_sandbox sandboxes[PODS];
    struct devicemgr_container containers[CONTAINERS];
    char ids[CONTAINERS][8], boxes[PODS][8];
    size_t len = 0;

    if (!e->listing || e->away)
        return;
    e->listing = false;
    for (unsigned pod = 0; pod < PODS; pod++) {
        snprintf(boxes[pod], sizeof boxes[pod], "s%u", pod);
        sandboxes[pod] = (struct devicemgr_sandbox){.id = boxes[pod],
                                                    .pod_uid = UIDS[pod],
                                                    .pod_namespace = "ns",
                                                    .pod_name = UIDS[pod],
                                                    .ready = true};
    }
    for (size_t i = 0; i < e->listed_len; i++) {
        if (!e->listed[i].exists)
            continue;
        snprintf(ids[i], sizeof ids[i], "c%zu", i);
        if (e->listed[i].runs && !e->containers[i].seen && e->commit != 0)
            e->pods[e->listed[i].pod].put_off = true;
        e->containers[i].seen = e->containers[i].seen || e->listed[i].runs;
        containers[len++] =
            (struct devicemgr_container){.id = ids[i],
                                         .sandbox_id = boxes[e->listed[i].pod],
                                         .name = "main",
                                         .running = e->listed[i].runs || e->listed[i].created,
                                         .created = e->listed[i].created};
    }
    devicemgr_runtime_listed(e->core, e->now_ms, sandboxes, PODS, containers, len);
    run(e);
}

static void exit_container(struct end_world *e, size_t container)
{
    e->containers[container].runs = e->containers[container].created = false;
    for (size_t i = 0; i < e->stops_len; i++) {
        struct end_stop *stop = &e->stops[i];

        if (!stop->open || stop->container != container)
            continue;
        stop->open = false;
        devicemgr_container_stopped(e->core, e->now_ms, stop->op, 0, "");
    }
    run(e);
}

static void kill_due(struct end_world *e)
{
    for (size_t i = 0; i < e->stops_len; i++) {
        if (e->stops[i].open && !e->away && e->stops[i].kills_ms <= e->now_ms)
            exit_container(e, e->stops[i].container);
    }
}

static void fail_stop(struct end_world *e, size_t i)
{
    if (!e->stops[i].open)
        return;
    e->stops[i].open = false;
    devicemgr_container_stopped(e->core, e->now_ms, e->stops[i].op, 14, "it is away");
    run(e);
}

/* ---- the kubelet, the operator ---- */

static void make_container(struct end_world *e, unsigned pod)
{
    const struct devicemgr_create create = {.sandbox_id = "s",
                                            .pod_uid = UIDS[pod],
                                            .pod_namespace = "ns",
                                            .pod_name = UIDS[pod],
                                            .container = "main",
                                            .deadline_ms = NEVER};
    bool refused = devicemgr_create(e->core, e->now_ms, ++e->last_create, &create);

    check_that(e->w, !refused || e->pods[pod].asked, "a pod that is not to end is not refused");
    check_that(e->w, refused || !e->pods[pod].sent || !e->pods[pod].asked,
               "nothing of a pod is made once it is being stopped");
    run(e);
    if (!refused && e->containers_len < CONTAINERS)
        e->containers[e->containers_len++] = (struct end_container){.making = true, .pod = pod};
}

/* It is made; or one that is made is started. */
static void come(struct end_world *e, size_t i)
{
    struct end_container *is = &e->containers[i];

    if (is->making) {
        *is = (struct end_container){.exists = true, .created = true, .pod = is->pod};
        e->list_wanted = true; /* its event leads to one */
    } else if (is->created) {
        is->created = false;
        is->runs = true;
    }
}

static void ask(struct end_world *e, unsigned pod)
{
    uint64_t grace_ms = 1000 * rng_between(&e->rng, 1, GRACE_MS_MAX / 1000);
    struct end_pod *is = &e->pods[pod], before = *is;

    e->refused = false;
    is->wants_ms = is->asked && is->wants_ms < grace_ms ? is->wants_ms : grace_ms;
    is->sent = is->asked && is->sent;
    is->asked = true;
    is->told = is->missed = false;
    is->put_off = is->put_off || e->commit != 0;
    devicemgr_end(e->core, e->now_ms, 1, UIDS[pod], grace_ms, false, "it is to", 1);
    run(e);
    if (e->refused)
        *is = before;
}

static void take_back(struct end_world *e, unsigned pod)
{
    struct end_pod *is = &e->pods[pod];

    is->asked = is->sent = is->missed = false;
    is->put_off = is->put_off || e->commit != 0;
    is->wants_ms = NEVER;
    devicemgr_end_cancel(e->core, e->now_ms, 2, UIDS[pod]);
    run(e);
}

/* ---- the run ---- */

static void pass(struct end_world *e, uint64_t ms)
{
    e->now_ms += ms;
    kill_due(e);
    if (devicemgr_next_ms(e->core) <= e->now_ms) {
        devicemgr_tick(e->core, e->now_ms);
        run(e);
    }
}

static void happen(struct end_world *e)
{
    unsigned pod = (unsigned)rng_below(&e->rng, PODS);

    switch (rng_below(&e->rng, 14)) {
    case 0:
    case 1:
        ask(e, pod);
        break;
    case 2:
        if (rng_percent(&e->rng, 40))
            take_back(e, pod);
        break;
    case 3:
        make_container(e, pod);
        break;
    case 4:
        if (e->containers_len > 0)
            come(e, rng_below(&e->rng, e->containers_len));
        break;
    case 5:
        if (e->containers_len > 0)
            exit_container(e, rng_below(&e->rng, e->containers_len));
        break;
    case 6:
        if (e->stops_len > 0)
            fail_stop(e, rng_below(&e->rng, e->stops_len));
        break;
    case 7:
    case 8:
        end_commit(e, rng_percent(&e->rng, 20));
        break;
    case 9:
        begin_list(e);
        break;
    case 10:
        end_list(e);
        break;
    case 11:
        e->away = rng_percent(&e->rng, 30);
        break;
    case 12:
        if (rng_percent(&e->rng, 15))
            kill_shim(e);
        break;
    default:
        pass(e, rng_delay_ms(&e->rng, 20000));
        break;
    }
}

/* Everything is answered, and what is due comes. */
static void rest(struct end_world *e)
{
    e->calm = true;
    e->away = false;
    for (size_t i = 0; i < e->containers_len; i++)
        come(e, i);
    for (size_t step = 0; step < REST_STEPS; step++) {
        end_commit(e, false);
        if (step < e->containers_len)
            come(e, step); /* what a slow start has left */
        if (e->list_wanted || step == 0)
            begin_list(e);
        end_list(e);
        pass(e, 1000);
    }
}

static void judge(const struct end_world *e)
{
    for (size_t i = 0; i < e->containers_len; i++)
        check_that(e->w, !e->containers[i].runs || !e->pods[e->containers[i].pod].asked,
                   "no container runs of a pod that is to have ended");
    for (unsigned pod = 0; pod < PODS; pod++) {
        check_that(e->w, e->pods[pod].stored == e->pods[pod].asked,
                   "the store has what is asked for, and nothing else");
        check_that(e->w, e->pods[pod].missed || !e->pods[pod].asked || e->pods[pod].told,
                   "who has asked was told that the pod has ended");
    }
}

bool end_world_run(struct world *w)
{
    struct end_world *e = calloc(1, sizeof *e);

    if (!e)
        abort();
    e->w = w;
    e->rng = (struct rng){.state = w->play.seed};
    rng_mix(&e->rng, UINT64_MAX); /* no other's stream */
    e->now_ms = 1000000;
    e->rows = calloc(PODS, sizeof *e->rows);
    e->pending = calloc(PODS, sizeof *e->pending);
    for (unsigned pod = 0; pod < PODS; pod++) {
        e->pods[pod].wants_ms = e->pods[pod].grace_ms = e->pods[pod].stored_ms = NEVER;
        e->containers[e->containers_len++] =
            (struct end_container){.exists = true, .runs = true, .pod = pod};
    }
    start(e);
    begin_list(e);
    end_list(e);
    for (size_t step = 0; step < STEPS && !*w->broken; step++)
        happen(e);
    if (!*w->broken)
        rest(e);
    if (!*w->broken)
        judge(e);
    devicemgr_free(e->core);
    for (unsigned pod = 0; pod < PODS; pod++) {
        free((void *)e->rows[pod].value);
        free((void *)e->pending[pod].value);
    }
    free(e->rows);
    free(e->pending);
    free(e);
    return !*w->broken;
}
