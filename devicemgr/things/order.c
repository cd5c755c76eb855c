#include "devicemgr/things/order.h"

#include <assert.h>
#include <string.h>

#include "cri-proto/utf8.h"
#include "devicemgr/things/enum.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

static const char *const KINDS[ORDER_KINDS] = {
    [ORDER_CORDON] = "cordon",
    [ORDER_WITHDRAWAL] = "withdrawal",
    [ORDER_GRACE] = "grace",
    [ORDER_TAINT] = "taint",
};

const char *order_kind_name(enum order_kind kind)
{
    return KINDS[kind];
}

bool order_kind_find(const char *name, enum order_kind *out)
{
    return ENUM_FIND(KINDS, name, out);
}

static void words_copy(struct order_words *to, const struct order_words *from)
{
    *to = *from;
    to->reason = mem_strdup(from->reason);
    to->value = from->value ? mem_strdup(from->value) : NULL;
}

static void words_fini(struct order_words *words)
{
    free(words->reason);
    free(words->value);
}

const char *order_reason_judge(const char *reason)
{
    if (strlen(reason) > ORDER_REASON_BYTES_MAX)
        return "the reason is too long: 256 bytes at most";
    if (!utf8_is_text(reason))
        return "the reason is no UTF-8";
    return NULL;
}

/* ---- taints ---- */

char *order_taint_id(const char *key, enum taint_effect effect, const char *device)
{
    const char *name = taint_effect_name(effect);
    char *id = mem_alloc(strlen(key) + strlen(name) + strlen(device) + 3, 1);

    strcpy(stpcpy(stpcpy(stpcpy(stpcpy(id, key), ":"), name), " "), device);
    return id;
}

/* A key has no blank, and an effect none: the first one ends them. */
bool order_taint_parts(const char *id, struct taint_said *out, const char **device)
{
    const char *blank = strchr(id, ' ');
    char head[KUBE_QUALIFIED_BYTES_MAX + sizeof ":NoSchedule"];

    if (!blank || blank[1] == '\0' || (size_t)(blank - id) >= sizeof head)
        return false;
    memcpy(head, id, (size_t)(blank - id));
    head[blank - id] = '\0';
    *device = blank + 1;
    return !taint_said_read(out, head) && !out->any_effect && !strchr(head, '=');
}

uint64_t order_end_ms(const struct order *order)
{
    return order->words.for_ms ? later_by(order->words.set_ms, order->words.for_ms) : UINT64_MAX;
}

static void read_taint(struct order *order)
{
    struct taint_said said;
    bool is = order_taint_parts(order->id, &said, &order->device);

    assert(is);
    (void)is;
    order->taint_key = mem_strdup(said.key);
    order->effect = said.effect;
}

static void note_taint(struct orders *table, const struct order *order, bool added)
{
    const char *parts[] = {order->resource, order->device};

    if (added)
        owners_add(&table->tainted, parts, 2, order);
    else
        owners_remove(&table->tainted, parts, 2, order);
    if (order->effect == TAINT_NO_EXECUTE)
        table->no_execute += added ? 1 : (size_t)-1;
}

const struct owners *orders_taints(const struct orders *table, const char *resource,
                                   const char *device)
{
    const char *parts[] = {resource, device};

    return table->tainted ? owners_find(table->tainted, parts, 2) : NULL;
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
    case ORDER_TAINT:
        of->taints += added ? 1 : (size_t)-1;
        note_taint(table, order, added);
        break;
    case ORDER_KINDS:
        break;
    }
    if (of->cordons > 0 || of->taints > 0 || of->withdrawal || of->grace)
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
    if (kind == ORDER_TAINT)
        read_taint(order);
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
        words_fini(order->before);
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
        words_fini(&order->words);
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
    words_fini(&order->words);
    free(order->taint_key);
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
