/*
 * The agent's end of its feed (cri-proto/agent_v1.proto): it finds the daemon, and finds it again
 * (rpc/follower.h).
 */
#ifndef SHIM_AGENT_DAEMON_FEED_H
#define SHIM_AGENT_DAEMON_FEED_H

#include <stdbool.h>

#include <uv.h>

#include "cri-proto/agent_v1.pb-c.h"

struct daemon_feed;

struct daemon_feed_ops {
    /* A message of Watch, borrowed until return; `first`: of a feed that is new. */
    void (*watched)(void *user, const Agent__V1__WatchResponse *message, bool first);
    /* The Report that was sent was taken, or not: then all is to be told anew. */
    void (*reported)(void *user, bool taken);
    /* It is over; it is called again. reported() does not come any more. */
    void (*lost)(void *user);
};

/* Calls at once; all is told from the loop. `path` is copied, `ops` and `user` are borrowed until
 * daemon_feed_stop(). */
struct daemon_feed *daemon_feed_start(uv_loop_t *loop, const char *path,
                                      const struct daemon_feed_ops *ops, void *user);
/* No callback follows. Accepts NULL. */
void daemon_feed_stop(struct daemon_feed *feed);

bool daemon_feed_alive(const struct daemon_feed *feed);

/* Sends a Report, one at a time: while it is alive and none is under way. False: it could not be
 * begun, and reported() does not come. */
bool daemon_feed_report(struct daemon_feed *feed, const Agent__V1__ReportRequest *report);

/* Sends a copy of an Answer, at its turn where the daemon is slow: it gets ANSWERS_AT_ONCE. What is
 * lost with the connection is asked for again by the daemon. Nothing while not alive. */
void daemon_feed_answer(struct daemon_feed *feed, const Agent__V1__AnswerRequest *message);

#endif
