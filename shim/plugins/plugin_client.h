/*
 * The client side of the DevicePlugin service: one connection for each of the core's endpoints.
 *
 *             socket is sound, connected            options
 *     WAITING ─────────────────────────────▶ ASKING ───────▶ STREAMING
 *      │   ▲                                    │                │
 *      │   └── not there yet, and dialled       │                │
 *      │       patiently                        │                │
 *      └────────────────────────────────────────┴────────────────┴──▶ lost and freed
 *
 * WAITING waits for its timer, ASKING for GetDevicePluginOptions, STREAMING for lists.
 */
#ifndef SHIM_PLUGINS_PLUGIN_CLIENT_H
#define SHIM_PLUGINS_PLUGIN_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "shim/fd_store.h"

/* A plugin may listen a moment after it registers; the kubelet waits that long
 * (pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go, dial). */
#define PLUGIN_DIAL_MS_MAX 10000
/* How long it may take to answer GetDevicePluginOptions. The kubelet sets no bound. */
#define PLUGIN_OPTIONS_MS_MAX 10000

/* By what is known of a plugin. */
enum plugin_dial {
    /* It registers when it listens. */
    PLUGIN_DIAL_ONCE,
    /* It has registered, and may not do so once more. If it does not listen it is dialled again,
     * for PLUGIN_DIAL_MS_MAX. */
    PLUGIN_DIAL_PATIENTLY,
    /* It registers just now. As patiently; and if it does not answer it is lost: any other one is
     * asked until it is closed. */
    PLUGIN_DIAL_REGISTERING,
};

struct plugin_clients;

/* Everything comes from the loop; pointers are borrowed until return. Any function below may be
 * called from inside. */
struct plugin_clients_ops {
    void (*options)(void *user, uint64_t endpoint, const V1beta1__DevicePluginOptions *options);
    void (*list)(void *user, uint64_t endpoint, const V1beta1__ListAndWatchResponse *list);
    /* The stream is over, or never was; once. The endpoint is gone, and its calls end without a
     * callback. */
    void (*lost)(void *user, uint64_t endpoint, const char *reason);
    /* Ends of calls: `code` RPC_OK with the response, or a gRPC code with the plugin's words. */
    void (*allocated)(void *user, uint64_t call, int code, const char *message,
                      const V1beta1__AllocateResponse *response);
    void (*preferred)(void *user, uint64_t call, int code, const char *message,
                      const V1beta1__PreferredAllocationResponse *response);
    void (*prestarted)(void *user, uint64_t call, int code, const char *message);
};

/* `plugin_dir` is copied, `store` (NULL: none), `ops` and `user` are borrowed until the set is
 * stopped. Streams of lists are left to the next process there (left_streams.h): what comes on
 * those of the process before is list() of the endpoint that is at the same socket, if the same
 * process serves it. */
struct plugin_clients *plugin_clients_new(uv_loop_t *loop, const char *plugin_dir,
                                          struct fd_store *store,
                                          const struct plugin_clients_ops *ops, void *user);

/*
 * Connects to the socket `socket_name` in the plugin directory, or to one whose absolute path that
 * is (plugin_socket.h); it must be owned and served by root or by `uid`; options() and list()
 * follow, at the end lost(). `endpoint` is the caller's number, not in use.
 */
void plugin_clients_open(struct plugin_clients *clients, uint64_t endpoint, const char *socket_name,
                         uid_t uid, enum plugin_dial dial);

/* Ends the endpoint and its calls without any callback. One that is gone is ignored. Of one that
 * did not register when it was dialled, the stream is listened to as before where another is opened
 * at the same socket at once, as long as there is one: that is list() of the other, if the same
 * process serves it. */
void plugin_clients_close(struct plugin_clients *clients, uint64_t endpoint);

/*
 * Calls on an endpoint's plugin, one container each. `call` is the caller's number, not in use.
 * Each ends in its callback, unless cancelled or its endpoint is closed; an endpoint that is gone
 * ends it UNAVAILABLE. A timeout of 0 counts as 1 ms.
 */
void plugin_clients_allocate(struct plugin_clients *clients, uint64_t endpoint, uint64_t call,
                             const char *const *ids, size_t ids_len, uint64_t timeout_ms);
void plugin_clients_prefer(struct plugin_clients *clients, uint64_t endpoint, uint64_t call,
                           const char *const *available, size_t available_len,
                           const char *const *must_include, size_t must_include_len, size_t size,
                           uint64_t timeout_ms);
void plugin_clients_prestart(struct plugin_clients *clients, uint64_t endpoint, uint64_t call,
                             const char *const *ids, size_t ids_len, uint64_t timeout_ms);

/* One that is over is ignored. */
void plugin_clients_cancel(struct plugin_clients *clients, uint64_t call);

/* Closes all endpoints, frees the set, then runs `done` from the loop. Streams are left to the next
 * process unless the program was replaced by a release that would not listen there. */
void plugin_clients_stop(struct plugin_clients *clients, void (*done)(void *user), void *user);

#endif
