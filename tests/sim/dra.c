#include "tests/sim/dra.h"

#include <string.h>

#include "tests/sim/check.h"
#include "tests/sim/world.h"

#define WORLDS 3 /* in one of so many */

void dra_init(struct world *w)
{
    w->dra.there = w->play.seed % WORLDS == 1 && !w->play.decisions;
    if (!w->dra.there)
        return;
    dra_cluster_init(w);
    dra_drivers_init(w);
    dra_pods_init(w);
}

/* What the rows do not say: an answer that died with the shim; and where they are lost, what it has
 * forgotten is nobody's to keep. */
static void forget_lost(struct world *w)
{
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        for (size_t d = 0; d < DRA_DRIVERS; d++) {
            struct dra_truth *truth = &w->dra.claims[i].truth[d];
            char uid[16];

            dra_claim_names(i, uid);
            truth->tried = false;
            truth->answered = dra_stored_version(w, i, d);
            if (store_find(&w->store, DEVICEMGR_RECORD_CLAIM, uid, dra_driver_name(d), ""))
                continue;
            truth->unknown = truth->prepared;
            if (truth->owed)
                *truth = (struct dra_truth){0}; /* the driver is told by hand */
        }
    }
}

void dra_shim_started(struct world *w)
{
    if (!w->dra.there)
        return;
    forget_lost(w);
    dra_drivers_shim_started(w);
    dra_uses_shim_started(w);
    dra_judge_by_rows(w);
    dra_cluster_shim_started(w);
    dra_wipes_shim_started(w);
}

void dra_shim_gone(struct world *w)
{
    if (!w->dra.there)
        return;
    memset(w->dra.asked, 0, sizeof w->dra.asked);
    dra_drivers_shim_gone(w);
    dra_pods_shim_gone(w);
    dra_wipes_shim_gone(w);
}

void dra_heal(struct world *w)
{
    if (!w->dra.there)
        return;
    dra_cluster_heal(w);
    dra_drivers_heal(w);
}

void dra_end(struct world *w)
{
    w->dra.over = true;
}

bool dra_is_done(struct world *w)
{
    for (size_t i = 0; i < w->dra.pods_len; i++) {
        if (w->dra.pods[i].uid)
            return false;
    }
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        if (w->dra.claims[i].life != DRA_GONE)
            return false;
        for (size_t d = 0; d < DRA_DRIVERS; d++) {
            if (w->dra.claims[i].truth[d].prepared)
                return false;
        }
    }
    return w->shim.core && store_count(&w->store, DEVICEMGR_RECORD_CLAIM) == 0;
}

void dra_check(struct world *w)
{
    if (!w->dra.there)
        return;
    dra_wipes_check(w);
    dra_judge_drain(w);
}

void dra_check_nothing_left(struct world *w)
{
    check_that(w, store_count(&w->store, DEVICEMGR_RECORD_CLAIM) == 0, "no claim is left");
    for (size_t d = 0; d < DRA_DRIVERS; d++)
        check_that(w, !w->dra.wipes[d].ordered, "nothing is wiped of driver %zu, which is there",
                   d);
}
