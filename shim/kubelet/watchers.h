/*
 * The bridges at the feed: processes with an open Watch, what each has got, and what it last
 * reported that the kubelet has.
 *
 * A process may have several Watches open; it is known as long as it has one. One that does not
 * read gets the newest state once it reads again, and never makes more than one message wait.
 */
#ifndef SHIM_KUBELET_WATCHERS_H
#define SHIM_KUBELET_WATCHERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "shim/kubelet/advertised.h"
#include "shim/kubelet/open_streams.h"
#include "shim/kubelet/taken.h"
#include "shim/rpc/rpc.h"

/* Open Watches, of which there are as many as of what else is open. */
#define WATCHERS_STREAMS_MAX OPEN_STREAMS_MAX
/* What a report may name: as many as there can be, of the length a name may have (253 + 1 + 63). */
#define WATCHERS_REPORTS_MAX 1024
#define WATCHERS_NAME_BYTES_MAX 317
#define WATCHERS_DRIVERS_MAX 256
/* A report is kept until the next one: twice what those take, for fields of later releases. */
#define WATCHERS_REPORT_BYTES_MAX (1024u * 1024)
/* A stream with more than this on the way gets no further message. */
#define WATCHERS_QUEUED_BYTES_MAX (64u * 1024)

/* Embedded in its owner; private. */
struct watchers {
    void (*gone)(void *user);
    void *user;
    LIST_HEAD(, watcher) processes; /* the one that came last first */
    LIST_HEAD(, watch_stream) streams;
    unsigned streams_len;
    uint64_t since_ms; /* that there is a process, or none */
};

/* `gone` runs, from the loop, when a Watch has ended by itself. */
void watchers_init(struct watchers *watchers, void (*gone)(void *user), void *user);
/* The server must be closed: the calls are gone. */
void watchers_fini(struct watchers *watchers);

/* A call of BRIDGE_WATCH. False: it is refused, since there are too many. */
bool watchers_add(struct watchers *watchers, struct rpc_incoming *call,
                  const Bridge__V1__WatchRequest *request);

/* Sends each what it has not got. False: one does not take all of it now; to be tried again. */
bool watchers_update(struct watchers *watchers, const struct advertised *advertised,
                     uint64_t mask_ms);

/* A call of BRIDGE_REPORT: takes what it says, and answers it. False: it is refused. `*stores`: the
 * kubelet has stored something since the report before, so that its checkpoint may say more. */
bool watchers_report(struct watchers *watchers, struct rpc_incoming *call,
                     const Bridge__V1__ReportRequest *report, bool *stores);

/* Whether the kubelet has taken what is advertised: taken_judge() by the first report that has all,
 * else by the newest one. `bridge` and `reached` are left to watchers_note(). */
void watchers_judge(const struct watchers *watchers, const struct advertised *advertised,
                    const struct kubelet_file *file, pid_t kubelet, struct taken *out);
/* Whether a bridge has brought the list to a kubelet that has stored it: taken_stored(). */
bool watchers_stored(const struct watchers *watchers, const struct advertised_list *list,
                     const struct kubelet_file *file);
/* taken_look(), as the first one has it that can tell. */
enum displaced_seen watchers_look(const struct watchers *watchers,
                                  const struct advertised_list *list,
                                  const struct kubelet_file *file);
/* Longest version of a bridge that is kept. */
#define WATCHERS_VERSION_BYTES_MAX 64

struct watchers_bridge {
    bool connected;
    uint64_t since_ms; /* that one is, or none is: boot_now_ms() */
    pid_t pid;         /* with the next two: of the one that came last; 0: of another namespace */
    char version[WATCHERS_VERSION_BYTES_MAX];
    pid_t kubelet_pid; /* who listens on kubelet.sock, as it reported last; 0: nobody, or not yet */
    const char
        *degraded; /* why its settings are not the file's; "": they are. Until it reports again */
};
/* Whether the kubelet has registered the DRA driver, as the bridge that came last reports. */
bool watchers_have_driver(const struct watchers *watchers, const char *driver);
void watchers_look_at_bridge(const struct watchers *watchers, struct watchers_bridge *out);

/* Fills in `bridge` and `reached`. */
void watchers_note(const struct watchers *watchers, pid_t kubelet, struct taken *out);

#endif
