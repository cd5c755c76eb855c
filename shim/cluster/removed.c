#include "shim/cluster/removed.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "shim/cluster/limits.h"
#include "shim/log.h"
#include "shim/must.h"

/* One that is ordered to be told. */
struct removed_resource {
    struct removed *removed;
    char *name;
    uint64_t order;
    bool is_removed; /* still; only while all are looked at */
    UT_hash_handle hh;
};

static void resource_free(struct removed_resource *resource)
{
    HASH_DEL(resource->removed->ordered, resource);
    free(resource->name);
    free(resource);
}

/* A plugin that has come back meanwhile has ended this (capacity_published()), and what is told by then
 * the kubelet tells anew. */
static void on_done(void *user, const Agent__V1__AnswerRequest *answer)
{
    struct removed_resource *resource = user;

    (void)answer; /* it is wanted for ever: done */
    log_write_about(LOG_LEVEL_INFO, &(struct log_about){.resource = resource->name},
                    "resource %s: the node's capacity of it is 0", resource->name);
    devicemgr_removed_seen(host_core(resource->removed->host), resource->name);
    resource_free(resource);
}

static void order(struct removed *removed, const char *name)
{
    Agent__V1__SetCapacity set = AGENT__V1__SET_CAPACITY__INIT;
    Agent__V1__Order what = AGENT__V1__ORDER__INIT;
    struct removed_resource *resource = must(calloc(1, sizeof *resource));

    set.resource = (char *)name;
    set.quantity = (char *)"0";
    what.what_case = AGENT__V1__ORDER__WHAT_SET_CAPACITY;
    what.set_capacity = &set;
    resource->removed = removed;
    resource->name = must(strdup(name));
    resource->is_removed = true;
    HASH_ADD_KEYPTR(hh, removed->ordered, resource->name, strlen(resource->name), resource);
    resource->order = cluster_orders_add(removed->orders, &what, true, on_done, resource);
    if (resource->order == 0)
        resource_free(resource); /* looked for again */
}

struct look {
    struct removed *removed;
    bool again; /* something is not to be told yet */
};

static void on_each(void *user, const struct devicemgr_capacity *capacity)
{
    struct look *look = user;
    struct removed_resource *resource;

    if (!capacity->removed)
        return;
    HASH_FIND_STR(look->removed->ordered, capacity->resource, resource);
    if (resource)
        resource->is_removed = true;
    else if (look->removed->published(look->removed->user, capacity->resource))
        look->again = true;
    else
        order(look->removed, capacity->resource);
}

static void on_look(uv_timer_t *timer)
{
    struct look look = {.removed = timer->data};
    struct removed *removed = look.removed;
    struct removed_resource *resource, *next;

    for (resource = removed->ordered; resource; resource = resource->hh.next)
        resource->is_removed = false;
    devicemgr_capacity(host_core(removed->host), on_each, &look);
    for (resource = removed->ordered; resource; resource = next) {
        next = resource->hh.next;
        if (resource->is_removed)
            continue;
        cluster_orders_cancel(removed->orders, resource->order);
        resource_free(resource);
    }
    if (look.again)
        uv_timer_start(timer, on_look, CLUSTER_LOOK_AGAIN_MS, 0);
}

void removed_look(struct removed *removed)
{
    uv_timer_t *timer = &removed->timer;

    if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > CLUSTER_LOOK_MS)
        uv_timer_start(timer, on_look, CLUSTER_LOOK_MS, 0);
}

void removed_init(struct removed *removed, uv_loop_t *loop, struct host *host,
                  struct cluster_orders *orders,
                  bool (*published)(void *user, const char *resource), void *user)
{
    *removed =
        (struct removed){.host = host, .orders = orders, .published = published, .user = user};
    uv_timer_init(loop, &removed->timer);
    removed->timer.data = removed;
    removed_look(removed);
}

void removed_fini(struct removed *removed, uv_close_cb closed)
{
    while (removed->ordered)
        resource_free(removed->ordered);
    uv_close((uv_handle_t *)&removed->timer, closed);
}
