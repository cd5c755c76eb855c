/*
 * Taints in the world of a machine that goes down: an operator sets some on pods' devices, and
 * takes them back; who has such a device is evicted, whatever else ends it.
 */
#include <stdio.h>
#include <string.h>

#include "devicemgr/operator.h"
#include "tests/sim/down_world.h"

static void device_of(size_t place, char out[8])
{
    snprintf(out, 8, "g%zu", place);
}

/* ---- what is set ---- */

static void ask(struct down_world *d, size_t place, bool on)
{
    char device[8];

    device_of(place, device);
    d->taint = (struct dw_taint){.number = ++d->number, .place = place, .on = on};
    down_note(d, "an operator %s %s", on ? "taints" : "untaints", device);
    if (on)
        devicemgr_taint(d->core, d->now_ms, d->taint.number, DW_RESOURCE, device, "k:NoExecute", 0,
                        "", 1, false);
    else
        devicemgr_untaint(d->core, d->now_ms, d->taint.number, DW_RESOURCE, device, "k:NoExecute");
    down_shim_run(d);
}

void down_taint_acts(struct down_world *d)
{
    size_t place = rng_below(&d->rng, DW_PODS);

    if (d->taint.number)
        return;
    count_add(d->tainted[place] ? COUNT_DOWN_UNTAINTED : COUNT_DOWN_TAINTED);
    ask(d, place, !d->tainted[place]);
}

void down_taint_heals(struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS && !d->taint.number; i++) {
        if (d->tainted[i])
            ask(d, i, false);
    }
}

void down_taint_answered(struct down_world *d, uint64_t number, bool done)
{
    struct dw_taint taint = d->taint;

    if (taint.number != number)
        return;
    d->taint = (struct dw_taint){0};
    if (done)
        d->tainted[taint.place] = taint.on;
}

void down_taint_restored(struct down_world *d)
{
    d->taint = (struct dw_taint){0};
    memset(d->tainted, 0, sizeof d->tainted);
    for (const struct row *row = d->rows; row; row = row->next) {
        for (size_t i = 0; row->kind == DEVICEMGR_RECORD_ORDER && i < DW_PODS; i++) {
            char id[32];

            snprintf(id, sizeof id, "k:NoExecute g%zu", i);
            d->tainted[i] = d->tainted[i] || strcmp(row->key[2], id) == 0;
        }
    }
}

/* ---- who goes for that ---- */

static bool is_pending(const struct down_world *d, size_t place)
{
    return d->taint.number && d->taint.place == place;
}

static bool may_go(const struct down_world *d, const struct dw_pod *pod)
{
    size_t place = (size_t)(pod - d->pods);

    return pod->device && (d->tainted[place] || is_pending(d, place));
}

static bool must_go(const struct down_world *d, const struct dw_pod *pod)
{
    size_t place = (size_t)(pod - d->pods);

    return pod->there && pod->device && d->tainted[place] && !is_pending(d, place) && d->listed &&
           pod->known && pod->ready && pod->failed != pod->sandbox && pod->runs && pod->seen;
}

void down_taint_asked(struct down_world *d, struct dw_pod *pod)
{
    down_note(d, "u%u is to be evicted", pod->uid);
    count_add(d->plan.state == DW_NONE ? COUNT_DOWN_EVICTED : COUNT_DOWN_EVICTED_IN_ONE);
    check_that(d->w, may_go(d, pod), "nobody is evicted whose device is not tainted: u%u",
               pod->uid);
    check_that(d->w, !d->draining, "nobody new is asked to go by a shim that ends: u%u", pod->uid);
    check_that(d->w, pod->asks[DW_EVICTION] == DW_NOT_ASKED || pod->unconfirmed || pod->loose,
               "each is evicted once: u%u", pod->uid);
    down_ask(pod, DW_EVICTION);
    pod->loose = false;
}

void down_taint_spared(struct down_world *d, struct dw_pod *pod)
{
    down_note(d, "u%u is not to be evicted any more", pod->uid);
    count_add(COUNT_DOWN_SPARED);
    check_that(d->w, !must_go(d, pod), "nobody is let go whose device is tainted: u%u", pod->uid);
    pod->asks[DW_EVICTION] = DW_NOT_ASKED;
    if (pod->asks[DW_OPERATOR] == DW_NOT_ASKED && pod->asks[DW_SHUTDOWN] != DW_NOT_ASKED &&
        pod->asked_ms == d->now_ms) {
        /* what was sent goes with the last who asks, perhaps just before this one */
        pod->due_ms = 0;
        pod->vague = true;
    }
}

/* What an earlier shim has asked for is not begun before a list has shown who is there, nor while
 * its taint is being set anew, or taken back. */
void down_taint_listed(struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        struct dw_pod *pod = &d->pods[i];

        if (!pod->unconfirmed || is_pending(d, i))
            continue;
        pod->unconfirmed = false;
        pod->epoch = d->epoch;
        pod->shown = false;
    }
}

void down_taint_judge(struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        struct dw_pod *pod = &d->pods[i];

        if (d->listed && !may_go(d, pod))
            pod->asks[DW_EVICTION] = DW_NOT_ASKED;
        pod->loose = pod->asks[DW_EVICTION] != DW_NOT_ASKED &&
                     (pod->loose || !pod->ready || pod->failed == pod->sandbox);
        check_that(d->w, d->draining || !must_go(d, pod) || pod->asks[DW_EVICTION] != DW_NOT_ASKED,
                   "who has a device that is tainted goes: u%u", pod->uid);
    }
}
