/*
 * By which name a browser has come here (RFC 9110 section 7.2).
 *
 * A page of somebody else's can make a browser on this machine ask us: it has its own name resolved
 * to 127.0.0.1 (DNS rebinding), and then counts as of one origin with what is here. It cannot have
 * the browser send another Host than its name. So only those are answered that nobody else can
 * have: an address, and localhost.
 */
#ifndef SHIM_PAGE_AUTHORITY_H
#define SHIM_PAGE_AUTHORITY_H

#include <stdbool.h>

/* "localhost", "127.0.0.1", "[::1]" and other addresses, each with ":PORT" or without. */
bool authority_is_local(const char *host);

#endif
