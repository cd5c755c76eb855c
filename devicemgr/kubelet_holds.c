/*
 * What the kubelet's checkpoint says that its pods have.
 */
#include <string.h>

#include <utlist.h>

#include "devicemgr/core.h"
#include "devicemgr/limits.h"

/* All entries that name one device. */
struct kubelet_claim {
    char *key;
    size_t key_bytes;
    const struct kubelet_hold **holds;
    size_t holds_len;
    UT_hash_handle hh;
};

/* ---- by device ---- */

static void claims_clear(struct kubelet_view *kubelet)
{
    struct kubelet_claim *claim, *next;

    HASH_ITER(hh, kubelet->claims, claim, next)
    {
        HASH_DEL(kubelet->claims, claim);
        free(claim->holds);
        free(claim->key);
        free(claim);
    }
}

static struct kubelet_claim *claim_find(const struct kubelet_view *kubelet, const char *resource,
                                        const char *id)
{
    const char *parts[] = {resource, id};
    struct kubelet_claim *claim;
    size_t key_bytes;
    char *key = mem_key(parts, 2, &key_bytes);

    HASH_FIND(hh, kubelet->claims, key, key_bytes, claim);
    free(key);
    return claim;
}

static void claim_add(struct kubelet_view *kubelet, const struct kubelet_hold *hold, const char *id)
{
    const char *parts[] = {hold->resource, id};
    struct kubelet_claim *claim = claim_find(kubelet, hold->resource, id);

    if (!claim) {
        claim = mem_alloc(1, sizeof *claim);
        claim->key = mem_key(parts, 2, &claim->key_bytes);
        HASH_ADD_KEYPTR(hh, kubelet->claims, claim->key, claim->key_bytes, claim);
    }
    claim->holds = mem_grow(claim->holds, claim->holds_len, sizeof(struct kubelet_hold *));
    claim->holds[claim->holds_len++] = hold;
}

/* ---- by pod ---- */

static void pods_clear(struct kubelet_view *kubelet)
{
    struct kubelet_pod *pod, *next;

    HASH_ITER(hh, kubelet->pods, pod, next)
    {
        HASH_DEL(kubelet->pods, pod);
        free(pod->holds);
        free(pod);
    }
    kubelet->stale = NULL;
}

static struct kubelet_pod *pod_find(const struct kubelet_view *kubelet, const char *uid)
{
    struct kubelet_pod *pod;

    HASH_FIND_STR(kubelet->pods, uid, pod);
    return pod;
}

static void pod_add(struct kubelet_view *kubelet, struct kubelet_hold *hold)
{
    struct kubelet_pod *pod = pod_find(kubelet, hold->pod_uid);

    if (!pod) {
        pod = mem_alloc(1, sizeof *pod);
        pod->uid = hold->pod_uid;
        HASH_ADD_KEYPTR(hh, kubelet->pods, pod->uid, strlen(pod->uid), pod);
    }
    pod->holds = mem_grow(pod->holds, pod->holds_len, sizeof(struct kubelet_hold *));
    pod->holds[pod->holds_len++] = hold;
}

struct kubelet_hold *const *kubelet_holds_of_pod(const struct devicemgr *mgr, const char *pod_uid,
                                                 size_t *holds_len)
{
    const struct kubelet_pod *pod = pod_find(&mgr->kubelet, pod_uid);

    *holds_len = pod ? pod->holds_len : 0;
    return pod ? pod->holds : NULL;
}

static void indexes_clear(struct kubelet_view *kubelet)
{
    claims_clear(kubelet);
    pods_clear(kubelet);
}

static void indexes_fill(struct kubelet_view *kubelet)
{
    for (size_t h = 0; h < kubelet->holds_len; h++) {
        pod_add(kubelet, &kubelet->holds[h]);
        for (size_t i = 0; i < kubelet->holds[h].ids.len; i++)
            claim_add(kubelet, &kubelet->holds[h], kubelet->holds[h].ids.v[i]);
    }
}

/* ---- the entries ---- */

static void holds_free(struct kubelet_hold *holds, size_t holds_len)
{
    for (size_t i = 0; i < holds_len; i++) {
        free(holds[i].resource);
        free(holds[i].pod_uid);
        free(holds[i].container);
        ids_fini(&holds[i].ids);
    }
    free(holds);
}

void kubelet_fini(struct kubelet_view *kubelet)
{
    indexes_clear(kubelet);
    holds_free(kubelet->holds, kubelet->holds_len);
    *kubelet = (struct kubelet_view){0};
}

static int compare_ids(const struct ids *a, const struct ids *b)
{
    int by_id = 0;

    for (size_t i = 0; by_id == 0 && i < a->len && i < b->len; i++)
        by_id = strcmp(a->v[i], b->v[i]);
    return by_id != 0 ? by_id : (a->len > b->len) - (a->len < b->len);
}

static int compare_holds(const void *a, const void *b)
{
    const struct kubelet_hold *x = a, *y = b;
    int by = strcmp(x->resource, y->resource);

    if (by == 0)
        by = strcmp(x->pod_uid, y->pod_uid);
    if (by == 0)
        by = strcmp(x->container, y->container);
    return by != 0 ? by : compare_ids(&x->ids, &y->ids);
}

static struct kubelet_hold *holds_new(const struct devicemgr *mgr,
                                      const struct devicemgr_kubelet_held *held, size_t held_len)
{
    struct kubelet_hold *holds = mem_alloc(held_len, sizeof *holds);

    for (size_t i = 0; i < held_len; i++) {
        holds[i].resource = mem_strdup(held[i].resource);
        holds[i].pod_uid = mem_strdup(held[i].pod_uid);
        holds[i].container = mem_strdup(held[i].container);
        ids_copy(&holds[i].ids, (char *const *)held[i].ids, held[i].ids_len);
        ids_sort(&holds[i].ids);
        holds[i].since_ms = mgr->now_ms;
        holds[i].early = !mgr->kubelet.told;
    }
    if (held_len > 1)
        qsort(holds, held_len, sizeof *holds, compare_holds);
    return holds;
}

static void go_on(struct kubelet_hold *hold, const struct kubelet_hold *before)
{
    hold->since_ms = before->since_ms;
    hold->early = before->early;
    hold->shown = before->shown;
}

static void lose(struct devicemgr *mgr, const struct kubelet_hold *old)
{
    const struct pod *pod = pods_find(&mgr->pods, old->pod_uid);

    wake_choosers(mgr, old->resource);
    if (pod && !pod->newest) /* it was kept for what the kubelet said, and may go with a list */
        runtime_list_soon(mgr);
    if (old->shown)
        advertise_hold_gone(mgr, old);
}

/* What both have goes on as it was; a resource that loses one is another. */
void devicemgr_kubelet_holds(struct devicemgr *mgr, uint64_t now_ms, uint64_t read_ms,
                             const struct devicemgr_kubelet_held *held, size_t held_len)
{
    struct kubelet_view *kubelet = &mgr->kubelet;
    struct kubelet_hold *holds;
    size_t n = 0;

    core_at(mgr, now_ms);
    holds = holds_new(mgr, held, held_len);
    for (size_t o = 0; o < kubelet->holds_len; o++) {
        const struct kubelet_hold *old = &kubelet->holds[o];

        while (n < held_len && compare_holds(&holds[n], old) < 0)
            n++;
        if (n < held_len && compare_holds(&holds[n], old) == 0)
            go_on(&holds[n++], old);
        else
            lose(mgr, old);
    }
    indexes_clear(kubelet);
    holds_free(kubelet->holds, kubelet->holds_len);
    kubelet->told = true;
    kubelet->holds = holds;
    kubelet->holds_len = held_len;
    indexes_fill(kubelet);
    advertise_times(mgr);
    mgr->advertise.holds_told = true;
    kubelet_judge_tokens(mgr, read_ms);
    adopt_settle(mgr);
}

/* ---- what they mean ---- */

const struct kubelet_hold *kubelet_hold_of(const struct devicemgr *mgr,
                                           const struct allocation *allocation)
{
    const struct kubelet_hold wanted = {.resource = allocation->resource,
                                        .pod_uid = allocation->pod_uid,
                                        .container = allocation->container,
                                        .ids = allocation->ids};

    if (mgr->kubelet.holds_len == 0)
        return NULL;
    return bsearch(&wanted, mgr->kubelet.holds, mgr->kubelet.holds_len, sizeof wanted,
                   compare_holds);
}

bool kubelet_gave(const struct devicemgr *mgr, const struct allocation *allocation)
{
    return kubelet_hold_of(mgr, allocation) != NULL;
}

bool kubelet_names_pod(const struct devicemgr *mgr, const char *pod_uid)
{
    return pod_find(&mgr->kubelet, pod_uid) != NULL;
}

/* Its pod is not known: whether its first sandbox may still be to come. */
static bool is_young(const struct devicemgr *mgr, const struct kubelet_hold *hold)
{
    return !mgr->kubelet.ready || mgr->now_ms < hold->since_ms + POD_COMES_MS;
}

bool kubelet_hold_counts(const struct devicemgr *mgr, const struct kubelet_hold *hold)
{
    if (core_pod_over(mgr, hold->pod_uid))
        return false;
    if (pods_find(&mgr->pods, hold->pod_uid) || !mgr->kubelet.ready)
        return true;
    return hold->early ? mgr->kubelet.new_boot : is_young(mgr, hold);
}

void kubelet_pod_changed(struct devicemgr *mgr, const char *pod_uid, bool wakes)
{
    struct kubelet_pod *pod = pod_find(&mgr->kubelet, pod_uid);

    if (!pod)
        return;
    for (size_t i = 0; wakes && i < pod->holds_len; i++)
        wake_choosers(mgr, pod->holds[i]->resource);
    if (pod->stale)
        return;
    pod->stale = true;
    DL_APPEND2(mgr->kubelet.stale, pod, stale_prev, stale_next);
}

bool kubelet_promised(const struct devicemgr *mgr, const char *resource, const char *id,
                      const char *pod_uid, const char *container)
{
    const struct kubelet_claim *claim = claim_find(&mgr->kubelet, resource, id);

    for (size_t i = 0; claim && i < claim->holds_len; i++) {
        const struct kubelet_hold *hold = claim->holds[i];

        if (strcmp(hold->pod_uid, pod_uid) == 0 && strcmp(hold->container, container) == 0)
            continue;
        if (core_pod_over(mgr, hold->pod_uid))
            continue;
        if (pods_find(&mgr->pods, hold->pod_uid) || is_young(mgr, hold))
            return true;
    }
    return false;
}
