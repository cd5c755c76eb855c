/*
 * What the parts of a link share: link.c has the pipe, link_session.c the session on it.
 */
#ifndef SHIM_RPC_LINK_INSIDE_H
#define SHIM_RPC_LINK_INSIDE_H

#include "shim/rpc/link.h"

/* Makes the link's session, its SETTINGS queued (`streams` as for link_init()). 0 or UV_ENOMEM,
 * with nothing to clean up. */
int link_session_new(struct link *link, size_t streams) __attribute__((warn_unused_result));

/* Why the link will end, for who is told of that; the first to say so counts. */
void link_set_reason(struct link *link, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
