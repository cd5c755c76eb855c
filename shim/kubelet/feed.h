/*
 * The feed for the bridge (cri-proto/bridge_v1.proto): what the kubelet is to be shown goes
 * out (advertised.h), what it has taken comes back (taken.h), and its GetPreferredAllocation is
 * passed on (questions.h). So are the calls that it makes on DRA drivers (claim_questions.h), which
 * the bridge is told of in a stream of their own (drivers_shown.h), and of their devices' health in
 * another (health_shown.h).
 *
 * After the daemon's start a restored resource is shown as if all its devices were healthy until
 * its plugin has listed again. So that one that is not does not become healthy for these few
 * milliseconds, nothing is sent while such a list is expected, for FEED_SETTLE_MS at most: the
 * bridge goes on showing what it had.
 *
 * Two bridges at once, an old and a new one, are both served; the kubelet has taken what one of
 * them reports it has (watchers.h). It also tells the core what the kubelet's own checkpoint says
 * its pods hold, before anything is sent (held.h).
 */
#ifndef SHIM_KUBELET_FEED_H
#define SHIM_KUBELET_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "config/config.h"
#include "shim/core/host.h"
#include "shim/fd_store.h"
#include "shim/kubelet/taken.h"
#include "shim/kubelet/watchers.h"
#include "shim/settings.h"

/* How often is looked at a bridge that does not read (watchers.h). */
#define FEED_RETRY_MS 20
/* From feed_start() on: a plugin that answers does so within some milliseconds; one that does not
 * is not to delay the others' devices much. */
#define FEED_SETTLE_MS 500

/* A bridge that is silent is asked for a sign of life; rpc_server_set_pings(). */
#define FEED_PINGS_MS 2000

struct feed;
struct health_words;

struct feed_ops {
    /* What feed_taken() says may have changed; not from inside a feed_ call. */
    void (*changed)(void *user);
};

/*
 * Listens at config->bridge.socket (0600; its directory 0755), as long as it takes and as often as
 * that is removed (rpc/keeper.h), kept in `store` (NULL: there is none), and begins to read the
 * kubelet's checkpoint. `config`, `host`, `store`, `ops` and `user` are borrowed until the feed has
 * stopped. No callback comes before return.
 */
struct feed *feed_start(uv_loop_t *loop, const struct config *config, struct host *host,
                        struct fd_store *store, const struct feed_ops *ops, void *user);

/* They have been read: the bridge takes its part. Those that are not the file's are no news. What
 * they hold is borrowed until the feed has stopped. */
void feed_settings_read(struct feed *feed, const struct settings *settings);

/* The host's `kicked`: what is shown may have changed. */
void feed_look(struct feed *feed);

/* The host's `preferred`. */
void feed_preferred(struct feed *feed, uint64_t number, const char *const *ids, size_t ids_len);

/* drivers_shown_set_away_too(). */
void feed_show_drivers_away(struct feed *feed, bool away_too);

/* The host's `claim_done`. */
void feed_claim_done(struct feed *feed, uint64_t number, const struct devicemgr_claim_done *done);

/* The host's `driver_health`. */
void feed_driver_health(struct feed *feed, const char *driver, uint64_t instance,
                        const DraHealth__V1alpha1__NodeWatchResourcesResponse *health);

/* Whether that kubelet has taken what it is shown. */
void feed_taken(const struct feed *feed, pid_t kubelet, struct taken *out);

/* Whether the kubelet's checkpoint names that resource: it publishes it by itself then, be it ours
 * or another's. As long as nobody has read the file it may. */
bool feed_kubelet_has(const struct feed *feed, const char *resource);

/* Whether a DRA driver is to be the kubelet's; and whether that has registered it. */
bool feed_shows_driver(const struct feed *feed, const char *driver);
bool feed_kubelet_has_driver(const struct feed *feed, const char *driver);
/* What drivers say of their devices' health; borrowed, until the next change. */
const struct health_words *feed_health(const struct feed *feed);

/* keeper_trouble() of its socket. */
const char *feed_trouble(const struct feed *feed, uint64_t *since_ms);
/* rpc_server_queued_max() of its socket. */
size_t feed_queued_max(const struct feed *feed);
/* The bridge that came last, and since when there is one, or is none. */
void feed_look_at_bridge(const struct feed *feed, struct watchers_bridge *out);

/* Ends all calls, removes the socket, frees, then runs `done` from the loop. The feed must not be
 * touched after this call. */
void feed_stop(struct feed *feed, void (*done)(void *user), void *user);

#endif
