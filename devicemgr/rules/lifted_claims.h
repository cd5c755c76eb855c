/*
 * By which claims containers have devices of lifted resources (lift.h), and who may have one beside
 * whom by that.
 */
#ifndef DEVICEMGR_RULES_LIFTED_CLAIMS_H
#define DEVICEMGR_RULES_LIFTED_CLAIMS_H

#include <stdbool.h>

#include "devicemgr/things/by_claims.h"

struct allocation;
struct state;
struct wanted;

/* Whether two containers may both have this device of a lifted resource by claims: each claim of
 * the one is the other's too, or only looks at it. Of a claim that is not known here, since the
 * checkpoint was lost, nobody has said that it does. By no claim, as in rows from before they were
 * kept: then nothing is known against it. */
bool lifted_claims_shared(const struct state *state, const char *resource, const char *id,
                          const struct by_claims *one, const struct by_claims *other);
/* By which claims the container wants the device, NULL: all of the resource; with what is known, or
 * was when it had it before, of who only looks. The caller frees it. */
struct by_claims lifted_claims_wanted(const struct state *state, const struct wanted *wanted,
                                      const char *id);
/* By which it has its devices, with what is known by now of who only looks. The caller frees it. */
struct by_claims lifted_claims_known(const struct state *state,
                                     const struct allocation *allocation);

#endif
