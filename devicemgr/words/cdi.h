/*
 * What is said of a runtime that does not read CDI devices. Each adds the whole sentence.
 */
#ifndef DEVICEMGR_WORDS_CDI_H
#define DEVICEMGR_WORDS_CDI_H

#include "devicemgr/words/reason.h"

/* REASON_CDI_NOT_READ. `demand` does not matter. */
void cdi_explain_not_read(const struct state *state, const struct demand *demand,
                          const struct reason *reason, struct text *text);
/* REASON_CDI_UNHEARD. `state` and `demand` do not matter. */
void cdi_explain_unheard(const struct state *state, const struct demand *demand,
                         const struct reason *reason, struct text *text);
/* Nobody knows whether it reads them. */
void cdi_explain_unknown(struct text *text);

#endif
