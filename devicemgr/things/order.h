/*
 * What an operator has set, until it is taken back: a device is cordoned or tainted, a resource
 * withdrawn, a plugin's stop grace period lengthened or ended.
 *
 *            durable
 *   SETTING ────────▶ SET ──▶ ENDING ──▶ gone
 *
 * It is in force in all three: a change of it that cannot be stored has not been made, and a device
 * must not have gone to somebody meanwhile. (The end of a grace period, and the eviction of who has
 * a tainted device, wait for SET, since nobody could take them back.) A commit that fails leads
 * from SETTING and ENDING to what was before. One that is SET may be SETTING again, with other
 * words.
 */
#ifndef DEVICEMGR_THINGS_ORDER_H
#define DEVICEMGR_THINGS_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/ids.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/owners.h"
#include "devicemgr/things/taint.h"

enum order_kind {
    ORDER_CORDON,     /* of one device: nobody new gets it */
    ORDER_WITHDRAWAL, /* of a resource: nobody new gets any, and the kubelet is not offered it */
    ORDER_GRACE, /* of the period under way, until the plugin is back, or its resource removed */
    ORDER_TAINT, /* of one device; its `id` is that of order_taint_id() */
    ORDER_KINDS,
};

enum order_state {
    ORDER_SETTING,
    ORDER_SET,
    ORDER_ENDING,
};

/* What it says. */
struct order_words {
    char *reason;     /* the operator's; "" if none was given */
    uint64_t at_s;    /* when, of the caller's clock, which is not looked at here */
    uint64_t more_ms; /* of a grace period: it ends so much later */
    bool over;        /* or at once */
    char *value;      /* of a taint; this and the next two. NULL with all others */
    uint64_t for_ms;  /* it ends by itself so long after it was set; 0: it does not */
    uint64_t set_ms;  /* that is, on the core's clock */
};

/* Written by order.c alone, but for `stored` and `anew`. */
struct order {
    enum order_kind kind;
    char *resource;
    char *id;        /* of a cordon or taint; "" */
    char *taint_key; /* of a taint, with the next two */
    enum taint_effect effect;
    const char *device; /* within `id` */
    enum order_state state;
    struct order_words words;
    struct order_words *before; /* SETTING: what was set before; NULL: nothing was */
    uint64_t commit;            /* SETTING, ENDING: which carries it; 0: none yet */
    bool stored;                /* the store may have a row of it; checkpoint.c's */
    bool anew;                  /* of a row of an earlier boot: its time began with its restoring */
    char *key;
    size_t key_bytes;
    UT_hash_handle hh;
};

/* What concerns one resource. */
struct resource_orders {
    char *resource;
    size_t cordons;
    size_t taints;
    const struct order *withdrawal; /* NULL: there is none; so is the next */
    const struct order *grace;
    UT_hash_handle hh;
};

/* A zeroed struct is an empty table. */
struct orders {
    struct order *by_key;
    struct resource_orders *by_resource;
    struct owners *tainted; /* by resource and device: taints */
    size_t no_execute;      /* how many of those are NoExecute */
};

/* "cordon", "withdrawal", "grace", "taint"; static. */
const char *order_kind_name(enum order_kind kind);
/* False: there is none of that name. */
bool order_kind_find(const char *name, enum order_kind *out);

/* What is wrong with an operator's reason, to be kept; NULL: nothing is. Static. */
const char *order_reason_judge(const char *reason);

/* What identifies a taint of a resource: "KEY:EFFECT DEVICE". The caller frees it. */
char *order_taint_id(const char *key, enum taint_effect effect, const char *device);
/* The same the other way; false: it is none. */
bool order_taint_parts(const char *id, struct taint_said *out, const char **device);

void orders_fini(struct orders *table);
size_t orders_len(const struct orders *table);
/* NULL: there is none. `id` is "" but for a cordon or a taint. */
const struct order *orders_find(const struct orders *table, enum order_kind kind,
                                const char *resource, const char *id);
/* The same, to be changed. */
struct order *orders_edit(struct orders *table, enum order_kind kind, const char *resource,
                          const char *id);
/* NULL: nothing was set of it. */
const struct resource_orders *orders_of(const struct orders *table, const char *resource);
/* NULL: the device is not cordoned. Costs nothing where no device of the resource is. */
const struct order *orders_cordon(const struct orders *table, const char *resource, const char *id);
/* The device's taints: orders, who was set first first. NULL: there are none. */
const struct owners *orders_taints(const struct orders *table, const char *resource,
                                   const char *device);
/* When it ends by itself; UINT64_MAX: it does not. */
uint64_t order_end_ms(const struct order *order);
/* NULL: the resource is not withdrawn. */
const struct order *orders_withdrawal(const struct orders *table, const char *resource);
/* Those of the kind, of one resource (NULL: all), by resource, then in the natural order of ids;
 * the caller frees the array. */
const struct order **orders_sorted(const struct orders *table, enum order_kind kind,
                                   const char *resource, size_t *len);

/* Sets one, or sets it anew: SETTING; `words` are copied. It is not ENDING. */
struct order *orders_set(struct orders *table, enum order_kind kind, const char *resource,
                         const char *id, const struct order_words *words);
/* Of a row: SET. It is not there yet. */
struct order *orders_restore(struct orders *table, enum order_kind kind, const char *resource,
                             const char *id, const struct order_words *words);
/* From SET to ENDING. */
void order_end(struct order *order);
/* A commit carries its row now. */
void order_carry(struct order *order, uint64_t commit);
/* It is durable: SET, or gone. */
void orders_confirm(struct orders *table, struct order *order);
/* It could not be stored: as before, which may be gone. */
void orders_revert(struct orders *table, struct order *order);
void orders_remove(struct orders *table, struct order *order);

#endif
