#include "shim/cluster/eviction_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cluster/limits.h"

/* In place of upstream's DeviceTaintManagerEviction: whose doing it is. */
#define REASON "CRIDeviceShimEviction"

void eviction_events_init(struct eviction_events *events, struct cluster_orders *orders)
{
    *events = (struct eviction_events){.orders = orders};
}

/* Done, or refused: it is no more than an Event. */
static void on_done(void *user, const Agent__V1__AnswerRequest *answer)
{
    struct eviction_events *events = user;

    (void)answer;
    events->under_way--;
}

/* `what` is its series, too: both are counted on by themselves. */
static void tell(struct eviction_events *events, const struct devicemgr_event *event,
                 const char *what)
{
    Agent__V1__Tell tell = AGENT__V1__TELL__INIT;
    Agent__V1__Order order = AGENT__V1__ORDER__INIT;

    if (asprintf(&tell.message, "%s: %s", what, event->text ? event->text : "") < 0)
        abort(); /* out of memory */
    tell.namespace_ = (char *)(uintptr_t)event->pod_namespace;
    tell.name = (char *)(uintptr_t)event->pod_name;
    tell.uid = (char *)(uintptr_t)event->pod_uid;
    tell.reason = (char *)(uintptr_t)REASON;
    tell.series = (char *)(uintptr_t)what;
    order.what_case = AGENT__V1__ORDER__WHAT_TELL;
    order.tell = &tell;
    events->under_way += cluster_orders_add(events->orders, &order, false, on_done, events) != 0;
    free(tell.message);
}

static bool is_told(const struct devicemgr_event *event)
{
    return event->word && strcmp(event->word, DEVICEMGR_ASKER_EVICTION) == 0 && event->pod_uid &&
           event->pod_namespace && *event->pod_namespace && event->pod_name && *event->pod_name;
}

void eviction_events_happened(struct eviction_events *events, const struct devicemgr_event *event)
{
    bool ending = event->kind == DEVICEMGR_EVENT_ENDING;

    if ((!ending && event->kind != DEVICEMGR_EVENT_SPARED) || !is_told(event) ||
        events->under_way == CLUSTER_EVICTION_EVENTS_MAX)
        return;
    tell(events, event, ending ? "Marking for deletion" : "Cancelling deletion");
}
