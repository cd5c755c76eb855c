#include "devicemgr/things/driver.h"

#include <assert.h>
#include <string.h>

#include <utlist.h>

/* ---- the table ---- */

void drivers_fini(struct drivers *table)
{
    while (table->by_name) {
        while (table->by_name->instances)
            drivers_remove_instance(table, table->by_name->instances->number);
        drivers_remove(table, table->by_name);
    }
}

size_t drivers_len(const struct drivers *table)
{
    return HASH_COUNT(table->by_name);
}

const struct driver *drivers_find(const struct drivers *table, const char *name)
{
    const struct driver *driver;

    HASH_FIND_STR(table->by_name, name, driver);
    return driver;
}

struct driver *drivers_edit(struct drivers *table, const char *name)
{
    return (struct driver *)drivers_find(table, name);
}

const struct driver_instance *drivers_find_instance(const struct drivers *table, uint64_t number)
{
    const struct driver_instance *instance;

    HASH_FIND(hh, table->by_number, &number, sizeof number, instance);
    return instance;
}

static struct driver_instance *edit_instance(struct drivers *table, uint64_t number)
{
    struct driver_instance *instance =
        (struct driver_instance *)drivers_find_instance(table, number);

    assert(instance);
    return instance;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp((*(const struct driver *const *)a)->name,
                      (*(const struct driver *const *)b)->name);
}

const struct driver **drivers_sorted(const struct drivers *table, size_t *len)
{
    const struct driver **sorted = mem_alloc(drivers_len(table), sizeof(struct driver *));

    *len = 0;
    for (const struct driver *driver = table->by_name; driver; driver = driver->hh.next)
        sorted[(*len)++] = driver;
    if (*len > 1)
        qsort(sorted, *len, sizeof(struct driver *), by_name);
    return sorted;
}

struct driver *drivers_ensure(struct drivers *table, uint64_t now_ms, const char *name,
                              const struct ids *services)
{
    struct driver *driver = drivers_edit(table, name);

    if (!driver) {
        driver = mem_alloc(1, sizeof *driver);
        driver->name = mem_strdup(name);
        driver->why = mem_strdup("");
        driver->away_ms = now_ms;
        HASH_ADD_KEYPTR(hh, table->by_name, driver->name, strlen(driver->name), driver);
    }
    ids_fini(&driver->services);
    ids_copy(&driver->services, services->v, services->len);
    table->changes++;
    return driver;
}

void drivers_remove(struct drivers *table, struct driver *driver)
{
    assert(!driver->instances);
    while (driver->elsewhere)
        drivers_remove_instance(table, driver->elsewhere->number);
    HASH_DEL(table->by_name, driver);
    ids_fini(&driver->services);
    free(driver->name);
    free(driver->why);
    free(driver);
    table->changes++;
}

/* ---- instances ---- */

const struct driver_instance *driver_find_endpoint(const struct driver *driver,
                                                   const char *endpoint)
{
    const struct driver_instance *instance = driver->instances;

    while (instance && strcmp(instance->endpoint, endpoint) != 0)
        instance = instance->next;
    return instance;
}

void driver_set_wiped(struct driver *driver, bool wiped)
{
    driver->wiped = wiped;
}

void driver_set_moved(struct driver *driver, uint64_t now_ms)
{
    driver->moved = true;
    driver->moved_ms = now_ms;
}

static const struct driver_instance *newest_connected(const struct driver_instance *instances)
{
    const struct driver_instance *instance, *newest = NULL;

    DL_FOREACH(instances, instance) {
        if (instance->connected)
            newest = instance;
    }
    return newest;
}

const struct driver_instance *driver_usable(const struct driver *driver)
{
    return newest_connected(driver->instances);
}

const struct driver_instance *driver_callable(const struct driver *driver)
{
    const struct driver_instance *usable = driver_usable(driver);

    return usable || !driver->moved ? usable : newest_connected(driver->elsewhere);
}

static struct driver_instance *add(struct drivers *table, struct driver *driver, uint64_t now_ms,
                                   uint64_t number, const char *endpoint,
                                   const struct ids *services)
{
    struct driver_instance *instance = mem_alloc(1, sizeof *instance);

    assert(!drivers_find_instance(table, number));
    instance->number = number;
    instance->endpoint = mem_strdup(endpoint);
    ids_copy(&instance->services, services->v, services->len);
    instance->since_ms = now_ms;
    instance->driver = driver;
    HASH_ADD(hh, table->by_number, number, sizeof instance->number, instance);
    table->changes++;
    return instance;
}

void drivers_add_instance(struct drivers *table, struct driver *driver, uint64_t now_ms,
                          uint64_t number, const char *endpoint, const struct ids *services)
{
    struct driver_instance *instance = add(table, driver, now_ms, number, endpoint, services);

    DL_APPEND(driver->instances, instance);
}

void drivers_add_elsewhere(struct drivers *table, struct driver *driver, uint64_t now_ms,
                           uint64_t number, const char *endpoint, const struct ids *services)
{
    struct driver_instance *instance = add(table, driver, now_ms, number, endpoint, services);

    instance->elsewhere = driver->was_elsewhere = true;
    DL_APPEND(driver->elsewhere, instance);
}

void drivers_set_connected(struct drivers *table, uint64_t number, uint64_t now_ms)
{
    struct driver_instance *instance = edit_instance(table, number);
    struct driver *driver = instance->driver;

    if (!instance->elsewhere && !driver_usable(driver))
        driver->connected_ms = now_ms;
    instance->connected = true;
    instance->since_ms = now_ms;
    table->changes++;
    if (!instance->elsewhere)
        driver->wiped = driver->moved = driver->restored = false;
}

void drivers_set_lost(struct drivers *table, uint64_t number, uint64_t now_ms, const char *why)
{
    struct driver_instance *instance = edit_instance(table, number);
    struct driver *driver = instance->driver;
    bool was_there = driver_usable(driver) != NULL;

    instance->connected = false;
    instance->since_ms = now_ms;
    table->changes++;
    if (instance->elsewhere || driver_usable(driver))
        return;
    if (was_there)
        driver->away_ms = now_ms;
    drivers_set_why(table, driver, why);
}

void drivers_set_why(struct drivers *table, struct driver *driver, const char *why)
{
    free(driver->why);
    driver->why = mem_strdup(why);
    table->changes++;
}

void drivers_remove_instance(struct drivers *table, uint64_t number)
{
    struct driver_instance *instance = edit_instance(table, number);

    if (instance->elsewhere)
        DL_DELETE(instance->driver->elsewhere, instance);
    else
        DL_DELETE(instance->driver->instances, instance);
    HASH_DEL(table->by_number, instance);
    free(instance->endpoint);
    ids_fini(&instance->services);
    free(instance);
    table->changes++;
}
