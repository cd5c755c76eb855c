#include "shim/core/restore.h"

#include <stdio.h>
#include <string.h>

#include "shim/boot_clock.h"
#include "shim/deaths.h"
#include "shim/log.h"
#include "shim/pause.h"

/* Before an unreadable checkpoint is tried again. */
#define AGAIN_MS_MIN 250
#define AGAIN_MS_MAX 10000

static void tell_delayed(struct restore *restore)
{
    if (!restore->delayed)
        restore->ops->delayed(restore->user);
    restore->delayed = true;
}

static void tell_given_up(struct restore *restore)
{
    tell_delayed(restore);
    if (!restore->given_up)
        restore->ops->given_up(restore->user);
    restore->given_up = true;
}

static void begin_reading(struct restore *restore)
{
    restore->reading = true;
    store_worker_read(restore->worker);
}

/* The time for the first attempt is over, or for the next one has come. */
static void on_timer(uv_timer_t *timer)
{
    struct restore *restore = timer->data;

    if (restore->reading)
        tell_given_up(restore);
    else
        begin_reading(restore);
}

static void give_to_core(struct restore *restore, const struct store_worker_rows *rows)
{
    uint64_t before = deaths_enter(DEATHS_CHECKPOINT);

    for (size_t i = 0; i < rows->len; i++) {
        const struct devicemgr_record *record = &rows->v[i];

        if (devicemgr_restore(restore->core, boot_now_ms(), record) < 0)
            log_error("checkpoint: a record (%s %s %s) makes no sense; it is left out",
                      record->key[0], record->key[1], record->key[2]);
    }
    restore->lost = rows->lost || rows->made;
    if (rows->lost)
        devicemgr_rows_lost(restore->core);
    restore->restored_ms = boot_now_ms();
    devicemgr_restored(restore->core, restore->restored_ms);
    deaths_enter(before);
}

void restore_sized(struct restore *restore, uint64_t bytes)
{
    if (bytes >= RESTORE_LARGE_BYTES)
        tell_delayed(restore);
}

void restore_rows(struct restore *restore, const struct store_worker_rows *rows)
{
    restore->reading = false;
    uv_timer_stop(&restore->timer);
    if (*restore->unread)
        log_info("the checkpoint can be read now");
    if (rows->rebooted)
        log_info("first start after a reboot");
    give_to_core(restore, rows);
    restore->ops->restored(restore->user);
}

void restore_unreadable(struct restore *restore, const char *error)
{
    restore->reading = false;
    if (strcmp(restore->unread, error) != 0)
        log_error("%s; containers with devices are refused until it can be read", error);
    snprintf(restore->unread, sizeof restore->unread, "%s", error);
    devicemgr_rows_unread(restore->core, error);
    restore->pause_ms = pause_longer(restore->pause_ms, AGAIN_MS_MIN, AGAIN_MS_MAX);
    uv_timer_start(&restore->timer, on_timer, restore->pause_ms, 0);
    tell_given_up(restore);
}

void restore_start(struct restore *restore, uv_loop_t *loop, struct devicemgr *core,
                   struct store_worker *worker, const struct restore_ops *ops, void *user)
{
    *restore = (struct restore){.core = core, .worker = worker, .ops = ops, .user = user};
    devicemgr_rows_unread(core, "the checkpoint is being read");
    uv_timer_init(loop, &restore->timer);
    restore->timer.data = restore;
    begin_reading(restore);
    uv_timer_start(&restore->timer, on_timer, RESTORE_READ_MS, 0);
}

static void on_closed(uv_handle_t *handle)
{
    struct restore *restore = handle->data;

    restore->done(restore->user);
}

void restore_stop(struct restore *restore, void (*done)(void *user), void *user)
{
    restore->done = done;
    restore->user = user;
    uv_close((uv_handle_t *)&restore->timer, on_closed);
}
