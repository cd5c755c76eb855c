/*
 * The table of allocations, its indexes, and which of them are to be looked at.
 */
#include "devicemgr/things/allocation.h"

#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "devicemgr/things/demand.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/options.h"

struct pod_group {
    char *pod_uid;
    struct allocation *first;
    UT_hash_handle hh;
};

void allocations_fini(struct allocations *table)
{
    struct allocation *allocation, *next;

    HASH_ITER(hh, table->by_key, allocation, next) {
        allocations_remove(table, allocation);
    }
    assert(table->options_bytes == 0);
    ids_fini(&table->dropped);
}

bool allocations_have_room(const struct allocations *table, size_t options_bytes)
{
    return options_bytes <= OPTIONS_BYTES_MAX &&
           table->options_bytes <= OPTIONS_BYTES_MAX - options_bytes;
}

struct allocation *allocations_take_changed(struct allocations *table)
{
    struct allocation *allocation = table->changed;

    DL_DELETE2(table->changed, allocation, changed_prev, changed_next);
    allocation->changed = false;
    return allocation;
}

struct allocation *allocations_take_stale(struct allocations *table)
{
    struct allocation *allocation = table->stale;

    DL_DELETE2(table->stale, allocation, stale_prev, stale_next);
    allocation->stale = false;
    return allocation;
}

/* ---- by device, and by container ---- */

const struct owners *allocations_holders(const struct allocations *table, const char *resource,
                                         const char *id)
{
    return owners_find(table->devices, (const char *[]){resource, id}, 2);
}

const struct owners *allocations_askers(const struct allocations *table, const char *resource,
                                        const char *id)
{
    return owners_find(table->asked, (const char *[]){resource, id}, 2);
}

struct allocation *allocations_of_container(struct allocations *table, const char *container_id)
{
    const struct owners *owners = owners_find(table->containers, &container_id, 1);

    return owners ? allocations_mutable(table, owners->v[0]) : NULL;
}

/* ---- groups: pod to allocations ---- */

static struct pod_group *group_find(const struct allocations *table, const char *pod_uid)
{
    struct pod_group *group;

    HASH_FIND_STR(table->pods, pod_uid, group);
    return group;
}

static void group_add(struct allocations *table, struct allocation *allocation)
{
    struct pod_group *group = group_find(table, allocation->pod_uid);

    if (!group) {
        group = mem_alloc(1, sizeof *group);
        group->pod_uid = mem_strdup(allocation->pod_uid);
        HASH_ADD_KEYPTR(hh, table->pods, group->pod_uid, strlen(group->pod_uid), group);
    }
    allocation->pod_next = group->first;
    group->first = allocation;
}

static void group_remove(struct allocations *table, const struct allocation *allocation)
{
    struct pod_group *group = group_find(table, allocation->pod_uid);
    struct allocation **link;

    assert(group);
    link = &group->first;
    while (*link != allocation)
        link = &(*link)->pod_next;
    *link = allocation->pod_next;
    if (group->first)
        return;
    HASH_DEL(table->pods, group);
    free(group->pod_uid);
    free(group);
}

const struct allocation *allocations_of_pod(const struct allocations *table, const char *pod_uid)
{
    const struct pod_group *group = group_find(table, pod_uid);

    return group ? group->first : NULL;
}

struct allocation *allocations_edit_of_pod(struct allocations *table, const char *pod_uid)
{
    return allocations_mutable(table, allocations_of_pod(table, pod_uid));
}

/* ---- table ---- */

struct allocation *allocations_add(struct allocations *table, const char *pod_uid,
                                   const char *container, const char *resource,
                                   const struct ids *ids)
{
    const char *parts[] = {pod_uid, container, resource};
    struct allocation *allocation = mem_alloc(1, sizeof *allocation);

    allocation->key = mem_key(parts, 3, &allocation->key_bytes);
    mem_parts(allocation->key, parts, 3);
    allocation->pod_uid = parts[0];
    allocation->container = parts[1];
    allocation->resource = parts[2];
    allocation->boot_id = mem_strdup("");
    allocation->table = table;
    allocation_set_changed(allocation);
    ids_copy(&allocation->ids, ids->v, ids->len);
    ids_sort(&allocation->ids);
    HASH_ADD_KEYPTR(hh, table->by_key, allocation->key, allocation->key_bytes, allocation);
    group_add(table, allocation);
    allocation_put_in(allocation);
    return allocation;
}

void allocation_set_replaced(struct allocation *allocation, const struct ids *asked)
{
    struct ids sorted;

    assert(!allocation_replaced(allocation));
    assert(asked->len == 0 || asked->len == allocation->ids.len);
    ids_copy(&sorted, asked->v, asked->len);
    ids_sort(&sorted);
    if (ids_equal(&sorted, &allocation->ids))
        ids_fini(&sorted);
    if (sorted.len == 0)
        return;
    allocation_take_out(allocation);
    allocation->asked = sorted;
    allocation_put_in(allocation);
}

const struct allocation *allocations_find(const struct allocations *table, const char *pod_uid,
                                          const char *container, const char *resource)
{
    const char *parts[] = {pod_uid, container, resource};
    struct allocation *allocation;
    struct mem_sought sought;

    mem_seek(&sought, parts, 3);
    HASH_FIND(hh, table->by_key, sought.key, sought.key_bytes, allocation);
    mem_sought_drop(&sought);
    return allocation;
}

struct allocation *allocations_edit(struct allocations *table, const char *pod_uid,
                                    const char *container, const char *resource)
{
    return allocations_mutable(table, allocations_find(table, pod_uid, container, resource));
}

const struct allocation *allocations_demanded(const struct allocations *table,
                                              const struct demand *demand, size_t index)
{
    return allocations_find(table, demand->pod_uid, demand->container,
                            demand->request.items[index].resource);
}

/* In no index any more. */
static void allocation_free(struct allocations *table, struct allocation *allocation)
{
    free(allocation->lives);
    free(allocation->unknown_in);
    ids_fini(&allocation->ids);
    ids_fini(&allocation->asked);
    ids_fini(&allocation->before);
    ids_fini(&allocation->before_asked);
    by_claims_fini(&allocation->by);
    table->options_bytes -= allocation->options_bytes + allocation->fresh_bytes;
    options_free(allocation->options);
    options_free(allocation->fresh);
    free(allocation->boot_id);
    free(allocation->key);
    free(allocation);
}

void allocations_remove(struct allocations *table, struct allocation *allocation)
{
    allocation_take_out(allocation);
    allocation_drop_lives(allocation);
    group_remove(table, allocation);
    if (allocation->stale)
        DL_DELETE2(table->stale, allocation, stale_prev, stale_next);
    if (allocation->changed)
        DL_DELETE2(table->changed, allocation, changed_prev, changed_next);
    HASH_DEL(table->by_key, allocation);
    allocation_free(table, allocation);
}
