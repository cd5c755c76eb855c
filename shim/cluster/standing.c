#include "shim/cluster/standing.h"

#include <stdlib.h>
#include <string.h>

#include "shim/must.h"

static void order_free(struct standing_order *order)
{
    order->standing->version++;
    HASH_DEL(order->standing->by_name, order);
    free(order->name);
    free(order);
}

void standing_init(struct standing *standing, struct cluster_orders *orders,
                   void (*cancel)(void *cluster, uint64_t order), void *cluster,
                   void (*done)(void *user, const char *name), void *user)
{
    *standing = (struct standing){
        .orders = orders, .cancel = cancel, .cluster = cluster, .done = done, .user = user};
}

void standing_fini(struct standing *standing)
{
    while (standing->by_name)
        order_free(standing->by_name);
}

void standing_look(struct standing *standing)
{
    for (struct standing_order *order = standing->by_name; order; order = order->hh.next)
        order->wanted = false;
}

struct standing_order *standing_find(struct standing *standing, const char *name)
{
    struct standing_order *order;

    HASH_FIND_STR(standing->by_name, name, order);
    return order;
}

struct standing_order *standing_want(struct standing *standing, const char *name)
{
    struct standing_order *order = standing_find(standing, name);

    if (!order) {
        standing->version++;
        order = must(calloc(1, sizeof *order));
        order->standing = standing;
        order->name = must(strdup(name));
        HASH_ADD_KEYPTR(hh, standing->by_name, order->name, strlen(order->name), order);
    }
    order->wanted = true;
    return order;
}

/* It is wanted for ever: answered is done. */
static void on_done(void *user, const Agent__V1__AnswerRequest *answer)
{
    struct standing_order *order = user;
    struct standing *standing = order->standing;
    char *name = order->name;

    (void)answer;
    HASH_DEL(standing->by_name, order); /* which still looks at its name */
    order->name = NULL;
    free(order);
    standing->version++;
    standing->done(standing->user, name);
    free(name);
}

void standing_give(struct standing_order *order, const Agent__V1__Order *what)
{
    if (order->order == 0)
        order->order = cluster_orders_add(order->standing->orders, what, true, on_done, order);
}

void standing_withhold(struct standing_order *order)
{
    const struct standing *standing = order->standing;

    if (order->order)
        standing->cancel(standing->cluster, order->order);
    order->order = 0;
}

void standing_looked(struct standing *standing,
                     void (*taken_back)(void *user, const struct standing_order *order))
{
    struct standing_order *order = standing->by_name, *next;

    for (; order; order = next) {
        next = order->hh.next;
        if (order->wanted)
            continue;
        if (taken_back)
            taken_back(standing->user, order);
        if (order->order)
            standing->cancel(standing->cluster, order->order);
        order_free(order);
    }
}
