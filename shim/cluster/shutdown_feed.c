#include "shim/cluster/shutdown_feed.h"

#include <stdlib.h>
#include <string.h>

#include "cri-proto/utf8.h"
#include "shim/boot_clock.h"
#include "shim/must.h"

void shutdown_feed_init(struct shutdown_feed *feed, struct host *host)
{
    *feed = (struct shutdown_feed){.host = host};
}

/* ---- in ---- */

/* The pods of the cluster, as long as they are borrowed from. */
struct known {
    Agent__V1__Pod **pods;
    struct devicemgr_priority *priorities;
    size_t len;
};

static void known_fini(struct known *known)
{
    for (size_t i = 0; i < known->len; i++)
        agent__v1__pod__free_unpacked(known->pods[i], NULL);
    free(known->pods);
    free(known->priorities);
}

/* Never without room, so that none of them is told apart from not knowing. */
static void known_init(struct known *known, const struct facts *facts)
{
    const struct fact *fact = NULL;

    *known = (struct known){0};
    known->pods = must(calloc(facts_len(facts) + 1, sizeof *known->pods));
    known->priorities = must(calloc(facts_len(facts) + 1, sizeof *known->priorities));
    while ((fact = facts_next(facts, fact))) {
        Agent__V1__Pod *pod = fact->kind == AGENT__V1__KIND__POD && fact->value
                                  ? agent__v1__pod__unpack(NULL, fact->len, fact->value)
                                  : NULL;

        if (!pod)
            continue;
        known->priorities[known->len] =
            (struct devicemgr_priority){.pod_uid = fact->key,
                                        .pod_namespace = pod->namespace_,
                                        .pod_name = pod->name,
                                        .mirror = pod->mirror,
                                        .priority = pod->priority};
        known->pods[known->len++] = pod;
    }
}

/* What was said, with the pods if one is `under_way`, to `told`. */
static void tell(const struct shutdown_said *is, bool under_way, const struct facts *facts,
                 void (*told)(void *to, const struct devicemgr_shutdown_said *said), void *to)
{
    struct devicemgr_shutdown_said said = {.under_way = under_way,
                                           .since_ms = is->since_ms,
                                           .limit_ms = is->limit_ms,
                                           .kubelet_locked = is->kubelet_locked,
                                           .kubelet_gone = is->kubelet_gone};
    struct known known = {0};

    if (under_way && facts_complete(facts, AGENT__V1__KIND__POD)) {
        known_init(&known, facts);
        said.pods = known.priorities;
        said.pods_len = known.len;
    }
    told(to, &said);
    known_fini(&known);
}

static void tell_core(void *to, const struct devicemgr_shutdown_said *said)
{
    const struct shutdown_feed *feed = to;

    devicemgr_shutdown(host_core(feed->host), boot_now_ms(), said);
}

void shutdown_feed_reported(struct shutdown_feed *feed, const Agent__V1__Shutdown *said,
                            const struct facts *facts)
{
    struct shutdown_said *to = &feed->said;
    char trouble[sizeof to->trouble];

    if (said) {
        utf8_copy(trouble, sizeof trouble, said->trouble);
        if (said->known != to->known || said->limit_ms != to->limit_ms ||
            strcmp(trouble, to->trouble) != 0)
            to->heard_ms = boot_now_ms();
        to->known = said->known;
        to->locked = said->locked;
        memcpy(to->trouble, trouble, sizeof trouble);
    }
    if (said && said->known) {
        to->under_way = said->under_way;
        to->kubelet_locked = said->kubelet_locked;
        to->kubelet_gone = said->kubelet_gone;
        to->since_ms = said->since_ms;
        to->limit_ms = said->limit_ms;
    }
    if ((said && said->known) || to->under_way) /* pods may have come with it */
        tell(to, to->under_way, facts, tell_core, feed);
}

void shutdown_feed_now(const struct shutdown_feed *feed, const struct facts *facts,
                       void (*told)(void *to, const struct devicemgr_shutdown_said *said), void *to)
{
    if (feed->said.known)
        tell(&feed->said, true, facts, told, to);
}

void shutdown_feed_lost(struct shutdown_feed *feed)
{
    feed->said.known = feed->said.locked = false;
    feed->said.trouble[0] = '\0';
    feed->wish.told = false;
}

/* ---- out ---- */

static bool is_same(const struct shutdown_wish *a, const struct shutdown_wish *b)
{
    return a->told == b->told && a->wanted == b->wanted && a->over == b->over &&
           a->grace_ms == b->grace_ms && a->over_since_ms == b->over_since_ms;
}

bool shutdown_feed_wish(struct shutdown_feed *feed, Agent__V1__ShutdownWish *out)
{
    struct shutdown_wish wish = {.told = true};
    struct devicemgr_shutdown_view view;

    devicemgr_shutdown_look(host_core(feed->host), &view);
    wish.wanted = view.settings_ms > 0;
    wish.grace_ms = view.settings_ms;
    wish.over = view.over;
    wish.over_since_ms = view.over ? view.since_ms : 0;
    if (is_same(&wish, &feed->wish))
        return false;
    feed->wish = wish;
    agent__v1__shutdown_wish__init(out);
    out->wanted = wish.wanted;
    out->grace_ms = wish.grace_ms;
    out->over = wish.over;
    out->over_since_ms = wish.over_since_ms;
    return true;
}
