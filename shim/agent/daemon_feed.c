#include "shim/agent/daemon_feed.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "cri-proto/methods.h"
#include "shim/agent/limits.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/rpc/follower.h"
#include "shim/rpc/message.h"

/* In one of the feed's two lists. */
struct queued_answer {
    TAILQ_ENTRY(queued_answer) entry;
    struct daemon_feed *feed;
    Agent__V1__AnswerRequest *message;
};

TAILQ_HEAD(answers, queued_answer);

struct daemon_feed {
    const struct daemon_feed_ops *ops;
    void *user;
    struct follower *follower;
    struct rpc_call *report;
    struct answers waiting, sent; /* these are not taken yet */
    size_t sent_len;
};

bool daemon_feed_alive(const struct daemon_feed *feed)
{
    return follower_alive(feed->follower);
}

static void no_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

/* ---- Report, Answer ---- */

static void on_report_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct daemon_feed *feed = user;

    (void)call;
    feed->report = NULL;
    if (status->code != RPC_OK)
        log_debug("feed: Report: %s: %s", rpc_code_name(status->code), status->message);
    if (daemon_feed_alive(feed))
        feed->ops->reported(feed->user, status->code == RPC_OK);
}

bool daemon_feed_report(struct daemon_feed *feed, const Agent__V1__ReportRequest *report)
{
    static const struct rpc_call_ops ops = {no_message, on_report_done};

    if (!daemon_feed_alive(feed) || feed->report)
        return false;
    feed->report = follower_call(feed->follower, AGENT_REPORT, &report->base,
                                 &agent__v1__report_response__descriptor, false, REPORT_TIMEOUT_MS,
                                 &ops, feed);
    return feed->report != NULL;
}

static void send_answers(struct daemon_feed *feed);

static void answer_drop(struct answers *from, struct queued_answer *answer)
{
    TAILQ_REMOVE(from, answer, entry);
    agent__v1__answer_request__free_unpacked(answer->message, NULL);
    free(answer);
}

/* What a daemon that is slow has not taken in time is sent once more, after the others. */
static void on_answer_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct queued_answer *answer = user;
    struct daemon_feed *feed = answer->feed;

    (void)call;
    if (status->code != RPC_OK)
        log_debug("feed: Answer: %s: %s", rpc_code_name(status->code), status->message);
    feed->sent_len--;
    if (status->code == RPC_DEADLINE_EXCEEDED && daemon_feed_alive(feed)) {
        TAILQ_REMOVE(&feed->sent, answer, entry);
        TAILQ_INSERT_TAIL(&feed->waiting, answer, entry);
    } else {
        answer_drop(&feed->sent, answer);
    }
    send_answers(feed);
}

static bool answer_send(struct daemon_feed *feed, struct queued_answer *answer)
{
    static const struct rpc_call_ops ops = {no_message, on_answer_done};

    return follower_call(feed->follower, AGENT_ANSWER, &answer->message->base,
                         &agent__v1__answer_response__descriptor, false, REPORT_TIMEOUT_MS, &ops,
                         answer) != NULL;
}

static void send_answers(struct daemon_feed *feed)
{
    struct queued_answer *answer;

    while (feed->sent_len < ANSWERS_AT_ONCE && (answer = TAILQ_FIRST(&feed->waiting))) {
        if (!answer_send(feed, answer)) {
            answer_drop(&feed->waiting, answer);
            continue;
        }
        TAILQ_REMOVE(&feed->waiting, answer, entry);
        TAILQ_INSERT_TAIL(&feed->sent, answer, entry);
        feed->sent_len++;
    }
}

void daemon_feed_answer(struct daemon_feed *feed, const Agent__V1__AnswerRequest *message)
{
    struct queued_answer *answer;

    if (!daemon_feed_alive(feed))
        return;
    answer = must(calloc(1, sizeof *answer));
    answer->feed = feed;
    answer->message = (Agent__V1__AnswerRequest *)must(message_copy(&message->base));
    TAILQ_INSERT_TAIL(&feed->waiting, answer, entry);
    send_answers(feed);
}

static void drop_all(struct answers *answers)
{
    while (!TAILQ_EMPTY(answers))
        answer_drop(answers, TAILQ_FIRST(answers));
}

/* ---- Watch ---- */

static bool on_message(void *user, const ProtobufCMessage *message, bool first)
{
    const Agent__V1__WatchResponse *response = (const Agent__V1__WatchResponse *)message;
    struct daemon_feed *feed = user;

    if (first)
        log_info("feed: daemon %s", response->daemon_version);
    feed->ops->watched(feed->user, response, first);
    return true;
}

/* Where another agent has come it is not to go to and fro. */
static uint64_t on_ended(void *user, const struct rpc_status *status, bool was_alive)
{
    (void)user;
    if (was_alive)
        log_warning("feed: lost: %s: %s", rpc_code_name(status->code), status->message);
    else if (status->code != RPC_UNAVAILABLE)
        log_debug("feed: %s: %s", rpc_code_name(status->code), status->message);
    return status->code == RPC_ABORTED ? FEED_AGAIN_MS_MAX : 0;
}

static void on_lost(void *user)
{
    struct daemon_feed *feed = user;

    drop_all(&feed->waiting);
    feed->ops->lost(feed->user);
}

/* ---- life ---- */

struct daemon_feed *daemon_feed_start(uv_loop_t *loop, const char *path,
                                      const struct daemon_feed_ops *ops, void *user)
{
    static Agent__V1__WatchRequest request = AGENT__V1__WATCH_REQUEST__INIT;
    static const struct follower_feed watch = {.method = AGENT_WATCH,
                                               .request = &request.base,
                                               .response = &agent__v1__watch_response__descriptor,
                                               .pings_ms = FEED_PINGS_MS,
                                               .again_ms_min = FEED_AGAIN_MS_MIN,
                                               .again_ms_max = FEED_AGAIN_MS_MAX};
    static const struct follower_ops follower_ops = {on_message, on_ended, on_lost};
    struct daemon_feed *feed = must(calloc(1, sizeof *feed));

    request.agent_version = (char *)SHIM_VERSION;
    feed->ops = ops;
    feed->user = user;
    TAILQ_INIT(&feed->waiting);
    TAILQ_INIT(&feed->sent);
    feed->follower = follower_start(loop, path, &watch, &follower_ops, feed);
    return feed;
}

void daemon_feed_stop(struct daemon_feed *feed)
{
    if (!feed)
        return;
    follower_stop(feed->follower);
    drop_all(&feed->waiting);
    drop_all(&feed->sent);
    free(feed);
}
