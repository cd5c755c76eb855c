#include "shim/agent/order_run.h"

#include "shim/agent/tell.h"
#include "shim/boot_clock.h"

static void on_told(void *user, const struct api_result *result)
{
    struct run *run = user;

    if (result->outcome == API_DONE) {
        spam_note(&run->orders->spam, tell_event_hash(run->order->tell), run->event, boot_now_ms());
        run_end(run, AGENT__V1__OUTCOME__DONE, "", 0);
    } else {
        run_fail(run, result);
    }
}

static void event_path(const struct run *run, struct query *query)
{
    query_begin(query, "/api/v1/namespaces");
    query_segment(query, tell_namespace(run->order->tell));
    query_segment(query, "events");
}

static void make_event(struct run *run)
{
    static const struct api_ops ops = {.body = run_body, .done = on_told};
    struct query query;

    event_path(run, &query);
    run_ask_json(run, "POST", &query, "application/json",
                 tell_new(run->order->tell, run->orders->node, run->event),
                 "its words are not UTF-8", &ops);
}

/* The server has forgotten it: Events last an hour. */
static void on_counted(void *user, const struct api_result *result)
{
    struct run *run = user;
    struct spam_event *event;

    if (result->outcome == API_DONE) {
        event = spam_find(&run->orders->spam, tell_event_hash(run->order->tell), boot_now_ms());
        if (event) {
            event->count++;
            event->at_ms = boot_now_ms();
        }
        run_end(run, AGENT__V1__OUTCOME__DONE, "", 0);
    } else if (result->outcome == API_NOT_FOUND) {
        make_event(run);
    } else {
        run_fail(run, result);
    }
}

static void count_event(struct run *run, const struct spam_event *event)
{
    static const struct api_ops ops = {.body = run_body, .done = on_counted};
    struct query query;

    event_path(run, &query);
    query_segment(&query, event->name);
    run_ask_json(run, "PATCH", &query, "application/merge-patch+json",
                 tell_again(run->order->tell, event->count + 1), "its words are not UTF-8", &ops);
}

/* What is too much is left out, and nobody is to try again. */
void run_tell(struct run *run)
{
    const Agent__V1__Tell *tell = run->order->tell;
    struct spam *spam = &run->orders->spam;
    struct spam_event *event = spam_find(spam, tell_event_hash(tell), boot_now_ms());

    if (!spam_allows(spam, tell_object_hash(tell), boot_now_ms()))
        run_end(run, AGENT__V1__OUTCOME__DONE, "too many for this object: left out", 0);
    else if (event)
        count_event(run, event);
    else
        make_event(run);
}
