#include "tests/sim/over.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "tests/sim/check.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

/* A shim may run some ms late. */
#define STORED_MS_MAX (STOPPED_STORE_MS + 100)

struct rt_sandbox *over_newest(const struct world *w, unsigned uid)
{
    const struct rt_sandbox *found = NULL;

    for (size_t i = 0; i < w->runtime.sandboxes_end; i++) {
        const struct rt_sandbox *s = &w->runtime.sandboxes[i];

        if (s->id && s->uid == uid && (!found || s->attempt > found->attempt))
            found = s;
    }
    return (struct rt_sandbox *)found;
}

void over_listed(struct world *w, unsigned sandbox, bool ready)
{
    struct rt_sandbox *s = runtime_find_sandbox(w, sandbox);

    if (!s)
        return;
    s->told_in = w->shim.incarnation;
    s->dead_told = !ready;
}

void over_stop_asked(struct world *w, struct rt_sandbox *s)
{
    bool first = !s->stop_asked || w->now_ms < s->remade_ms;

    s->stop_asked = true;
    if (!s->dead_told)
        return;
    s->doubted_ms = w->now_ms + SANDBOX_REMADE_MS;
    if (first)
        s->remade_ms = s->doubted_ms;
}

/* What the row of its pod says of the sandbox. */
struct stored {
    bool named; /* it is the pod's newest to the shim */
    bool stopped;
    bool died;
};

static struct stored stored_of(const struct world *w, const struct rt_sandbox *s)
{
    const struct store_row *row;
    struct stored stored = {0};
    Checkpoint__V1__Pod *pod;
    char uid[16];

    snprintf(uid, sizeof uid, "u%u", s->uid);
    row = store_find(&w->store, DEVICEMGR_RECORD_POD, uid, "", "");
    if (!row)
        return stored;
    pod = checkpoint__v1__pod__unpack(NULL, row->record.value_bytes, row->record.value);
    if (pod->sandbox_id[0] == 's' && strtoul(pod->sandbox_id + 1, NULL, 10) == s->id)
        stored = (struct stored){.named = true,
                                 .stopped = pod->stopped && !pod->died,
                                 .died = pod->stopped && pod->died};
    checkpoint__v1__pod__free_unpacked(pod, NULL);
    return stored;
}

static bool has_allocation(const struct world *w, unsigned uid)
{
    const struct store_row *row = w->store.rows;
    char name[16];

    snprintf(name, sizeof name, "u%u", uid);
    while (row && (row->record.kind != DEVICEMGR_RECORD_ALLOCATION ||
                   strcmp(row->record.key[0], name) != 0))
        row = row->next;
    return row != NULL;
}

/* A list may take up again what was created only in it, once a newer one of its pod was removed. */
static bool is_taken_up(const struct world *w, const struct rt_sandbox *s)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        if (w->runtime.containers[i].sandbox == s->id && w->runtime.containers[i].stale)
            return true;
    }
    return false;
}

void over_stop_told(struct world *w, struct rt_sandbox *s)
{
    if (s->stopped_in != w->shim.incarnation)
        s->row_by_ms = s->told_in == w->shim.incarnation ? w->now_ms + STORED_MS_MAX : 0;
    s->stopped_in = w->shim.incarnation;
}

void over_check(struct world *w)
{
    for (size_t i = 0; i < w->runtime.sandboxes_end; i++) {
        struct rt_sandbox *s = &w->runtime.sandboxes[i];
        struct stored stored;

        if (!s->id || !s->row_by_ms || s->stopped_in != w->shim.incarnation ||
            w->now_ms < s->row_by_ms || w->store.fails || w->store.commit)
            continue; /* or it is being stored */
        s->row_by_ms = 0;
        stored = stored_of(w, s);
        check_that(
            w, !stored.named || stored.stopped || !has_allocation(w, s->uid) || is_taken_up(w, s),
            "that s%u of u%u was stopped is stored: nobody may stop it again", s->id, s->uid);
    }
}

/* A row that says it was stopped was written after that, and what was known then is in it. Else
 * the stop is not known: it is asked for again, or, of a pod that has ended, never. */
static void start_with(struct world *w, struct rt_sandbox *s)
{
    struct stored stored = stored_of(w, s);
    bool remade = stored.stopped && w->now_ms < s->remade_ms;

    s->remade_ms = remade ? w->now_ms + SANDBOX_REMADE_MS : 0;
    if (remade)
        count_add(COUNT_REMADE_OVER_RESTART);
    if (s->doubted_ms > 0) /* the row may be of then */
        s->doubted_ms = w->now_ms + SANDBOX_REMADE_MS;
    s->stop_asked = stored.stopped;
    s->dead_told = remade || stored.died;
    if (stored.stopped)
        s->stopped_in = w->shim.incarnation;
}

void over_shim_started(struct world *w)
{
    for (size_t i = 0; i < w->runtime.sandboxes_end; i++) {
        if (w->runtime.sandboxes[i].id)
            start_with(w, &w->runtime.sandboxes[i]);
    }
}

bool over_listed_as_ended(const struct world *w, unsigned uid)
{
    return lister_heard_since(w, runtime_ended_ms(w, uid) + 1) && !runtime_runs(w, uid) &&
           !runtime_ready_sandbox((struct world *)w, uid);
}

bool over_surely(const struct world *w, unsigned uid)
{
    const struct rt_sandbox *newest = over_newest(w, uid);

    if (!over_listed_as_ended(w, uid))
        return false;
    return !newest ||
           (newest->stopped_in == w->shim.incarnation && w->now_ms >= newest->doubted_ms);
}

bool over_remade(struct world *w, unsigned uid)
{
    const struct pod_sim *pod = kubelet_find_pod(w, uid);
    const struct rt_sandbox *newest = over_newest(w, uid);

    return pod && !pod->deleting && newest && !runtime_ready_sandbox(w, uid) &&
           w->now_ms < newest->remade_ms;
}
