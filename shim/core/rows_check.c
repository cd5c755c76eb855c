#include "shim/core/rows_check.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/lists.h"
#include "shim/must.h"

void rows_found_add(struct rows_found *found, enum rows_finding_kind kind, const char *format, ...)
{
    struct rows_finding *finding;
    va_list args;

    found->total++;
    found->against += kind != ROWS_FINDING_DEVICE;
    if (found->len == ROWS_FINDINGS_MAX)
        return;
    finding = &found->v[found->len++];
    finding->kind = kind;
    va_start(args, format);
    if (vasprintf(&finding->text, format, args) < 0)
        abort(); /* out of memory */
    va_end(args);
}

void rows_found_fini(struct rows_found *found)
{
    for (size_t i = 0; i < found->len; i++)
        free(found->v[i].text);
    *found = (struct rows_found){0};
}

/* ---- a device in several pods ---- */

/* A row has it; all of it is the device manager's. */
struct has {
    const char *resource, *id;
    const char *pod_uid, *pod_namespace, *pod_name, *container;
};

struct all {
    const struct devicemgr *scratch;
    struct has *v;
    size_t len, size;
};

static bool on_allocation(void *user, const struct devicemgr_allocation *is)
{
    struct all *all = user;

    for (size_t i = 0; i < is->ids_len; i++) {
        if (all->len == all->size) {
            all->size = all->size ? 2 * all->size : 256;
            all->v = must(realloc(all->v, all->size * sizeof *all->v));
        }
        all->v[all->len++] = (struct has){is->resource,      is->ids[i],   is->pod_uid,
                                          is->pod_namespace, is->pod_name, is->container};
    }
    return true;
}

static int by_device(const void *a, const void *b)
{
    const struct has *x = a, *y = b;
    int order = strcmp(x->resource, y->resource);

    if (order == 0)
        order = strcmp(x->id, y->id);
    return order != 0 ? order : strcmp(x->pod_uid, y->pod_uid);
}

static bool on_resource(void *user, const struct devicemgr_resource *is)
{
    *(bool *)user = is->exclusive;
    return false;
}

/* One that several may have at a time is no finding. */
static bool is_exclusive(const struct devicemgr *scratch, const char *resource)
{
    const struct devicemgr_which which = {.resource = resource};
    bool exclusive = true;

    devicemgr_resources(scratch, 0, &which, on_resource, &exclusive);
    return exclusive;
}

static bool is_same_device(const struct has *a, const struct has *b)
{
    return strcmp(a->resource, b->resource) == 0 && strcmp(a->id, b->id) == 0;
}

static bool is_same_pod(const struct has *a, const struct has *b)
{
    return strcmp(a->pod_uid, b->pod_uid) == 0;
}

static bool shares(const struct all *all, const struct has *a, const struct has *b)
{
    const char *const one[] = {a->pod_uid, a->container, a->resource};
    const char *const other[] = {b->pod_uid, b->container, b->resource};

    return devicemgr_allocations_share(all->scratch, a->id, one, other);
}

/* The last before this one, of another pod, that does not share the device with it; those between
 * them may share it with both, as who only looks. NULL: none. */
static const struct has *find_other(const struct all *all, const struct has *b)
{
    for (const struct has *a = b; a > all->v && is_same_device(a - 1, b); a--) {
        if (!is_same_pod(a - 1, b) && !shares(all, a - 1, b))
            return a - 1;
    }
    return NULL;
}

/* A pod is told once of a device. */
static void find_shared(const struct all *all, struct rows_found *found)
{
    const struct has *told = NULL;

    for (size_t i = 1; i < all->len; i++) {
        const struct has *b = &all->v[i], *a;

        if (told && is_same_device(told, b) && is_same_pod(told, b))
            continue;
        a = find_other(all, b);
        if (!a || !is_exclusive(all->scratch, a->resource))
            continue;
        told = b;
        rows_found_add(found, ROWS_FINDING_DEVICE,
                       "device %s of resource %s is in the rows of pod %s/%s (uid %s, container "
                       "%s) and of pod %s/%s (uid %s, container %s)",
                       a->id, a->resource, a->pod_namespace, a->pod_name, a->pod_uid, a->container,
                       b->pod_namespace, b->pod_name, b->pod_uid, b->container);
    }
}

void rows_check(struct devicemgr *scratch, const struct devicemgr_record *records, size_t len,
                struct rows_found *found)
{
    static const char *const KINDS[] = {
        [DEVICEMGR_RECORD_RESOURCE] = "resource", [DEVICEMGR_RECORD_ALLOCATION] = "allocation",
        [DEVICEMGR_RECORD_POD] = "pod",           [DEVICEMGR_RECORD_ORDER] = "order",
        [DEVICEMGR_RECORD_DRIVER] = "driver",     [DEVICEMGR_RECORD_CLAIM] = "claim",
        [DEVICEMGR_RECORD_ENDING] = "ending",     [DEVICEMGR_RECORD_SHUTDOWN] = "shutdown"};
    const struct devicemgr_which every = {0};
    struct all all = {.scratch = scratch};

    for (size_t i = 0; i < len; i++) {
        if (devicemgr_restore(scratch, 0, &records[i]) < 0)
            rows_found_add(found, ROWS_FINDING_ROW, "the row of %s (%s %s %s) makes no sense",
                           KINDS[records[i].kind], records[i].key[0], records[i].key[1],
                           records[i].key[2]);
    }
    devicemgr_allocations(scratch, 0, &every, on_allocation, &all);
    if (all.len > 1)
        qsort(all.v, all.len, sizeof *all.v, by_device);
    find_shared(&all, found);
    free(all.v);
}
