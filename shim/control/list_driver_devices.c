/*
 * The list of DRA drivers' devices, as messages: those that a claim was given, as the device
 * manager has it, and those that a driver tells the health of.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"
#include "shim/must.h"

#define KEY_PARTS 3

/* A device, once for each claim that was given it, and once if its health is told; borrowed from
 * those who say so. */
struct mention {
    const char *key[KEY_PARTS];                                         /* driver, pool, name */
    const char *claim_namespace, *claim_name, *claim_uid, *claim_state; /* NULL: no claim */
};

struct gathering {
    const char *driver; /* NULL: any */
    struct mention *v;
    size_t len;
};

static void mention(struct gathering *gathering, struct mention one)
{
    if (gathering->driver && strcmp(gathering->driver, one.key[0]) != 0)
        return;
    if ((gathering->len & (gathering->len + 1)) == 0) /* at each power of two */
        gathering->v = must(realloc(gathering->v, (gathering->len + 1) * 2 * sizeof *gathering->v));
    gathering->v[gathering->len++] = one;
}

static bool on_claim(void *user, const struct devicemgr_claim_row *claim)
{
    for (size_t i = 0; i < claim->devices_len; i++)
        mention(user, (struct mention){
                          .key = {claim->driver, claim->devices[i].pool, claim->devices[i].device},
                          .claim_namespace = claim->pod_namespace,
                          .claim_name = claim->name,
                          .claim_uid = claim->uid,
                          .claim_state = claim->state});
    return true;
}

static int key_order(const char *const *a, const char *const *b)
{
    int order = 0;

    for (size_t i = 0; order == 0 && i < KEY_PARTS; i++)
        order = strverscmp(a[i], b[i]);
    return order;
}

static int by_key(const void *a, const void *b)
{
    const struct mention *x = a, *y = b;
    int order = key_order(x->key, y->key);

    if (order == 0)
        order = strcmp(x->claim_uid ? x->claim_uid : "", y->claim_uid ? y->claim_uid : "");
    return order;
}

static void gather(struct gathering *gathering, const struct list_from *from,
                   const struct devicemgr_which *which)
{
    const struct devicemgr_which all = {.driver = which->driver};
    const struct health_word *word = from->health ? health_words_after(from->health, 0) : NULL;

    gathering->driver = which->driver;
    devicemgr_claim_rows(from->core, boot_now_ms(), &all, on_claim, gathering);
    for (; word; word = health_word_next(word))
        mention(gathering, (struct mention){.key = {word->driver, word->pool, word->device}});
    if (gathering->len > 1)
        qsort(gathering->v, gathering->len, sizeof *gathering->v, by_key);
}

/* ---- rows ---- */

static Control__V1__ClaimName *claim_of(struct list *list, const struct mention *is)
{
    Control__V1__ClaimName *claim = list_alloc(list, 1, sizeof *claim);

    control__v1__claim_name__init(claim);
    claim->namespace_ = list_text(list, is->claim_namespace);
    claim->name = list_text(list, is->claim_name);
    claim->uid = list_text(list, is->claim_uid);
    claim->state = list_text(list, is->claim_state);
    list->bytes += CONTROL_ROW_BYTES;
    return claim;
}

static void add_row(struct list *list, const struct list_from *from,
                    Control__V1__DriverDevicesResponse *response, const struct mention *mentions,
                    size_t len)
{
    const struct mention *first = &mentions[0];
    Control__V1__DriverDevice *row = list_alloc(list, 1, sizeof *row);

    control__v1__driver_device__init(row);
    row->driver = list_text(list, first->key[0]);
    row->pool = list_text(list, first->key[1]);
    row->name = list_text(list, first->key[2]);
    row->health = list_health(list, from, first->key[0], first->key[1], first->key[2]);
    row->claims = list_alloc(list, len, sizeof *row->claims);
    for (size_t i = 0; i < len; i++) {
        if (!mentions[i].claim_uid)
            continue;
        row->claims_total++;
        if (row->n_claims < CONTROL_HOLDERS_MAX)
            row->claims[row->n_claims++] = claim_of(list, &mentions[i]);
    }
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
}

bool list_driver_devices(struct list *list, const struct list_from *from,
                         const Control__V1__ListRequest *request)
{
    Control__V1__DriverDevicesResponse *response =
        list_begin(list, request, KEY_PARTS, CONTROL_PAGE_ROWS_MAX,
                   &control__v1__driver_devices_response__descriptor);
    struct gathering gathering = {0};
    size_t next;

    if (!response)
        return false;
    gather(&gathering, from, &list->which);
    for (size_t i = 0; i < gathering.len; i = next) {
        const struct mention *first = &gathering.v[i];

        for (next = i + 1; next < gathering.len; next++) {
            if (key_order(gathering.v[next].key, first->key) != 0)
                break;
        }
        if (list->which.after && key_order(first->key, list->which.after) <= 0)
            continue;
        add_row(list, from, response, first, next - i);
        if (!list_goes_on(list, first->key, KEY_PARTS, &response->next, &response->n_next))
            break;
    }
    free(gathering.v);
    return true;
}
