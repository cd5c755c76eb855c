#include "devicemgr/words/cdi.h"

#include "devicemgr/books/state.h"

#define ALONE "the plugin gives nothing but those, for device ids"

void cdi_explain_not_read(const struct state *state, const struct demand *demand,
                          const struct reason *reason, struct text *text)
{
    (void)demand;
    text_add(text, "the runtime would start it without the devices of its %s: it %s; %s ",
             reason->resource ? "plugin" : "claim",
             state->cdi == DEVICEMGR_CDI_NONE
                 ? "does not support CDI devices, or that is switched off"
                 : "reads CDI devices in annotations only, and nobody sends those any more",
             reason->resource ? ALONE : "CDI names");
    text_add_ids(text, &reason->ids);
}

void cdi_explain_unheard(const struct state *state, const struct demand *demand,
                         const struct reason *reason, struct text *text)
{
    (void)state;
    (void)demand;
    text_add(text, "the runtime has not said yet whether it supports CDI devices; " ALONE " ");
    text_add_ids(text, &reason->ids);
}

void cdi_explain_unknown(struct text *text)
{
    text_add(text,
             "it is not known whether the runtime supports CDI devices: containers with those of "
             "claims are passed on, and start without them if it does not");
}
