#include "shim/cluster/pod_events.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "shim/cluster/limits.h"
#include "shim/must.h"

#define REASON_BYTES_MAX 64

struct refused_container {
    struct pod_events *events;
    char *key; /* pod uid, '/', container */
    uint64_t first_ms, last_ms;
    uint64_t told_ms;      /* 0: not told */
    const char *told_word; /* static */
    uint64_t order;        /* under way; 0: none */
    UT_hash_handle hh;
};

void pod_events_init(struct pod_events *events, const struct config *config,
                     struct cluster_orders *orders, void (*cancel)(void *cluster, uint64_t order),
                     void *cluster)
{
    *events = (struct pod_events){
        .orders = orders, .config = config, .cancel = cancel, .cluster = cluster};
}

/* ---- containers ---- */

static void container_free(struct refused_container *container)
{
    HASH_DEL(container->events->by_key, container);
    free(container->key);
    free(container);
}

void pod_events_fini(struct pod_events *events)
{
    while (events->by_key)
        container_free(events->by_key);
}

/* Nobody is to hear of it any more. */
static void end(struct refused_container *container)
{
    struct pod_events *events = container->events;
    uint64_t order = container->order;

    container_free(container);
    if (order)
        events->cancel(events->cluster, order);
}

static char *key_of(const struct devicemgr_event *event)
{
    char *key;

    if (asprintf(&key, "%s/%s", event->pod_uid, event->container) < 0)
        abort();
    return key;
}

/* Behind all others: it is the newest. */
static struct refused_container *container_at(struct pod_events *events, char *key, uint64_t now_ms)
{
    struct refused_container *container;

    HASH_FIND_STR(events->by_key, key, container);
    if (container) {
        free(key);
        HASH_DEL(events->by_key, container);
    } else {
        if (HASH_COUNT(events->by_key) >= CLUSTER_REFUSED_MAX)
            end(events->by_key);
        container = must(calloc(1, sizeof *container));
        container->events = events;
        container->key = key;
        container->first_ms = now_ms;
    }
    HASH_ADD_KEYPTR(hh, events->by_key, container->key, strlen(container->key), container);
    return container;
}

/* ---- telling ---- */

/* "plugin-away" as an Event's reason has it: PluginAway. */
static void camel_case(const char *word, char out[REASON_BYTES_MAX])
{
    bool upper = true;
    size_t len = 0;

    for (; *word && len + 1 < REASON_BYTES_MAX; word++) {
        if (isalnum((unsigned char)*word))
            out[len++] = (char)(upper ? toupper((unsigned char)*word) : *word);
        upper = !isalnum((unsigned char)*word);
    }
    out[len] = '\0';
}

/* Done, or refused: with the next refusal that is to be told another one is begun. */
static void on_done(void *user, const Agent__V1__AnswerRequest *answer)
{
    struct refused_container *container = user;

    (void)answer;
    container->order = 0;
}

static void tell(struct refused_container *container, uint64_t now_ms,
                 const struct devicemgr_event *event)
{
    Agent__V1__Tell tell = AGENT__V1__TELL__INIT;
    Agent__V1__Order what = AGENT__V1__ORDER__INIT;
    unsigned long long lasted_s = (now_ms - container->first_ms) / 1000;
    char reason[REASON_BYTES_MAX];

    camel_case(event->word, reason);
    if (asprintf(&tell.message, "container \"%s\" has been refused for %llum%02llus: %s",
                 event->container, lasted_s / 60, lasted_s % 60,
                 event->text ? event->text : "") < 0)
        abort();
    tell.namespace_ = (char *)event->pod_namespace;
    tell.name = (char *)event->pod_name;
    tell.uid = (char *)event->pod_uid;
    tell.reason = reason;
    tell.series = (char *)event->container;
    tell.warning = true;
    what.what_case = AGENT__V1__ORDER__WHAT_TELL;
    what.tell = &tell;
    container->order =
        cluster_orders_add(container->events->orders, &what, false, on_done, container);
    container->told_ms = now_ms;
    container->told_word = event->word;
    free(tell.message);
}

static bool is_due(const struct refused_container *container, uint64_t now_ms, const char *word)
{
    uint64_t after_ms = container->events->config->cluster.events_after_ms;
    uint64_t told_ago_ms = now_ms - container->told_ms;

    if (after_ms == 0 || now_ms - container->first_ms < after_ms || container->order)
        return false;
    if (container->told_ms == 0)
        return true;
    return told_ago_ms >= CLUSTER_TELL_AGAIN_MS ||
           (strcmp(container->told_word, word) != 0 && told_ago_ms >= after_ms);
}

static void take(struct pod_events *events, uint64_t now_ms, const struct devicemgr_event *event)
{
    struct refused_container *container = container_at(events, key_of(event), now_ms);

    /* It did without for a while: this is another time. */
    if (container->last_ms && now_ms - container->last_ms > CLUSTER_REFUSED_GAP_MS)
        container->first_ms = now_ms;
    container->last_ms = now_ms;
    if (is_due(container, now_ms, event->word))
        tell(container, now_ms, event);
}

void pod_events_happened(struct pod_events *events, uint64_t now_ms,
                         const struct devicemgr_event *event)
{
    struct refused_container *container;
    char *key;

    if (!event->pod_uid || !event->container)
        return;
    if (event->kind == DEVICEMGR_EVENT_REFUSED) {
        if (event->pod_namespace && *event->pod_namespace && event->pod_name && event->word)
            take(events, now_ms, event);
    } else if (event->kind == DEVICEMGR_EVENT_ALLOCATED) {
        key = key_of(event);
        HASH_FIND_STR(events->by_key, key, container);
        free(key);
        if (container)
            end(container);
    }
}
