/*
 * The list of pods that hold devices, wait for them, or were refused.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/lists.h"
#include "devicemgr/rules/holders.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"

/* Why a container is in the list: one of these is set. */
struct mention {
    const char *uid;
    const char *container;
    const struct allocation *allocation;
    const struct kubelet_hold *hold;
    const struct create *create;
    const struct refusal *refusal;
};

struct mentions {
    struct mention *v;
    size_t len;
};

/* A pod, with its mentions and what it is sorted by. */
struct entry {
    const struct mention *mentions;
    size_t len;
    const char *key[DEVICEMGR_POD_KEY];
};

/* ---- who is in it ---- */

static void mention(struct mentions *mentions, struct mention one)
{
    mentions->v = mem_grow(mentions->v, mentions->len, sizeof *mentions->v);
    mentions->v[mentions->len++] = one;
}

static void mention_all(const struct devicemgr *mgr, const struct state *state,
                        struct mentions *mentions)
{
    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        if (holders_keeps(state, a))
            mention(mentions, (struct mention){a->pod_uid, a->container, .allocation = a});
    }
    for (const struct kubelet_hold *h = state->kubelet.holds; h; h = h->hh.next) {
        if (kubelet_hold_stands(state, h) &&
            !allocations_find(&state->allocations, h->pod_uid, h->container, h->resource))
            mention(mentions, (struct mention){h->pod_uid, h->container, .hold = h});
    }
    for (const struct create *c = mgr->creates.by_number; c; c = c->hh.next) {
        if (c->state != CREATE_FORWARDED)
            mention(mentions,
                    (struct mention){c->demand.pod_uid, c->demand.container, .create = c});
    }
    for (const struct refusal *r = state->refused.by_key; r; r = r->hh.next)
        mention(mentions, (struct mention){r->demand.pod_uid, r->demand.container, .refusal = r});
}

static int by_uid_and_container(const void *a, const void *b)
{
    const struct mention *x = a, *y = b;
    int order = strcmp(x->uid, y->uid);

    return order != 0 ? order : strverscmp(x->container, y->container);
}

/* By the word of the runtime, or of who asked for a container. */
static void find_names(const struct state *state, struct entry *entry)
{
    entry->key[2] = entry->mentions[0].uid;
    meant_names(state, entry->key[2], &entry->key[0], &entry->key[1]);
    for (size_t i = 0; i < entry->len && entry->key[1][0] == '\0'; i++) {
        const struct mention *one = &entry->mentions[i];
        const struct demand *demand = one->create    ? &one->create->demand
                                      : one->refusal ? &one->refusal->demand
                                                     : NULL;

        if (demand) {
            entry->key[0] = demand->pod_namespace;
            entry->key[1] = demand->pod_name;
        }
    }
}

static bool is_meant(const struct devicemgr_which *which, const struct entry *entry)
{
    if (which->pod_namespace && strcmp(which->pod_namespace, entry->key[0]) != 0)
        return false;
    return meant_pod(which->pod, entry->key[2], entry->key[0], entry->key[1]) &&
           (!which->after || meant_order(entry->key, which->after, DEVICEMGR_POD_KEY) > 0);
}

static int by_key(const void *a, const void *b)
{
    return meant_order(((const struct entry *)a)->key, ((const struct entry *)b)->key,
                       DEVICEMGR_POD_KEY);
}

/* The pods that are meant, sorted; `mentions` are, too. */
static size_t find_entries(const struct state *state, const struct devicemgr_which *which,
                           struct mentions *mentions, struct entry *entries)
{
    size_t len = 0, next;

    if (mentions->len > 1)
        qsort(mentions->v, mentions->len, sizeof *mentions->v, by_uid_and_container);
    for (size_t i = 0; i < mentions->len; i = next) {
        for (next = i + 1; next < mentions->len; next++) {
            if (strcmp(mentions->v[next].uid, mentions->v[i].uid) != 0)
                break;
        }
        entries[len] = (struct entry){.mentions = &mentions->v[i], .len = next - i};
        find_names(state, &entries[len]);
        len += is_meant(which, &entries[len]);
    }
    qsort(entries, len, sizeof *entries, by_key);
    return len;
}

/* ---- what is said of them ---- */

/* Of several resources it is the one that moves most. */
static void add_devices(struct devicemgr_pod_container *row, size_t devices, const char *state)
{
    static const char *const RANKS[] = {"", "promised", "kept", "running", "unknown", "creating"};
    size_t rank = 0;

    row->devices += devices;
    while (strcmp(RANKS[rank], row->state) != 0 && strcmp(RANKS[rank], state) != 0)
        rank++;
    if (strcmp(RANKS[rank], row->state) == 0)
        row->state = state;
}

static void add_mention(const struct state *state, const struct mention *one,
                        struct devicemgr_pod_container *row)
{
    if (one->allocation)
        add_devices(row, one->allocation->ids.len, meant_life(state, one->allocation));
    if (one->hold)
        add_devices(row, one->hold->ids.len, "promised");
    if (one->create) {
        row->waits = true;
        row->waited_ms = ago(state->now_ms, one->create->demand.started_ms);
    }
    if (one->refusal) {
        row->refused_word = one->refusal->word;
        row->refused_times = one->refusal->times;
        row->refused_ms_ago = ago(state->now_ms, one->refusal->last_ms);
    }
}

static const char *sandbox_word(const struct state *state, const char *uid)
{
    const struct pod *pod = pods_find(&state->pods, uid);
    const struct sandbox *sandbox = pod ? pod->newest : NULL;

    if (!sandbox)
        return "";
    if (sandbox->state == SANDBOX_STOPPED)
        return "stopped";
    if (sandbox->state != SANDBOX_OPEN)
        return "stopping";
    return sandbox->dead ? "not-ready" : "ready";
}

static bool tell(const struct state *state, const struct entry *entry,
                 bool (*each)(void *user, const struct devicemgr_pod *pod), void *user)
{
    struct devicemgr_pod_container *containers = mem_alloc(entry->len, sizeof *containers);
    struct devicemgr_pod row = {.pod_namespace = entry->key[0],
                                .name = entry->key[1],
                                .uid = entry->key[2],
                                .sandbox = sandbox_word(state, entry->key[2]),
                                .containers = containers};
    bool more;

    for (size_t i = 0; i < entry->len; i++) {
        const struct mention *one = &entry->mentions[i];

        if (i == 0 || strcmp(one->container, one[-1].container) != 0)
            containers[row.containers_len++] =
                (struct devicemgr_pod_container){.name = one->container, .state = ""};
        add_mention(state, one, &containers[row.containers_len - 1]);
    }
    more = each(user, &row);
    free(containers);
    return more;
}

void devicemgr_pods(const struct devicemgr *mgr, uint64_t now_ms,
                    const struct devicemgr_which *which,
                    bool (*each)(void *user, const struct devicemgr_pod *pod), void *user)
{
    struct state *state = meant_state(mgr, now_ms);
    struct mentions mentions = {0};
    struct entry *entries;
    bool more = true;
    size_t len;

    mention_all(mgr, state, &mentions);
    entries = mem_alloc(mentions.len + 1, sizeof *entries);
    len = find_entries(state, which, &mentions, entries);
    for (size_t i = 0; more && i < len; i++)
        more = tell(state, &entries[i], each, user);
    free(mentions.v);
    free(entries);
    free(state);
}
