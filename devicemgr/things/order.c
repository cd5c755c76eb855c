#include "devicemgr/things/order.h"

#include <assert.h>
#include <string.h>

static const char *const KINDS[ORDER_KINDS] = {
    [ORDER_CORDON] = "cordon", [ORDER_WITHDRAWAL] = "withdrawal", [ORDER_GRACE] = "grace"};

const char *order_kind_name(enum order_kind kind)
{
    return KINDS[kind];
}

bool order_kind_find(const char *name, enum order_kind *out)
{
    for (size_t i = 0; i < ORDER_KINDS; i++) {
        if (strcmp(KINDS[i], name) == 0) {
            *out = (enum order_kind)i;
            return true;
        }
    }
    return false;
}

static void words_copy(struct order_words *to, const struct order_words *from)
{
    *to = *from;
    to->reason = mem_strdup(from->reason);
}

/* ---- the table ---- */

static struct resource_orders *ensure_resource(struct orders *table, const char *resource)
{
    struct resource_orders *of;

    HASH_FIND_STR(table->by_resource, resource, of);
    if (of)
        return of;
    of = mem_alloc(1, sizeof *of);
    of->resource = mem_strdup(resource);
    HASH_ADD_KEYPTR(hh, table->by_resource, of->resource, strlen(of->resource), of);
    return of;
}

/* `added`: it has come into the table, or leaves it. */
static void note(struct orders *table, const struct order *order, bool added)
{
    struct resource_orders *of = ensure_resource(table, order->resource);

    switch (order->kind) {
    case ORDER_CORDON:
        of->cordons += added ? 1 : (size_t)-1;
        break;
    case ORDER_WITHDRAWAL:
        of->withdrawal = added ? order : NULL;
        break;
    case ORDER_GRACE:
        of->grace = added ? order : NULL;
        break;
    case ORDER_KINDS:
        break;
    }
    if (of->cordons > 0 || of->withdrawal || of->grace)
        return;
    HASH_DEL(table->by_resource, of);
    free(of->resource);
    free(of);
}

static char *key_of(enum order_kind kind, const char *resource, const char *id, size_t *bytes)
{
    const char *parts[] = {KINDS[kind], resource, id};

    return mem_key(parts, sizeof parts / sizeof *parts, bytes);
}

const struct order *orders_find(const struct orders *table, enum order_kind kind,
                                const char *resource, const char *id)
{
    const char *parts[] = {KINDS[kind], resource, id};
    const struct order *order;
    struct mem_sought sought;

    mem_seek(&sought, parts, sizeof parts / sizeof *parts);
    HASH_FIND(hh, table->by_key, sought.key, sought.key_bytes, order);
    mem_sought_drop(&sought);
    return order;
}

struct order *orders_edit(struct orders *table, enum order_kind kind, const char *resource,
                          const char *id)
{
    return (struct order *)orders_find(table, kind, resource, id);
}

size_t orders_len(const struct orders *table)
{
    return HASH_COUNT(table->by_key);
}

const struct resource_orders *orders_of(const struct orders *table, const char *resource)
{
    const struct resource_orders *of;

    HASH_FIND_STR(table->by_resource, resource, of);
    return of;
}

const struct order *orders_cordon(const struct orders *table, const char *resource, const char *id)
{
    const struct resource_orders *of = orders_of(table, resource);

    return of && of->cordons > 0 ? orders_find(table, ORDER_CORDON, resource, id) : NULL;
}

const struct order *orders_withdrawal(const struct orders *table, const char *resource)
{
    const struct resource_orders *of = orders_of(table, resource);

    return of ? of->withdrawal : NULL;
}

static int by_resource_and_id(const void *a, const void *b)
{
    const struct order *x = *(const struct order *const *)a, *y = *(const struct order *const *)b;
    int names = strcmp(x->resource, y->resource);

    return names != 0 ? names : strverscmp(x->id, y->id);
}

const struct order **orders_sorted(const struct orders *table, enum order_kind kind,
                                   const char *resource, size_t *len)
{
    const struct order **sorted = mem_alloc(orders_len(table), sizeof(struct order *));

    *len = 0;
    for (const struct order *order = table->by_key; order; order = order->hh.next) {
        if (order->kind == kind && (!resource || strcmp(resource, order->resource) == 0))
            sorted[(*len)++] = order;
    }
    if (*len > 1)
        qsort(sorted, *len, sizeof(struct order *), by_resource_and_id);
    return sorted;
}

/* ---- its states ---- */

static struct order *add(struct orders *table, enum order_kind kind, const char *resource,
                         const char *id, const struct order_words *words)
{
    struct order *order = mem_alloc(1, sizeof *order);

    order->kind = kind;
    order->resource = mem_strdup(resource);
    order->id = mem_strdup(id);
    words_copy(&order->words, words);
    order->key = key_of(kind, resource, id, &order->key_bytes);
    HASH_ADD_KEYPTR(hh, table->by_key, order->key, order->key_bytes, order);
    note(table, order, true);
    return order;
}

struct order *orders_set(struct orders *table, enum order_kind kind, const char *resource,
                         const char *id, const struct order_words *words)
{
    struct order *order = orders_edit(table, kind, resource, id);

    if (!order)
        return add(table, kind, resource, id, words);
    assert(order->state == ORDER_SET);
    order->state = ORDER_SETTING;
    order->before = mem_alloc(1, sizeof *order->before);
    *order->before = order->words;
    words_copy(&order->words, words);
    return order;
}

struct order *orders_restore(struct orders *table, enum order_kind kind, const char *resource,
                             const char *id, const struct order_words *words)
{
    struct order *order;

    assert(!orders_find(table, kind, resource, id));
    order = add(table, kind, resource, id, words);
    order->state = ORDER_SET;
    return order;
}

void order_end(struct order *order)
{
    assert(order->state == ORDER_SET);
    order->state = ORDER_ENDING;
}

void order_carry(struct order *order, uint64_t commit)
{
    if (order->state != ORDER_SET)
        order->commit = commit;
}

static void forget_before(struct order *order)
{
    if (order->before)
        free(order->before->reason);
    free(order->before);
    order->before = NULL;
}

void orders_confirm(struct orders *table, struct order *order)
{
    assert(order->state != ORDER_SET);
    order->commit = 0;
    forget_before(order);
    if (order->state == ORDER_ENDING)
        orders_remove(table, order);
    else
        order->state = ORDER_SET;
}

void orders_revert(struct orders *table, struct order *order)
{
    assert(order->state != ORDER_SET);
    if (order->state == ORDER_SETTING && !order->before) {
        orders_remove(table, order);
        return;
    }
    if (order->before) {
        free(order->words.reason);
        order->words = *order->before;
        free(order->before);
        order->before = NULL;
    }
    order->commit = 0;
    order->state = ORDER_SET;
}

void orders_remove(struct orders *table, struct order *order)
{
    HASH_DEL(table->by_key, order);
    note(table, order, false);
    forget_before(order);
    free(order->words.reason);
    free(order->resource);
    free(order->id);
    free(order->key);
    free(order);
}

void orders_fini(struct orders *table)
{
    while (table->by_key)
        orders_remove(table, table->by_key);
}
