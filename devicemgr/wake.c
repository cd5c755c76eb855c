#include "devicemgr/wake.h"

#include <string.h>

#include "devicemgr/create.h"
#include "devicemgr/limits.h"

/* What creates wait for, the first part of a key. */
#define POD "pod"
#define RESOURCE "resource" /* any that names it */
#define CHOICE "choice"     /* those of them that choose among its devices */
#define DEVICE "device"     /* those that want this one */

struct wake_list {
    char *key;
    size_t key_bytes;
    struct wait *first;
    UT_hash_handle hh;
};

/* A create in a list. */
struct wait {
    struct create *create;
    struct wake_list *list;
    struct wait *prev, *next;
    struct wait *of_create;
};

static struct wake_list *find(const struct devicemgr *mgr, const char *kind, const char *name,
                              const char *id)
{
    const char *parts[] = {kind, name, id};
    struct wake_list *list;
    size_t key_bytes;
    char *key;

    if (!mgr->wakes.lists)
        return NULL;
    key = mem_key(parts, id ? 3 : 2, &key_bytes);
    HASH_FIND(hh, mgr->wakes.lists, key, key_bytes, list);
    free(key);
    return list;
}

static void join(struct devicemgr *mgr, struct create *create, const char *kind, const char *name,
                 const char *id)
{
    const char *parts[] = {kind, name, id};
    struct wake_list *list = find(mgr, kind, name, id);
    struct wait *wait = mem_alloc(1, sizeof *wait);

    if (!list) {
        list = mem_alloc(1, sizeof *list);
        list->key = mem_key(parts, id ? 3 : 2, &list->key_bytes);
        HASH_ADD_KEYPTR(hh, mgr->wakes.lists, list->key, list->key_bytes, list);
    }
    *wait = (struct wait){.create = create, .list = list, .next = list->first};
    if (list->first)
        list->first->prev = wait;
    list->first = wait;
    wait->of_create = create->waits;
    create->waits = wait;
}

static void leave(struct devicemgr *mgr, struct wait *wait)
{
    struct wake_list *list = wait->list;

    if (wait->prev)
        wait->prev->next = wait->next;
    else
        list->first = wait->next;
    if (wait->next)
        wait->next->prev = wait->prev;
    free(wait);
    if (list->first)
        return;
    HASH_DEL(mgr->wakes.lists, list);
    free(list->key);
    free(list);
}

void wake_join(struct devicemgr *mgr, struct create *create)
{
    join(mgr, create, POD, create->demand.pod_uid, NULL);
    for (size_t i = 0; i < create->demand.request.len; i++) {
        const struct request_item *want = &create->demand.request.items[i];

        join(mgr, create, RESOURCE, want->resource, NULL);
        if (!want->token || want->ids.len > WAKE_IDS_MAX)
            join(mgr, create, CHOICE, want->resource, NULL);
        for (size_t k = 0; want->ids.len <= WAKE_IDS_MAX && k < want->ids.len; k++)
            join(mgr, create, DEVICE, want->resource, want->ids.v[k]);
    }
    wake_set_due(mgr, create, create->limit_ms);
    wake_create(mgr, create);
}

/* ---- the heap ---- */

static void heap_put(struct wakes *wakes, size_t at, struct create *create)
{
    wakes->due[at] = create;
    create->due_at = at + 1;
}

static void heap_settle(struct wakes *wakes, size_t at)
{
    struct create *create = wakes->due[at];

    while (at > 0 && wakes->due[(at - 1) / 2]->due_ms > create->due_ms) {
        heap_put(wakes, at, wakes->due[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        size_t least = 2 * at + 1;

        if (least + 1 < wakes->due_len && wakes->due[least + 1]->due_ms < wakes->due[least]->due_ms)
            least++;
        if (least >= wakes->due_len || wakes->due[least]->due_ms >= create->due_ms)
            break;
        heap_put(wakes, at, wakes->due[least]);
        at = least;
    }
    heap_put(wakes, at, create);
}

static void heap_remove(struct wakes *wakes, struct create *create)
{
    size_t at = create->due_at - 1;
    struct create *last = wakes->due[--wakes->due_len];

    create->due_at = 0;
    if (last == create)
        return;
    heap_put(wakes, at, last);
    heap_settle(wakes, at);
}

void wake_set_due(struct devicemgr *mgr, struct create *create, uint64_t due_ms)
{
    struct wakes *wakes = &mgr->wakes;

    if (create->due_at > 0 && create->due_ms == due_ms)
        return;
    if (create->due_at > 0)
        heap_remove(wakes, create);
    create->due_ms = due_ms;
    if (due_ms == UINT64_MAX)
        return;
    wakes->due = mem_grow(wakes->due, wakes->due_len, sizeof(struct create *));
    heap_put(wakes, wakes->due_len++, create);
    heap_settle(wakes, wakes->due_len - 1);
}

uint64_t wakes_next_ms(const struct devicemgr *mgr)
{
    return mgr->wakes.due_len > 0 ? mgr->wakes.due[0]->due_ms : UINT64_MAX;
}

void wake_tick(struct devicemgr *mgr)
{
    while (wakes_next_ms(mgr) <= mgr->now_ms) {
        struct create *create = mgr->wakes.due[0];

        wake_create(mgr, create);
        heap_remove(&mgr->wakes, create); /* until it was looked at */
    }
}

/* ---- waking ---- */

void wake_leave(struct devicemgr *mgr, struct create *create)
{
    while (create->waits) {
        struct wait *wait = create->waits;

        create->waits = wait->of_create;
        leave(mgr, wait);
    }
    wake_set_due(mgr, create, UINT64_MAX);
}

void wakes_fini(struct wakes *wakes)
{
    free(wakes->due);
    free(wakes->woken);
    *wakes = (struct wakes){0};
}

void wake_create(struct devicemgr *mgr, struct create *create)
{
    struct wakes *wakes = &mgr->wakes;

    if (create->woken || create->state == CREATE_FORWARDED)
        return;
    create->woken = true;
    wakes->woken = mem_grow(wakes->woken, wakes->woken_len, sizeof *wakes->woken);
    wakes->woken[wakes->woken_len++] = (struct woken){create->number, create->arrival};
}

void wake_all(struct devicemgr *mgr)
{
    for (struct create *create = mgr->creates; create; create = create->hh.next)
        wake_create(mgr, create);
}

static void wake_list(struct devicemgr *mgr, const char *kind, const char *name, const char *id)
{
    const struct wake_list *list = find(mgr, kind, name, id);

    for (const struct wait *wait = list ? list->first : NULL; wait; wait = wait->next)
        wake_create(mgr, wait->create);
}

void wake_pod(struct devicemgr *mgr, const char *pod_uid)
{
    wake_list(mgr, POD, pod_uid, NULL);
}

void wake_resource(struct devicemgr *mgr, const char *resource)
{
    wake_list(mgr, RESOURCE, resource, NULL);
}

void wake_choosers(struct devicemgr *mgr, const char *resource)
{
    wake_list(mgr, CHOICE, resource, NULL);
}

void wake_holders(struct devicemgr *mgr, const struct allocation *allocation)
{
    wake_choosers(mgr, allocation->resource);
    for (size_t i = 0; mgr->wakes.lists && i < allocation->ids.len; i++)
        wake_list(mgr, DEVICE, allocation->resource, allocation->ids.v[i]);
}

static int by_arrival(const void *a, const void *b)
{
    uint64_t p = ((const struct woken *)a)->arrival, q = ((const struct woken *)b)->arrival;

    return (p > q) - (p < q);
}

uint64_t *wakes_take(struct devicemgr *mgr, size_t *len)
{
    struct wakes *wakes = &mgr->wakes;
    uint64_t *numbers = mem_alloc(wakes->woken_len, sizeof *numbers);

    if (wakes->woken_len > 1)
        qsort(wakes->woken, wakes->woken_len, sizeof *wakes->woken, by_arrival);
    for (size_t i = 0; i < wakes->woken_len; i++)
        numbers[i] = wakes->woken[i].number;
    *len = wakes->woken_len;
    free(wakes->woken);
    wakes->woken = NULL;
    wakes->woken_len = 0;
    return numbers;
}

struct create *wake_find_other(const struct devicemgr *mgr, const struct create *create)
{
    const struct wake_list *list = find(mgr, POD, create->demand.pod_uid, NULL);

    for (const struct wait *wait = list ? list->first : NULL; wait; wait = wait->next) {
        if (wait->create != create && wait->create->state != CREATE_FORWARDED &&
            strcmp(wait->create->demand.container, create->demand.container) == 0)
            return wait->create;
    }
    return NULL;
}
