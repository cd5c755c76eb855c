/*
 * The agent: what the API server knows of this node is told to the daemon, what the daemon wants
 * done there is done; and likewise of the machine's shutdown (shutdown.h). Without rules: it
 * decides nothing.
 */
#ifndef SHIM_AGENT_AGENT_H
#define SHIM_AGENT_AGENT_H

#include <uv.h>

#include "config/config.h"
#include "shim/fd_store.h"

struct agent;

/* `config` and `store` are borrowed until the end. NULL: with a log line. */
struct agent *agent_start(uv_loop_t *loop, const struct config_cluster *config,
                          struct fd_store *store);

/* Ends all requests; the loop closes what is open. Accepts NULL. */
void agent_stop(struct agent *agent);

#endif
