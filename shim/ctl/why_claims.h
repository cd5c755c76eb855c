/*
 * What "why" says of claims.
 */
#ifndef SHIM_CTL_WHY_CLAIMS_H
#define SHIM_CTL_WHY_CLAIMS_H

#include "cri-proto/control_v1.pb-c.h"
#include "shim/ctl/show.h"

void why_claim_put(const struct show *show, const Control__V1__ClaimWhy *claim);
/* SHOW_NAME: claim/NAMESPACE/NAME/DRIVER */
void why_claim_put_name(const struct show *show, const Control__V1__ClaimWhy *claim);

/* ---- why.c's, for it ---- */

/* " [WORD]", and what it means, a line each. */
void why_put_reason(const struct show *show, const Control__V1__Reason *reason);
/* NAME, in its colour. */
void why_put_step(const struct show *show, Control__V1__Finding__Step step);
void why_put_refusal(const struct show *show, const Control__V1__Refusal *refusal);

#endif
