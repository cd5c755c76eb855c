/*
 * What an operator sets, and what is set.
 */
#include "devicemgr/operator.h"

#include <stdlib.h>

#include "devicemgr/turn/turn.h"

static void steer(struct devicemgr *mgr, uint64_t now_ms, const struct steer *said)
{
    state_at(&mgr->state, now_ms);
    steers_begin(&mgr->steers, said);
}

void devicemgr_cordon(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, const char *resource,
                      const char *const *ids, size_t ids_len, const char *reason, uint64_t at_s)
{
    const struct steer said = {.number = number,
                               .what = STEER_SET,
                               .kind = ORDER_CORDON,
                               .resource = (char *)resource,
                               .ids = {(char **)ids, ids_len},
                               .words = {.reason = (char *)reason, .at_s = at_s}};

    steer(mgr, now_ms, &said);
}

void devicemgr_uncordon(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                        const char *resource, const char *const *ids, size_t ids_len)
{
    const struct steer said = {.number = number,
                               .what = STEER_TAKE_BACK,
                               .kind = ORDER_CORDON,
                               .resource = (char *)resource,
                               .ids = {(char **)ids, ids_len},
                               .words = {.reason = (char *)""}};

    steer(mgr, now_ms, &said);
}

void devicemgr_withdraw(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                        const char *resource, const char *reason, uint64_t at_s)
{
    const struct steer said = {.number = number,
                               .what = STEER_SET,
                               .kind = ORDER_WITHDRAWAL,
                               .resource = (char *)resource,
                               .words = {.reason = (char *)reason, .at_s = at_s}};

    steer(mgr, now_ms, &said);
}

void devicemgr_withdraw_undo(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                             const char *resource)
{
    const struct steer said = {.number = number,
                               .what = STEER_TAKE_BACK,
                               .kind = ORDER_WITHDRAWAL,
                               .resource = (char *)resource,
                               .words = {.reason = (char *)""}};

    steer(mgr, now_ms, &said);
}

void devicemgr_grace_extend(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                            const char *resource, uint64_t more_ms, uint64_t at_s)
{
    const struct steer said = {.number = number,
                               .what = STEER_LENGTHEN,
                               .kind = ORDER_GRACE,
                               .resource = (char *)resource,
                               .words = {.reason = (char *)"", .at_s = at_s, .more_ms = more_ms}};

    steer(mgr, now_ms, &said);
}

void devicemgr_grace_end(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                         const char *resource, uint64_t at_s)
{
    const struct steer said = {.number = number,
                               .what = STEER_END,
                               .kind = ORDER_GRACE,
                               .resource = (char *)resource,
                               .words = {.reason = (char *)"", .at_s = at_s, .over = true}};

    steer(mgr, now_ms, &said);
}

void devicemgr_orders(const struct devicemgr *mgr, const char *resource,
                      void (*each)(void *user, const struct devicemgr_order *order), void *user)
{
    for (int kind = 0; kind < ORDER_KINDS; kind++) {
        size_t len;
        const struct order **orders =
            orders_sorted(&mgr->state.orders, (enum order_kind)kind, resource, &len);

        for (size_t i = 0; i < len; i++) {
            const struct devicemgr_order order = {.kind = (enum devicemgr_order_kind)kind,
                                                  .resource = orders[i]->resource,
                                                  .id = orders[i]->id,
                                                  .reason = orders[i]->words.reason,
                                                  .at_s = orders[i]->words.at_s,
                                                  .more_ms = orders[i]->words.more_ms,
                                                  .over = orders[i]->words.over};

            each(user, &order);
        }
        free(orders);
    }
}
