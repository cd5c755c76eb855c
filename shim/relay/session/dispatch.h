/*
 * Which frame goes to whom: the callbacks of the session's two lanes.
 */
#ifndef SHIM_RELAY_SESSION_DISPATCH_H
#define SHIM_RELAY_SESSION_DISPATCH_H

#include "shim/relay/session.h"

/* Makes the lane of the bytes that come from `from`; lane_fini() frees what it holds. */
void dispatch_init(struct session *s, enum session_end from);

/* The methods' classes are others: which blocks pass without a look. */
void dispatch_choose_methods(struct session *s);

/* Whenever a feed is over, or the owner has done something: what passed without a look comes into
 * the ledger, and what is to be looked at is chosen anew. */
void dispatch_settle(struct session *s);

#endif
