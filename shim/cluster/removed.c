#include "shim/cluster/removed.h"

#include <stdlib.h>
#include <string.h>

#include "shim/boot_clock.h"
#include "shim/cluster/limits.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/path.h"

/* ---- for the daemon that follows ---- */

static void on_written(void *user, int err)
{
    struct removed *removed = user;

    if (err && !removed->told_unkept)
        log_warning("%s: %s; what the node is still to be told is lost with this process",
                    removed->file.path, strerror(-err));
    removed->told_unkept = err != 0;
    if (err)
        removed->kept_version = removed->ordered.version - 1; /* tried again */
    if (removed->stopping.parts > 0 && !removed_file_writes(&removed->file))
        stopping_part(&removed->stopping);
}

static void keep(struct removed *removed)
{
    size_t len = 0;
    const char **names = must(calloc(HASH_COUNT(removed->ordered.by_name) + 1, sizeof *names));

    for (struct standing_order *one = removed->ordered.by_name; one; one = one->hh.next)
        names[len++] = one->name;
    removed_file_write(&removed->file, names, len);
    removed->kept_version = removed->ordered.version;
    free(names);
}

/* The daemon before could not tell it. That it is so counts until the core says otherwise. */
static void on_kept(void *user, const char *name)
{
    struct removed *removed = user;

    if (HASH_COUNT(removed->ordered.by_name) < CLUSTER_REMOVED_MAX)
        standing_want(&removed->ordered, name)->kept = true;
}

/* ---- what is removed ---- */

/* A plugin that has come back meanwhile has ended this (capacity_published()), and what is told by
 * then the kubelet tells anew. */
static void on_done(void *user, const char *name)
{
    struct removed *removed = user;

    log_write_about(LOG_LEVEL_INFO, &(struct log_about){.resource = name},
                    "resource %s: the node's capacity of it is 0", name);
    devicemgr_removed_seen(host_core(removed->host), name);
    keep(removed);
}

static void order(struct standing_order *resource)
{
    Agent__V1__SetCapacity set = AGENT__V1__SET_CAPACITY__INIT;
    Agent__V1__Order what = AGENT__V1__ORDER__INIT;

    set.resource = resource->name;
    set.quantity = (char *)"0";
    what.what_case = AGENT__V1__ORDER__WHAT_SET_CAPACITY;
    what.set_capacity = &set;
    standing_give(resource, &what);
}

/* It may have taken it up since that was ordered. */
static void leave_to_kubelet(struct standing_order *resource)
{
    if (resource->order)
        log_write_about(LOG_LEVEL_INFO, &(struct log_about){.resource = resource->name},
                        "resource %s: the kubelet has it: its capacity is left to it",
                        resource->name);
    standing_withhold(resource);
}

static void on_each(void *user, const struct devicemgr_capacity *capacity)
{
    struct removed *removed = user;
    struct standing_order *resource = standing_find(&removed->ordered, capacity->resource);

    if (capacity->removed)
        standing_want(&removed->ordered, capacity->resource)->kept = false;
    else if (resource)
        resource->wanted = resource->kept = false;
}

static void on_look(uv_timer_t *timer)
{
    struct removed *removed = timer->data;
    struct standing *ordered = &removed->ordered;

    removed->looked_ms = boot_now_ms();
    if (!host_ready(removed->host))
        return;
    standing_look(ordered);
    for (struct standing_order *one = ordered->by_name; one; one = one->hh.next)
        one->wanted = one->kept;
    devicemgr_capacity(host_core(removed->host), on_each, removed);
    standing_looked(ordered, NULL);
    if (removed->kept_version != ordered->version)
        keep(removed);
    for (struct standing_order *one = ordered->by_name; one; one = one->hh.next) {
        if (removed->published(removed->user, one->name))
            leave_to_kubelet(one);
        else
            order(one);
    }
    if (ordered->by_name) /* nobody tells when the kubelet takes one up, or forgets it */
        uv_timer_start(timer, on_look, CLUSTER_LOOK_AGAIN_MS, 0);
}

void removed_look(struct removed *removed)
{
    uint64_t wait_ms = boot_left_ms(removed->looked_ms + CLUSTER_LOOK_MS);
    uv_timer_t *timer = &removed->timer;

    if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > wait_ms)
        uv_timer_start(timer, on_look, wait_ms, 0);
}

void removed_init(struct removed *removed, uv_loop_t *loop, const struct removed_world *world)
{
    *removed =
        (struct removed){.host = world->host, .published = world->published, .user = world->user};
    removed_file_init(&removed->file, loop, path_join(world->state_dir, REMOVED_FILE), on_written,
                      removed);
    standing_init(&removed->ordered, world->orders, world->cancel, world->cluster, on_done,
                  removed);
    removed_file_read(removed->file.path, on_kept, removed);
    removed->kept_version = removed->ordered.version;
    uv_timer_init(loop, &removed->timer);
    removed->timer.data = removed;
    removed_look(removed);
}

static void on_stopped(void *thing)
{
    struct removed *removed = thing;

    removed_file_fini(&removed->file);
}

void removed_fini(struct removed *removed, void (*done)(void *user), void *user)
{
    unsigned parts = 1 + removed_file_writes(&removed->file);

    standing_fini(&removed->ordered);
    removed->stopping = (struct stopping){parts, on_stopped, removed, done, user};
    stopping_close(&removed->stopping, (uv_handle_t *)&removed->timer);
}
