#include "devicemgr/things/consumers.h"

#include <string.h>

#include "devicemgr/things/limits.h"

const struct consumers *consumers_find(const struct consumers *table, const char *claim)
{
    const struct consumers *consumers;

    HASH_FIND_STR(table, claim, consumers);
    return consumers;
}

static void drop(struct consumers **table, struct consumers *consumers)
{
    HASH_DEL(*table, consumers);
    for (size_t i = 0; i < consumers->devices_len; i++) {
        free(consumers->devices[i].driver);
        free(consumers->devices[i].pool);
        free(consumers->devices[i].device);
        tolerations_fini(&consumers->devices[i].tolerations);
    }
    free(consumers->devices);
    ids_fini(&consumers->reserved_for);
    free(consumers->claim);
    free(consumers);
}

void consumers_fini(struct consumers **table)
{
    while (*table)
        drop(table, *table);
}

static struct consumers_device *find_device(const struct consumers *consumers, const char *driver,
                                            const char *pool, const char *device)
{
    for (size_t i = 0; i < consumers->devices_len; i++) {
        struct consumers_device *one = &consumers->devices[i];

        if (strcmp(one->device, device) == 0 && strcmp(one->pool, pool) == 0 &&
            strcmp(one->driver, driver) == 0)
            return one;
    }
    return NULL;
}

static void add_toleration(struct consumers *consumers, const struct devicemgr_claim_toleration *is)
{
    struct consumers_device *one = find_device(consumers, is->driver, is->pool, is->device);

    if (!one && consumers->devices_len == CLAIM_DEVICES_MAX)
        return;
    if (!one) {
        consumers->devices =
            mem_grow(consumers->devices, consumers->devices_len, sizeof *consumers->devices);
        one = &consumers->devices[consumers->devices_len++];
        *one = (struct consumers_device){.driver = mem_strdup(is->driver),
                                         .pool = mem_strdup(is->pool),
                                         .device = mem_strdup(is->device)};
    }
    (void)tolerations_add(&one->tolerations, &is->toleration);
}

void consumers_remove(struct consumers **table, const char *claim)
{
    struct consumers *consumers = (struct consumers *)consumers_find(*table, claim);

    if (consumers)
        drop(table, consumers);
}

void consumers_set(struct consumers **table, const char *claim,
                   const struct devicemgr_claim_consumers *is)
{
    static const struct devicemgr_claim_consumers NONE;
    struct consumers *consumers;

    consumers_remove(table, claim);
    if (!is)
        is = &NONE;
    consumers = mem_alloc(1, sizeof *consumers);
    consumers->claim = mem_strdup(claim);
    consumers->extended = is->extended;
    for (size_t i = 0; i < is->reserved_for_len && i < CLAIM_CONSUMERS_MAX; i++)
        ids_add(&consumers->reserved_for, is->reserved_for[i]);
    for (size_t i = 0; i < is->tolerations_len; i++)
        add_toleration(consumers, &is->tolerations[i]);
    HASH_ADD_KEYPTR(hh, *table, consumers->claim, strlen(consumers->claim), consumers);
}

const struct tolerations *consumers_tolerations(const struct consumers *consumers,
                                                const char *driver, const char *pool,
                                                const char *device)
{
    static const struct tolerations NONE;
    const struct consumers_device *one =
        consumers ? find_device(consumers, driver, pool, device) : NULL;

    return one ? &one->tolerations : &NONE;
}
