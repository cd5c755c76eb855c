#include "tests/sim/asker.h"

#include "devicemgr/why.h"
#include "tests/sim/property.h"
#include "tests/sim/world.h"

#define ASKS_PERCENT 3

static void check_finding(struct world *w, const struct devicemgr_why_finding *finding)
{
    if (finding->step == DEVICEMGR_WHY_GO)
        check_that(w, finding->resource && finding->ids_len == finding->asked,
                   "what can be had is as much as was asked for");
    else
        check_that(w, finding->word && finding->text && finding->clears && *finding->clears,
                   "what is in the way has a reason, and an end");
}

static void on_answer(void *user, const struct devicemgr_why *why)
{
    struct world *w = user;

    count_add(why->pending        ? COUNT_ASKED_WAITS
              : why->refused_word ? COUNT_ASKED_REFUSED
                                  : COUNT_ASKED_HAS);
    check_that(w, why->pending || why->refused_word || why->findings_len > 0,
               "an answer says something");
    for (size_t i = 0; i < why->findings_len; i++)
        check_finding(w, &why->findings[i]);
}

/* Not by world_draw() and shim_now_ms(): neither world nor core may notice. */
void asker_asks(struct world *w)
{
    struct rng rng = {w->play.seed};

    rng_mix(&rng, DRAW_WHY);
    rng_mix(&rng, w->steps);
    if (!w->play.unasked && w->shim.core && rng_percent(&rng, ASKS_PERCENT))
        devicemgr_why(w->shim.core, w->now_ms - w->shim.boot_ms + 1, NULL, NULL, on_answer, w);
}
