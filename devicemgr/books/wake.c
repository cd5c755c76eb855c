#include "devicemgr/books/wake.h"

#include <string.h>

#include "devicemgr/things/allocation.h"
#include "devicemgr/things/demand.h"
#include "devicemgr/things/limits.h"

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

/* One in a list. */
struct wait {
    struct waiter *waiter;
    struct wake_list *list;
    struct wait *prev, *next;
    struct wait *of_waiter;
};

static struct wake_list *find(const struct wakes *wakes, const char *kind, const char *name,
                              const char *id)
{
    const char *parts[] = {kind, name, id};
    struct wake_list *list;
    struct mem_sought sought;

    if (!wakes->lists)
        return NULL;
    mem_seek(&sought, parts, id ? 3 : 2);
    HASH_FIND(hh, wakes->lists, sought.key, sought.key_bytes, list);
    mem_sought_drop(&sought);
    return list;
}

static void join(struct wakes *wakes, struct waiter *waiter, const char *kind, const char *name,
                 const char *id)
{
    const char *parts[] = {kind, name, id};
    struct wait *wait = mem_alloc(1, sizeof *wait);
    struct wake_list *list;
    struct mem_sought sought;

    mem_seek(&sought, parts, id ? 3 : 2);
    HASH_FIND(hh, wakes->lists, sought.key, sought.key_bytes, list);
    if (list) {
        mem_sought_drop(&sought);
    } else {
        list = mem_alloc(1, sizeof *list);
        list->key = mem_sought_take(&sought, &list->key_bytes);
        HASH_ADD_KEYPTR(hh, wakes->lists, list->key, list->key_bytes, list);
    }
    *wait = (struct wait){.waiter = waiter, .list = list, .next = list->first};
    if (list->first)
        list->first->prev = wait;
    list->first = wait;
    wait->of_waiter = waiter->waits;
    waiter->waits = wait;
}

static void leave(struct wakes *wakes, struct wait *wait)
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
    HASH_DEL(wakes->lists, list);
    free(list->key);
    free(list);
}

void wake_join(struct wakes *wakes, struct waiter *waiter, uint64_t due_ms)
{
    waiter->arrival = ++wakes->arrivals;
    HASH_ADD(hh, wakes->waiters, number, sizeof waiter->number, waiter);
    join(wakes, waiter, POD, waiter->demand->pod_uid, NULL);
    for (size_t i = 0; i < waiter->demand->request.len; i++) {
        const struct request_item *want = &waiter->demand->request.items[i];

        join(wakes, waiter, RESOURCE, want->resource, NULL);
        if (!want->token || waiter->replaces || want->ids.len > WAKE_IDS_MAX)
            join(wakes, waiter, CHOICE, want->resource, NULL);
        for (size_t k = 0; want->ids.len <= WAKE_IDS_MAX && k < want->ids.len; k++)
            join(wakes, waiter, DEVICE, want->resource, want->ids.v[k]);
    }
    wake_set_due(wakes, waiter, due_ms);
    wake_one(wakes, waiter);
}

/* ---- the heap ---- */

static void heap_put(struct wakes *wakes, size_t at, struct waiter *waiter)
{
    wakes->due[at] = waiter;
    waiter->due_at = at + 1;
}

static void heap_sift(struct wakes *wakes, size_t at)
{
    struct waiter *waiter = wakes->due[at];

    while (at > 0 && wakes->due[(at - 1) / 2]->due_ms > waiter->due_ms) {
        heap_put(wakes, at, wakes->due[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        size_t least = 2 * at + 1;

        if (least + 1 < wakes->due_len && wakes->due[least + 1]->due_ms < wakes->due[least]->due_ms)
            least++;
        if (least >= wakes->due_len || wakes->due[least]->due_ms >= waiter->due_ms)
            break;
        heap_put(wakes, at, wakes->due[least]);
        at = least;
    }
    heap_put(wakes, at, waiter);
}

static void heap_remove(struct wakes *wakes, struct waiter *waiter)
{
    size_t at = waiter->due_at - 1;
    struct waiter *last = wakes->due[--wakes->due_len];

    waiter->due_at = 0;
    if (last == waiter)
        return;
    heap_put(wakes, at, last);
    heap_sift(wakes, at);
}

void wake_set_due(struct wakes *wakes, struct waiter *waiter, uint64_t due_ms)
{
    if (waiter->due_at > 0 && waiter->due_ms == due_ms)
        return;
    if (waiter->due_at > 0)
        heap_remove(wakes, waiter);
    waiter->due_ms = due_ms;
    if (due_ms == UINT64_MAX)
        return;
    wakes->due = mem_grow(wakes->due, wakes->due_len, sizeof(struct waiter *));
    heap_put(wakes, wakes->due_len++, waiter);
    heap_sift(wakes, wakes->due_len - 1);
}

uint64_t wakes_next_ms(const struct wakes *wakes)
{
    return wakes->due_len > 0 ? wakes->due[0]->due_ms : UINT64_MAX;
}

void wake_tick(struct wakes *wakes, uint64_t now_ms)
{
    while (wakes_next_ms(wakes) <= now_ms) {
        struct waiter *waiter = wakes->due[0];

        wake_one(wakes, waiter);
        heap_remove(wakes, waiter); /* until it was looked at */
    }
}

/* ---- waking ---- */

void wake_decided(struct wakes *wakes, struct waiter *waiter)
{
    waiter->decided = true;
    wake_set_due(wakes, waiter, UINT64_MAX);
}

void wake_leave(struct wakes *wakes, struct waiter *waiter)
{
    if (!waiter->waits)
        return; /* each has joined at least its pod's */
    HASH_DEL(wakes->waiters, waiter);
    while (waiter->waits) {
        struct wait *wait = waiter->waits;

        waiter->waits = wait->of_waiter;
        leave(wakes, wait);
    }
    wake_set_due(wakes, waiter, UINT64_MAX);
}

void wakes_fini(struct wakes *wakes)
{
    free(wakes->due);
    free(wakes->woken);
    *wakes = (struct wakes){0};
}

void wake_one(struct wakes *wakes, struct waiter *waiter)
{
    if (waiter->woken || waiter->decided)
        return;
    waiter->woken = true;
    wakes->woken = mem_grow(wakes->woken, wakes->woken_len, sizeof *wakes->woken);
    wakes->woken[wakes->woken_len++] =
        (struct woken){waiter->number, waiter->arrival, waiter->late};
}

void wake_all(struct wakes *wakes)
{
    for (struct waiter *waiter = wakes->waiters; waiter; waiter = waiter->hh.next)
        wake_one(wakes, waiter);
}

static void wake_list(struct wakes *wakes, const char *kind, const char *name, const char *id)
{
    const struct wake_list *list = find(wakes, kind, name, id);

    for (const struct wait *wait = list ? list->first : NULL; wait; wait = wait->next)
        wake_one(wakes, wait->waiter);
}

void wake_pod(struct wakes *wakes, const char *pod_uid)
{
    wake_list(wakes, POD, pod_uid, NULL);
}

void wake_resource(struct wakes *wakes, const char *resource)
{
    wake_list(wakes, RESOURCE, resource, NULL);
}

void wake_choosers(struct wakes *wakes, const char *resource)
{
    wake_list(wakes, CHOICE, resource, NULL);
}

void wake_holders(struct wakes *wakes, const struct allocation *allocation)
{
    wake_choosers(wakes, allocation->resource);
    for (size_t i = 0; wakes->lists && i < allocation->ids.len; i++)
        wake_list(wakes, DEVICE, allocation->resource, allocation->ids.v[i]);
}

static int by_turn(const void *a, const void *b)
{
    const struct woken *p = a, *q = b;

    if (p->late != q->late)
        return p->late - q->late;
    return (p->arrival > q->arrival) - (p->arrival < q->arrival);
}

uint64_t *wakes_take(struct wakes *wakes, size_t *len)
{
    uint64_t *numbers = mem_alloc(wakes->woken_len, sizeof *numbers);

    if (wakes->woken_len > 1)
        qsort(wakes->woken, wakes->woken_len, sizeof *wakes->woken, by_turn);
    for (size_t i = 0; i < wakes->woken_len; i++)
        numbers[i] = wakes->woken[i].number;
    *len = wakes->woken_len;
    free(wakes->woken);
    wakes->woken = NULL;
    wakes->woken_len = 0;
    return numbers;
}

void wakes_put_back(struct wakes *wakes, const uint64_t *numbers, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct waiter *waiter = wakes_find(wakes, numbers[i]);

        if (!waiter)
            continue;
        waiter->woken = false;
        wake_one(wakes, waiter);
    }
}

struct waiter *wakes_find(struct wakes *wakes, uint64_t number)
{
    struct waiter *waiter;

    HASH_FIND(hh, wakes->waiters, &number, sizeof number, waiter);
    return waiter;
}

const struct waiter *wakes_find_other(const struct wakes *wakes, const struct demand *demand)
{
    const struct wake_list *list = find(wakes, POD, demand->pod_uid, NULL);

    for (const struct wait *wait = list ? list->first : NULL; wait; wait = wait->next) {
        if (wait->waiter->demand != demand && !wait->waiter->decided &&
            strcmp(wait->waiter->demand->container, demand->container) == 0)
            return wait->waiter;
    }
    return NULL;
}
