#include "shim/bridge/roster.h"

#include <stdlib.h>
#include <string.h>

#include "shim/boot_clock.h"
#include "shim/bridge/limits.h"
#include "shim/log.h"
#include "shim/must.h"

/* ---- rows ---- */

static int order(const void *a, const void *b)
{
    return strcmp(((const struct roster_row *)a)->resource,
                  ((const struct roster_row *)b)->resource);
}

/* The first `sorted` rows are in order, those behind them are new ones. */
static struct roster_row *row_find(const struct roster *roster, size_t sorted, const char *resource)
{
    const struct roster_row key = {.resource = (char *)resource};
    struct roster_row *row = sorted ? bsearch(&key, roster->rows, sorted, sizeof key, order) : NULL;

    for (size_t i = sorted; i < roster->len && !row; i++) {
        if (strcmp(roster->rows[i].resource, resource) == 0)
            row = &roster->rows[i];
    }
    return row;
}

static void rows_sort(struct roster *roster)
{
    if (roster->len > 1)
        qsort(roster->rows, roster->len, sizeof *roster->rows, order);
}

static struct roster_row *row_add(struct roster *roster, const char *resource)
{
    struct roster_row *row;

    roster->rows = must(realloc(roster->rows, (roster->len + 1) * sizeof *roster->rows));
    row = &roster->rows[roster->len++];
    *row = (struct roster_row){.resource = must(strdup(resource)),
                               .endpoint = endpoint_new(roster->world, resource)};
    return row;
}

void roster_each(const struct roster *roster, void (*each)(struct endpoint *endpoint))
{
    for (size_t i = 0; i < roster->len; i++) {
        if (roster->rows[i].endpoint)
            each(roster->rows[i].endpoint);
    }
}

static void row_fini(struct roster_row *row)
{
    endpoint_free(row->endpoint);
    free(row->resource);
}

/* ---- the mask ---- */

static bool row_masked(const struct roster *roster, const struct roster_row *row, uint64_t now_ms)
{
    return (roster->lost_ms && now_ms - roster->lost_ms >= roster->mask_ms) ||
           (row->mask_end_ms && now_ms >= row->mask_end_ms);
}

/* Shortens the wait to when the mask that began at `begin_ms` (0: none did) runs out. */
static void wait_for_mask(const struct roster *roster, uint64_t begin_ms, uint64_t now_ms,
                          uint64_t *wait_ms)
{
    uint64_t age_ms = now_ms - begin_ms;

    if (begin_ms && age_ms < roster->mask_ms && roster->mask_ms - age_ms < *wait_ms)
        *wait_ms = roster->mask_ms - age_ms;
}

/* How long until some mask runs out. */
static uint64_t mask_wait_ms(const struct roster *roster, uint64_t now_ms)
{
    uint64_t wait_ms = MASK_LOOK_MS;

    wait_for_mask(roster, roster->lost_ms, now_ms, &wait_ms);
    for (size_t i = 0; i < roster->len; i++) {
        uint64_t end_ms = roster->rows[i].mask_end_ms;

        if (end_ms > now_ms && end_ms - now_ms < wait_ms)
            wait_ms = end_ms - now_ms;
        wait_for_mask(roster, roster->rows[i].unknown_ms, now_ms, &wait_ms);
    }
    return wait_ms;
}

/* Ends those that are neither named nor shown for a while yet. */
static void remove_unnamed(struct roster *roster, uint64_t now_ms)
{
    size_t kept = 0;
    bool gone = false;

    for (size_t i = 0; i < roster->len; i++) {
        struct roster_row *row = &roster->rows[i];

        if (row->named || (row->unknown_ms && now_ms - row->unknown_ms < roster->mask_ms)) {
            roster->rows[kept++] = *row;
        } else {
            log_info("%s: withdrawn", row->resource);
            row_fini(row);
            gone = true;
        }
    }
    roster->len = kept;
    if (gone)
        roster->changed(roster->user);
}

static void update_masks(struct roster *roster);

static void on_mask_timer(uv_timer_t *timer)
{
    update_masks(timer->data);
}

static void update_masks(struct roster *roster)
{
    uint64_t now_ms = boot_now_ms();

    remove_unnamed(roster, now_ms);
    for (size_t i = 0; i < roster->len; i++) {
        if (roster->rows[i].endpoint)
            endpoint_set_masked(roster->rows[i].endpoint,
                                row_masked(roster, &roster->rows[i], now_ms));
    }
    uv_timer_start(&roster->mask_timer, on_mask_timer, mask_wait_ms(roster, now_ms), 0);
}

/* ---- what is shown ---- */

/* As endpoint_update(). */
static int apply_resource(struct roster *roster, size_t sorted, const Bridge__V1__Resource *message,
                          bool first)
{
    struct roster_row *row = row_find(roster, sorted, message->name);
    bool lost = row && !first && message->lost != row->lost;
    bool ends = row && message->mask_end_ms != row->mask_end_ms;
    int result;

    if (!row && strlen(message->name) > FEED_NAME_BYTES_MAX) {
        log_debug("feed: a resource's name of %zu bytes; not shown", strlen(message->name));
        return 0;
    }
    if (!row)
        row = row_add(roster, message->name);
    row->named = true;
    row->unknown_ms = 0;
    row->mask_end_ms = message->mask_end_ms;
    row->lost = message->lost;
    if (!row->endpoint)
        return 0;
    result = endpoint_update(row->endpoint, message, row_masked(roster, row, boot_now_ms()));
    if (result < 0)
        log_warning("%s: its list: %s", row->resource, strerror(-result));
    if (lost)
        endpoint_register_anew(row->endpoint);
    return result == 0 ? ends : result;
}

static void row_set_unknown(struct roster_row *row)
{
    if (row->unknown_ms)
        return;
    row->unknown_ms = boot_now_ms();
    log_info("%s: the daemon does not know it (yet)", row->resource);
}

int roster_take(struct roster *roster, const Bridge__V1__WatchResponse *message, bool first)
{
    size_t known = roster->len, len = message->n_resources;
    int all = 0;

    if (len > BRIDGE_RESOURCES_MAX) {
        log_warning("feed: %zu resources, only the first %d are shown", len, BRIDGE_RESOURCES_MAX);
        len = BRIDGE_RESOURCES_MAX;
    }
    roster->mask_ms = message->mask_ms;
    for (size_t i = 0; i < known; i++)
        roster->rows[i].named = false;
    for (size_t i = 0; i < len; i++) {
        int one = apply_resource(roster, known, message->resources[i], first);

        if (one < 0 || all == 0)
            all = one;
    }
    for (size_t i = 0; i < known && first; i++) {
        if (!roster->rows[i].named)
            row_set_unknown(&roster->rows[i]);
    }
    remove_unnamed(roster, boot_now_ms());
    rows_sort(roster);
    update_masks(roster);
    return all;
}

void roster_feed_lost(struct roster *roster, uint64_t since_ms)
{
    roster->lost_ms = since_ms;
    roster_each(roster, endpoint_forget_version);
    update_masks(roster);
}

void roster_feed_found(struct roster *roster)
{
    roster->lost_ms = 0;
}

/* ---- life ---- */

void roster_init(struct roster *roster, const struct endpoint_world *world,
                 void (*changed)(void *user), void *user)
{
    *roster = (struct roster){.world = world, .changed = changed, .user = user};
    uv_timer_init(world->loop, &roster->mask_timer);
    roster->mask_timer.data = roster;
}

void roster_fini(struct roster *roster, uv_close_cb closed)
{
    for (size_t i = 0; i < roster->len; i++)
        row_fini(&roster->rows[i]);
    free(roster->rows);
    roster->rows = NULL;
    roster->len = 0;
    roster->mask_timer.data = roster->user;
    uv_close((uv_handle_t *)&roster->mask_timer, closed);
}
