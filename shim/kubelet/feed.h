/*
 * The feed for the bridge (cri-proto/bridge_v1.proto): what the kubelet is to be shown
 * goes out, what it has taken comes back, and its GetPreferredAllocation is passed on.
 *
 * After the daemon's start a restored resource is shown as if all its devices were healthy until
 * its plugin has listed again. So that one that is not does not become healthy for these few
 * milliseconds, nothing is sent while such a list is expected, for FEED_SETTLE_MS at most: the
 * bridge goes on showing what it had.
 *
 * Two bridges at once, an old and a new one, are both served; the kubelet has taken what one of
 * them reports it has. A bridge that does not read gets the newest state once it reads again, and
 * never makes more than one message wait. It also tells the core what the kubelet's own checkpoint
 * says its pods hold, before anything is sent.
 */
#ifndef SHIM_KUBELET_FEED_H
#define SHIM_KUBELET_FEED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "config/config.h"
#include "shim/kubelet/taken.h"
#include "shim/plugins/manager.h"

/* One bridge has one of each; a few more for an upgrade and for whoever looks on. */
#define FEED_STREAMS_MAX 16
/* The kubelet admits one pod at a time; those given up are over at once. */
#define FEED_PREFERS_MAX 64
/* What a report may name: as many as there can be, of the length a name may have (253 + 1 + 63). */
#define FEED_REPORTS_MAX 1024
#define FEED_NAME_BYTES_MAX 317
/* A report is kept until the next one: twice what those take, for fields of later releases. */
#define FEED_REPORT_BYTES_MAX (1024u * 1024)
/* A stream with more than this on the way gets no further message; how often it is looked at. */
#define FEED_QUEUED_BYTES_MAX (64u * 1024)
#define FEED_RETRY_MS 20
/* From feed_start() on: a plugin that answers does so within some milliseconds; one that does not
 * is not to delay the others' devices much. */
#define FEED_SETTLE_MS 500

struct feed;

struct feed_ops {
    /* What feed_taken() says may have changed; not from inside a feed_ call. */
    void (*changed)(void *user);
};

/*
 * Listens at config->bridge.socket (0600; its directory 0755), as long as it takes and as often as
 * that is removed (rpc/keeper.h), and begins to read the kubelet's checkpoint. `config`, `manager`,
 * `ops` and `user` are borrowed until the feed has stopped. No callback comes before return.
 */
struct feed *feed_start(uv_loop_t *loop, const struct config *config, struct manager *manager,
                        const struct feed_ops *ops, void *user);

/* The manager's `kicked`: what is shown may have changed. */
void feed_look(struct feed *feed);

/* The manager's `preferred`. */
void feed_preferred(struct feed *feed, uint64_t number, const char *const *ids, size_t ids_len);

/* Whether that kubelet has taken what it is shown. */
void feed_taken(const struct feed *feed, pid_t kubelet, struct taken *out);

/* Ends all calls, removes the socket, frees, then runs `done` from the loop. The feed must not be
 * touched after this call. */
void feed_stop(struct feed *feed, void (*done)(void *user), void *user);

#endif
