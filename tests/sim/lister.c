#include "tests/sim/lister.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/token.h"
#include "tests/sim/check.h"
#include "tests/sim/hasty.h"
#include "tests/sim/heap.h"
#include "tests/sim/over.h"
#include "tests/sim/pod_requests.h"
#include "tests/sim/rival.h"
#include "tests/sim/world.h"

#define LIST_MS_MAX 5000
#define CHECK_MS_MAX 1000
#define EVENT_MS_MAX 3000
/* As in the daemon: between two lists of a runtime without events, of one with them, and between an
 * event and the list it leads to. */
#define POLL_MS 10000
#define EVENTED_MS 300000
#define SETTLE_MS 1000

static void list_within(struct world *w, uint64_t delay_ms);

/* ---- questions about one container ---- */

static void note_ran(struct world *w, const struct rt_container *c)
{
    struct ran *ran = &w->lister.ran[w->lister.ran_len++ % RANS_MAX];

    *ran = (struct ran){.ms = w->now_ms, .uid = c->uid};
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        ran->ids[r] = c->held[r] | c->noted[r];
}

static void checked(struct world *w, uint64_t slot, uint64_t container)
{
    uint64_t check = w->lister.checks[slot];
    const struct rt_container *c = runtime_find_container(w, (unsigned)container);

    w->lister.checks[slot] = 0;
    world_note(w, "runtime: check of c%u: %s", (unsigned)container,
               w->runtime.down        ? "no answer"
               : c && c->stale        ? "it was created"
               : c && runtime_live(c) ? "it runs"
               : c                    ? "exited"
                                      : "not known");
    if (w->runtime.down) {
        w->lister.unanswered_ms = w->now_ms;
        devicemgr_container_checked(w->shim.core, shim_now_ms(w), check, DEVICEMGR_NOT_ANSWERED);
    } else if (c && (runtime_live(c) || c->stale)) {
        note_ran(w, c);
        devicemgr_container_checked(w->shim.core, shim_now_ms(w), check, DEVICEMGR_RUNS);
    } else {
        devicemgr_container_checked(w->shim.core, shim_now_ms(w), check, DEVICEMGR_GONE);
    }
    shim_run(w);
}

static void check_later(struct world *w, uint64_t slot_and_container, uint64_t incarnation)
{
    if (shim_lives(w, incarnation))
        hasty_check(w, slot_and_container & 0xffffffff);
    if (shim_lives(w, incarnation))
        checked(w, slot_and_container >> 32, slot_and_container & 0xffffffff);
}

void lister_check(struct world *w, uint64_t check, const char *container_id)
{
    unsigned container = (unsigned)strtoul(container_id + 1, NULL, 10);
    struct rng rng = world_draw(w, DRAW_CHECK, container, 0);
    size_t slot = 0;

    while (slot < CHECKS_MAX && w->lister.checks[slot])
        slot++;
    check_that(w, slot < CHECKS_MAX, "checks under way are bounded");
    if (slot == CHECKS_MAX)
        return;
    w->lister.checks[slot] = check;
    world_after(w, &rng, rng_delay_ms(&rng, CHECK_MS_MAX) + hasty_slow_ms(w, container),
                check_later, (uint64_t)slot << 32 | container, w->shim.incarnation);
}

size_t lister_checks_open(const struct world *w)
{
    size_t open = 0;

    for (size_t i = 0; i < CHECKS_MAX; i++)
        open += w->lister.checks[i] != 0;
    return open;
}

/* ---- events ---- */

/* A container ended, as the stream tells it; 0: a sandbox changed, or something was made. */
static void event_arrives(struct world *w, uint64_t stream, uint64_t ended)
{
    char id[16];

    if (!w->shim.core || w->lister.stream != stream)
        return;
    if (ended == 0) {
        w->lister.stale = true;
        list_within(w, SETTLE_MS);
        return;
    }
    world_note(w, "runtime: event: c%u ended", (unsigned)ended);
    snprintf(id, sizeof id, "c%u", (unsigned)ended);
    devicemgr_container_removed(w->shim.core, shim_now_ms(w), id);
    shim_run(w);
}

void lister_event(struct world *w, enum lister_event event, unsigned id, bool sandbox)
{
    struct lister *lister = &w->lister;
    struct rng rng = world_draw(w, DRAW_EVENT, (uint64_t)sandbox << 32 | id, event);
    const struct rng in_order = {lister->stream};
    unsigned times = rng_percent(&rng, 3) ? 2 : 1;

    if (!lister->stream)
        return;
    for (unsigned i = 0; i < times; i++) {
        uint64_t at_ms = w->now_ms + rng_delay_ms(&rng, EVENT_MS_MAX);

        if (at_ms > lister->delivered_ms)
            lister->delivered_ms = at_ms;
        world_after(w, &in_order, lister->delivered_ms - w->now_ms, event_arrives, lister->stream,
                    event == LISTER_ENDED && !sandbox ? id : 0);
    }
}

void lister_stream_ends(struct world *w)
{
    if (!w->lister.stream)
        return;
    world_note(w, "runtime: the stream of events ends");
    w->lister.stream = 0;
    w->runtime.unseen = true;
    list_within(w, POLL_MS);
}

static void stream_open(struct world *w)
{
    if (w->runtime.eventless || w->lister.stream)
        return;
    w->lister.stream = ++w->lister.last_stream;
    w->lister.delivered_ms = w->now_ms;
}

/* ---- lists ---- */

/* An answer of the runtime, and the texts in it. */
struct listed {
    struct devicemgr_sandbox sandboxes[SANDBOXES_MAX];
    struct devicemgr_container containers[CONTAINERS_MAX];
    struct devicemgr_annotation notes[CONTAINERS_MAX * RESOURCES_LEN];
    struct pod_requests requests[SANDBOXES_MAX];
    char sandbox_ids[SANDBOXES_MAX][16], sandbox_uids[SANDBOXES_MAX][16];
    char container_ids[CONTAINERS_MAX][16], container_sandboxes[CONTAINERS_MAX][16];
    size_t sandboxes_len, containers_len, notes_len;
};

static void fill_sandbox(struct world *w, struct listed *listed, const struct rt_sandbox *s)
{
    const struct pod_sim *pod = kubelet_find_pod(w, s->uid);
    size_t n = listed->sandboxes_len++;

    snprintf(listed->sandbox_ids[n], sizeof listed->sandbox_ids[n], "s%u", s->id);
    snprintf(listed->sandbox_uids[n], sizeof listed->sandbox_uids[n], "u%u", s->uid);
    listed->sandboxes[n] = (struct devicemgr_sandbox){.id = listed->sandbox_ids[n],
                                                      .pod_uid = listed->sandbox_uids[n],
                                                      .pod_namespace = "ns",
                                                      .pod_name = listed->sandbox_uids[n],
                                                      .attempt = s->attempt,
                                                      .ready = s->ready && !s->hidden};
    if (!pod)
        return;
    pod_requests_fill(pod, &listed->requests[n]);
    listed->sandboxes[n].annotations = listed->requests[n].v;
    listed->sandboxes[n].annotations_len = listed->requests[n].len;
}

static void fill_container(struct listed *listed, const struct rt_container *c)
{
    size_t n = listed->containers_len++;
    struct devicemgr_container *out = &listed->containers[n];

    snprintf(listed->container_ids[n], sizeof listed->container_ids[n], "c%u", c->id);
    snprintf(listed->container_sandboxes[n], sizeof listed->container_sandboxes[n], "s%u",
             c->sandbox);
    *out = (struct devicemgr_container){.id = listed->container_ids[n],
                                        .sandbox_id = listed->container_sandboxes[n],
                                        .name = container_sim_name(c->name),
                                        .attempt = c->attempt,
                                        .running = runtime_live(c) || c->stale,
                                        .created = c->state == CONTAINER_CREATED || c->stale,
                                        .annotations = &listed->notes[listed->notes_len]};
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        struct id_list ids = device_sim_ids(c->noted[r]);

        if (ids.len > 0) {
            listed->notes[listed->notes_len++] = (struct devicemgr_annotation){
                token_key(resource_sim_name(r)),
                token_value(resource_sim_name(r), (const char *const *)ids.v, ids.len)};
            out->annotations_len++;
        }
        id_list_fini(&ids);
    }
}

static void list_drop(struct lister *lister)
{
    struct listed *listed = lister->listed;

    for (size_t i = 0; listed && i < listed->notes_len; i++) {
        free((char *)listed->notes[i].key);
        free((char *)listed->notes[i].value);
    }
    free(listed);
    lister->listed = NULL;
}

static bool listed_ready(const struct listed *listed, const char *sandbox)
{
    for (size_t i = 0; i < listed->sandboxes_len; i++) {
        if (strcmp(listed->sandboxes[i].id, sandbox) == 0)
            return listed->sandboxes[i].ready;
    }
    return false;
}

/* A container made after the sandboxes were asked for may come without its own: it is heard of with
 * the next list. */
static void note_heard(struct world *w, const struct listed *listed)
{
    for (size_t i = 0; i < listed->sandboxes_len; i++)
        over_listed(w, (unsigned)strtoul(listed->sandboxes[i].id + 1, NULL, 10),
                    listed->sandboxes[i].ready);
    for (size_t i = 0; i < listed->containers_len; i++) {
        const struct devicemgr_container *c = &listed->containers[i];

        if (c->running && listed_ready(listed, c->sandbox_id))
            rival_heard(w, (unsigned)strtoul(c->id + 1, NULL, 10));
    }
}

/* False: that list is off. */
static bool list_goes_on(const struct world *w, uint64_t list)
{
    return w->shim.core && w->lister.list == list && w->lister.listed;
}

static void list_arrives(struct world *w, uint64_t list, uint64_t unused)
{
    struct lister *lister = &w->lister;

    (void)unused;
    if (!list_goes_on(w, list))
        return;
    world_note(w, "runtime: listed, %zu sandboxes and %zu containers",
               lister->listed->sandboxes_len, lister->listed->containers_len);
    client_disturb(w, 0);
    note_heard(w, lister->listed);
    devicemgr_runtime_listed(w->shim.core, shim_now_ms(w), lister->listed->sandboxes,
                             lister->listed->sandboxes_len, lister->listed->containers,
                             lister->listed->containers_len);
    for (size_t i = 0; i < lister->listed->sandboxes_len; i++) {
        if (lister->listed->sandboxes[i].ready)
            shown_pods_told(w);
    }
    list_drop(lister);
    lister->heard_ms = lister->begun_ms;
    claims_listed(w);
    w->shim.relisted = true;
    w->shim.relisted_commit = w->store.commit;
    list_within(w, lister->again    ? 0
                   : lister->stale  ? SETTLE_MS
                   : lister->stream ? EVENTED_MS
                                    : POLL_MS);
    shim_run(w);
}

static void list_containers(struct world *w, uint64_t list, uint64_t unused)
{
    struct rng rng = world_draw(w, DRAW_LIST, 2, 0);

    (void)unused;
    if (!list_goes_on(w, list))
        return;
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        if (w->runtime.containers[i].id)
            fill_container(w->lister.listed, &w->runtime.containers[i]);
    }
    world_after(w, &rng, rng_delay_ms(&rng, LIST_MS_MAX), list_arrives, list, 0);
}

static void list_sandboxes(struct world *w, uint64_t list, uint64_t unused)
{
    struct rng rng = world_draw(w, DRAW_LIST, 1, 0);

    (void)unused;
    if (!list_goes_on(w, list))
        return;
    for (size_t i = 0; i < w->runtime.sandboxes_end; i++) {
        if (w->runtime.sandboxes[i].id)
            fill_sandbox(w, w->lister.listed, &w->runtime.sandboxes[i]);
    }
    world_after(w, &rng, rng_delay_ms(&rng, LIST_MS_MAX), list_containers, list, 0);
}

static void list_begin(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_LIST, 0, 0);
    struct lister *lister = &w->lister;

    lister->again = lister->stale = false;
    stream_open(w);
    lister->listed = heap_alloc(1, sizeof *lister->listed);
    w->runtime.unseen = false;
    world_note(w, "runtime: being listed");
    devicemgr_runtime_listing(w->shim.core);
    lister->begun_ms = w->shim.told_ms;
    world_after(w, &rng, rng_delay_ms(&rng, LIST_MS_MAX), list_sandboxes, ++lister->list, 0);
}

static void list_due(struct world *w, uint64_t incarnation, uint64_t unused)
{
    (void)unused;
    if (!shim_lives(w, incarnation) || w->lister.due_ms != w->now_ms)
        return;
    w->lister.due_ms = UINT64_MAX;
    if (!w->runtime.down && !w->lister.listed)
        list_begin(w);
}

/* The next list comes in `delay_ms` at the latest; one that is under way plans it by itself. */
static void list_within(struct world *w, uint64_t delay_ms)
{
    struct rng rng = world_draw(w, DRAW_LIST, 3, 0);
    struct lister *lister = &w->lister;

    if (lister->listed || lister->due_ms <= w->now_ms + delay_ms)
        return;
    lister->due_ms = w->now_ms + delay_ms;
    world_after(w, &rng, delay_ms, list_due, w->shim.incarnation, 0);
}

bool lister_heard_since(const struct world *w, uint64_t ms)
{
    return w->lister.heard_ms > 0 && w->lister.heard_ms >= ms;
}

/* ---- life ---- */

void lister_start(struct world *w)
{
    w->lister.due_ms = UINT64_MAX;
    list_within(w, 0);
}

void lister_stop(struct world *w)
{
    list_drop(&w->lister);
    w->lister.list++;
    w->lister.stream = 0;
    w->lister.due_ms = UINT64_MAX;
    memset(w->lister.checks, 0, sizeof w->lister.checks);
    memset(w->lister.ran, 0, sizeof w->lister.ran);
    w->lister.heard_ms = w->lister.unanswered_ms = w->lister.ran_len = 0;
}

void lister_runtime_gone(struct world *w)
{
    list_drop(&w->lister);
    w->lister.list++;
    w->lister.stream = 0;
    w->lister.due_ms = UINT64_MAX; /* it is listed when it is back */
    w->runtime.unseen = true;
}

void lister_refresh(struct world *w)
{
    w->lister.again = true;
    list_within(w, 0);
}
