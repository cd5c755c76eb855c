#include "devicemgr/things/sidecars.h"

#include "devicemgr/things/limits.h"
#include "devicemgr/things/pod.h"

static void drop(struct sidecars *table, struct pod_sidecars *one)
{
    HASH_DEL(table->by_uid, one);
    ids_fini(&one->names);
    free(one->uid);
    free(one->pod_namespace);
    free(one->pod_name);
    free(one);
}

void sidecars_fini(struct sidecars *table)
{
    while (table->by_uid)
        drop(table, table->by_uid);
}

void sidecars_set(struct sidecars *table, const struct devicemgr_sidecars *is)
{
    struct pod_sidecars *one;

    HASH_FIND_STR(table->by_uid, is->pod_uid, one);
    if (one)
        drop(table, one);
    if (is->names_len == 0 || HASH_COUNT(table->by_uid) >= SIDECAR_PODS_MAX)
        return;
    one = mem_alloc(1, sizeof *one);
    one->uid = mem_strdup(is->pod_uid);
    one->pod_namespace = mem_strdup(is->pod_namespace);
    one->pod_name = mem_strdup(is->pod_name);
    one->mirror = is->mirror;
    for (size_t i = 0; i < is->names_len && i < SIDECARS_MAX; i++)
        ids_add(&one->names, is->names[i]);
    HASH_ADD_KEYPTR(hh, table->by_uid, one->uid, strlen(one->uid), one);
}

static bool is_mirror_of(const struct pod_sidecars *one, const struct pod *pod)
{
    return one->mirror && strcmp(one->pod_name, pod->name) == 0 &&
           strcmp(one->pod_namespace, pod->pod_namespace) == 0;
}

static const struct pod_sidecars *find(const struct sidecars *table, const struct pod *pod)
{
    const struct pod_sidecars *one;

    HASH_FIND_STR(table->by_uid, pod->uid, one);
    if (one || !pod->static_pod)
        return one;
    one = table->by_uid;
    while (one && !is_mirror_of(one, pod))
        one = one->hh.next;
    return one;
}

const struct ids *sidecars_find(const struct sidecars *table, const struct pod *pod)
{
    const struct pod_sidecars *one = find(table, pod);

    return one ? &one->names : NULL;
}

size_t sidecars_turn(const struct ids *names, const char *container)
{
    for (size_t i = 0; i < names->len; i++) {
        if (strcmp(names->v[i], container) == 0)
            return names->len - i;
    }
    return 0;
}
