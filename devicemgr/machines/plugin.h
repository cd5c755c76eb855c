/*
 * Who serves the resources: plugin.c follows the plugins' endpoints and their lists,
 * registration.c takes Register calls, builtin.c what the shim serves itself.
 *
 * Who calls whom: builtin.c, plugin.c, registration.c, plugin_dial.c, each only those behind it.
 */
#ifndef DEVICEMGR_MACHINES_PLUGIN_H
#define DEVICEMGR_MACHINES_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "devicemgr/devicemgr.h"
#include "devicemgr/things/endpoint.h"

struct state;
struct devices_change;
struct resource;
struct text;

/* ---- plugin_dial.c ---- */

/* Connects to the socket, which `uid` registered. */
void plugin_dial(struct state *state, struct resource *resource, enum endpoint_origin origin,
                 const char *socket_name, uint32_t uid);
/* Ends the connection, if there is one, from our side; creates that wait for an answer on it are
 * held. */
void plugin_hang_up(struct state *state, struct endpoint *endpoint);
/* Answers this Register call. */
void plugin_answer_call(struct state *state, uint64_t registration, int code,
                        const struct text *text);
/* Answers the one that waits for this endpoint, if one does. */
void plugin_answer(struct state *state, struct endpoint *endpoint, int code,
                   const struct text *text);
/* Answers both that there may be: of the connection, and of the dial that waits. */
void plugin_answer_all(struct state *state, struct endpoint *endpoint, int code,
                       const struct text *text);
/* Answers that the dial failed; `reason` may say already, in the kubelet's words, how. */
void plugin_answer_failed(struct state *state, struct endpoint *endpoint, const char *reason);

/* ---- registration.c ---- */

/* devicemgr_register(); `is_path`: devicemgr_register_at() */
void registration_begin(struct state *state, uint64_t registration, const char *version,
                        const char *socket_name, uint32_t uid, bool is_path, const char *name);
/* devicemgr_register_cancelled() */
void registration_cancelled(struct state *state, uint64_t registration);
/* Makes the dial that had to wait for its turn. */
void registration_dial_waiting(struct state *state, struct resource *resource);

/* ---- plugin.c ---- */

/* Starts the grace of every restored resource, and dials its last socket, unless that one was away
 * and another has it: its plugin may have given it another name. */
void plugin_restored(struct state *state);
/* Removes the resources whose endpoint's time is over. */
void plugin_tick(struct state *state);
uint64_t plugin_next_ms(const struct state *state);

/* devicemgr_endpoint_options(), devicemgr_endpoint_list(), devicemgr_endpoint_lost() */
void plugin_take_options(struct state *state, uint64_t number,
                         const V1beta1__DevicePluginOptions *options);
void plugin_take_list(struct state *state, uint64_t number,
                      const V1beta1__ListAndWatchResponse *list);
void plugin_take_loss(struct state *state, uint64_t number, const char *reason);

/* The resource is no more, nor is `resource`. */
void plugin_remove(struct state *state, struct resource *resource);
/* Its devices have changed, or it is `activated`. Of one whose devices change all the time that is
 * logged now and then (LIST_TOLD_EVERY_MS), with what came together since. */
void plugin_log_list(struct state *state, struct resource *resource, bool activated,
                     const struct devices_change *change);

/* ---- builtin.c ---- */

/* devicemgr_builtin() */
void builtin_listed(struct state *state, const char *name,
                    const struct devicemgr_builtin_device *devices, size_t devices_len);

#endif
