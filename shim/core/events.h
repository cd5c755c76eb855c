/*
 * What happens in the world, told to the core: what plugins, built-in devices, the runtime and the
 * checkpoint say, each with the time, and the core's turn behind it.
 *
 * The `user` of all of them is the struct host.
 */
#ifndef SHIM_CORE_EVENTS_H
#define SHIM_CORE_EVENTS_H

#include <stdint.h>

#include "shim/plugins/builtins.h"
#include "shim/plugins/plugin_client.h"
#include "shim/plugins/registrar.h"
#include "shim/runtime/lister.h"
#include "shim/runtime/stopper.h"

extern const struct registrar_ops EVENTS_OF_REGISTRAR;
extern const struct plugin_clients_ops EVENTS_OF_PLUGINS;
extern const struct builtins_ops EVENTS_OF_BUILTINS;
extern const struct lister_ops EVENTS_OF_RUNTIME;
extern const struct stopper_ops EVENTS_OF_STOPPER;

/* store_worker_ops, as far as it concerns commits. */
void events_committed(void *user, uint64_t commit, const char *error);
void events_store_reset(void *user);

#endif
