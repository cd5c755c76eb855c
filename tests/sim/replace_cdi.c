/*
 * CDI devices that the plugin gives, and what the runtime says that it makes of those.
 */
#include <string.h>

#include "tests/sim/answer_options.h"
#include "tests/sim/replace_world.h"
#include "tests/sim/world.h"

#define CODE_FAILED_PRECONDITION 9
#define CODE_UNAVAILABLE 14

void replace_cdi_begins(struct replace_world *r)
{
    r->by_cdi = r->w->play.seed % 8 == 3;
    r->cdi_rng = (struct rng){.state = r->w->play.seed};
    rng_mix(&r->cdi_rng, UINT64_MAX - 50); /* no other's stream */
}

void replace_cdi_tells(struct replace_world *r)
{
    if (r->by_cdi)
        devicemgr_runtime_cdi(r->core, r->now_ms, r->cdi);
}

static void turn(struct replace_world *r, enum devicemgr_cdi cdi)
{
    r->cdi = cdi;
    replace_note(r, "of CDI devices the runtime says now: %d", cdi);
    replace_cdi_tells(r);
    replace_shim_run(r);
}

void replace_cdi_turns(struct replace_world *r)
{
    if (r->by_cdi && rng_percent(&r->cdi_rng, 20))
        turn(r, (enum devicemgr_cdi)rng_below(&r->cdi_rng, DEVICEMGR_CDI_UNHEARD + 1));
}

void replace_cdi_settles(struct replace_world *r)
{
    if (r->by_cdi)
        turn(r, DEVICEMGR_CDI_READ);
}

void replace_cdi_gives(struct replace_world *r, V1beta1__ContainerAllocateResponse *options,
                       const char *value)
{
    bool cdi = r->by_cdi && rng_percent(&r->cdi_rng, 70);

    if (cdi)
        answer_options_add_cdi(options, value);
    if (!cdi || rng_percent(&r->cdi_rng, 20))
        answer_options_add_env(options, "DEVICES", value);
}

static bool is_alone(const V1beta1__ContainerAllocateResponse *options)
{
    return options && options->n_cdi_devices > 0 && options->n_envs == 0;
}

void replace_cdi_judges(struct replace_world *r, const struct devicemgr_verdict *verdict)
{
    bool unread = r->cdi == DEVICEMGR_CDI_NONE || r->cdi == DEVICEMGR_CDI_ANNOTATED;
    bool unheard = r->cdi == DEVICEMGR_CDI_UNHEARD;

    if (is_alone(verdict->options)) {
        count_add(COUNT_REPLACE_BY_CDI);
        check_that(r->w, !unread && !unheard,
                   "no container is made with CDI devices alone that the runtime may not read");
    }
    if (!verdict->message || !strstr(verdict->message, "the plugin gives nothing but those"))
        return;
    count_add(unheard ? COUNT_REPLACE_CDI_UNHEARD : COUNT_REPLACE_CDI_UNREAD);
    check_that(r->w, unread || unheard,
               "CDI devices are refused only where the runtime may not read them");
    check_that(r->w, verdict->code == (unheard ? CODE_UNAVAILABLE : CODE_FAILED_PRECONDITION),
               "a runtime that is to say whether it reads them is waited for");
}
