#include "shim/kubelet/checkpoint_watch.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/boot_clock.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/watch.h"

struct checkpoint_watch {
    uv_loop_t *loop;
    const char *dir;
    char path[PATH_MAX];
    const struct checkpoint_watch_ops *ops;
    void *user;

    struct watch watch;
    bool unwatched; /* something cannot be watched; logged */
    uv_timer_t again_timer;
    bool due;     /* the file came or went */
    dev_t device; /* of the directory when it was last looked at; 0 and 0: not there */
    ino_t inode;
    uv_timer_t settle;
    unsigned handles; /* and a reading under way */

    uv_work_t work; /* the worker fills `found` and `error` */
    bool busy;
    bool again; /* read once more after the one under way */
    struct kubelet_file found;
    char error[KUBELET_CHECKPOINT_ERROR_BYTES_MAX];

    struct kubelet_file file;
    char complained[KUBELET_CHECKPOINT_ERROR_BYTES_MAX]; /* the error last logged */
    bool stopping;
    void (*done)(void *user);
    void *done_user;
};

/* ---- reading, in the worker ---- */

static void kubelet_file_fini(struct kubelet_file *file)
{
    kubelet_checkpoint_fini(&file->checkpoint);
    *file = (struct kubelet_file){0};
}

static void on_work(uv_work_t *work)
{
    struct checkpoint_watch *watch = work->data;
    struct kubelet_checkpoint *checkpoint = &watch->found.checkpoint;
    uint64_t began_ms = boot_now_ms();
    time_t written;

    watch->found.state =
        checkpoint_file_read(watch->path, checkpoint, &written, watch->error, sizeof watch->error);
    if (watch->found.state == KUBELET_FILE_MISSING || watch->found.state == KUBELET_FILE_READ)
        watch->error[0] = '\0';
    if (watch->found.state == KUBELET_FILE_READ)
        watch->found.read_ms = began_ms;
    for (size_t i = 0; i < checkpoint->resources_len; i++)
        ids_sort(&checkpoint->resources[i].healthy);
}

/* ---- the end ---- */

static void on_part_over(struct checkpoint_watch *watch)
{
    void (*done)(void *user) = watch->done;
    void *user = watch->done_user;

    if (--watch->handles > 0)
        return;
    kubelet_file_fini(&watch->found);
    kubelet_file_fini(&watch->file);
    free(watch);
    done(user);
}

static void on_closed(uv_handle_t *handle)
{
    on_part_over(handle->data);
}

static void on_watch_closed(void *user)
{
    on_part_over(user);
}

void checkpoint_watch_stop(struct checkpoint_watch *watch, void (*done)(void *user), void *user)
{
    watch->stopping = true;
    watch->done = done;
    watch->done_user = user;
    uv_close((uv_handle_t *)&watch->settle, on_closed);
    uv_close((uv_handle_t *)&watch->again_timer, on_closed);
    if (watch_runs(&watch->watch)) {
        watch->handles++;
        watch_close(&watch->watch, on_watch_closed, watch);
    }
}

/* ---- reading ---- */

/* Once for each kind of damage. */
static void complain(struct checkpoint_watch *watch)
{
    if (strcmp(watch->error, watch->complained) != 0 && watch->error[0])
        log_warning("%s: %s; what the kubelet's pods hold is known from it only as of before",
                    watch->path, watch->error);
    memcpy(watch->complained, watch->error, sizeof watch->complained);
}

/* One that could not be read, or makes no sense, leaves what is known: the kubelet that runs has it
 * in its memory, and writes the whole file anew with the next change. */
static void take_found(struct checkpoint_watch *watch)
{
    if (watch->found.state == KUBELET_FILE_UNREADABLE ||
        watch->found.state == KUBELET_FILE_DAMAGED) {
        watch->file.state = watch->found.state;
        watch->file.read_ms = 0;
    } else {
        kubelet_file_fini(&watch->file);
        watch->file = watch->found;
    }
    watch->found = (struct kubelet_file){0};
}

static void on_again(uv_timer_t *timer);

static void again_later(struct checkpoint_watch *watch)
{
    if (!uv_is_active((uv_handle_t *)&watch->again_timer))
        uv_timer_start(&watch->again_timer, on_again, CHECKPOINT_WATCH_AGAIN_MS, 0);
}

static void on_worked(uv_work_t *work, int status);

static void begin_reading(struct checkpoint_watch *watch)
{
    int r;

    watch->busy = true;
    watch->again = false;
    watch->handles++;
    r = uv_queue_work(watch->loop, &watch->work, on_work, on_worked);
    assert(r == 0); /* fails only without a function */
}

static void on_worked(uv_work_t *work, int status)
{
    struct checkpoint_watch *watch = work->data;

    assert(status == 0); /* nobody cancels it */
    watch->busy = false;
    if (!watch->stopping) {
        complain(watch);
        take_found(watch);
        if (watch->file.state == KUBELET_FILE_UNREADABLE) /* it may be had in a moment */
            again_later(watch);
        if (watch->again)
            begin_reading(watch);
        watch->ops->read(watch->user, &watch->file);
    }
    on_part_over(watch);
}

static bool watch_dir(struct checkpoint_watch *watch);

void checkpoint_watch_read(struct checkpoint_watch *watch)
{
    /* First: what comes between the two is seen by one of them. And nothing tells of a directory
     * that was mounted over it. */
    watch_dir(watch);
    if (watch->busy)
        watch->again = true;
    else
        begin_reading(watch);
}

bool checkpoint_watch_current(const struct checkpoint_watch *watch)
{
    return !watch->busy;
}

static void on_settled(uv_timer_t *timer)
{
    checkpoint_watch_read(timer->data);
}

/* ---- watching ---- */

static void note_watched(struct checkpoint_watch *watch, int r)
{
    if (r < 0 && !watch->unwatched)
        log_warning("%s: cannot be watched: %s; the kubelet's checkpoint is read every %d ms "
                    "instead",
                    watch->dir, strerror(-r), CHECKPOINT_WATCH_AGAIN_MS);
    else if (r == 0 && watch->unwatched)
        log_info("%s is watched now", watch->dir);
    watch->unwatched = r < 0;
    if (r < 0)
        again_later(watch);
}

/* The kubelet renames the file in: one that comes is whole. */
static void on_event(void *user, const char *name, uint32_t mask)
{
    struct checkpoint_watch *watch = user;

    (void)mask;
    watch->due = watch->due || strcmp(name, KUBELET_CHECKPOINT_FILE) == 0;
}

static void on_changed(void *user, bool overflow)
{
    struct checkpoint_watch *watch = user;
    bool due = watch_dir(watch) || watch->due || overflow;

    watch->due = false;
    /* Not pushed back by each further event: under a flood it would never come. */
    if (due && !uv_is_active((uv_handle_t *)&watch->settle))
        uv_timer_start(&watch->settle, on_settled, CHECKPOINT_WATCH_SETTLE_MS, 0);
}

static const struct watch_ops WATCH_OPS = {.event = on_event, .changed = on_changed};

/* Watches the directory and what is above it. True: it is another one than before. */
static bool watch_dir(struct checkpoint_watch *watch)
{
    struct stat st = {0};
    dev_t device = watch->device;
    ino_t inode = watch->inode;
    int r =
        watch_runs(&watch->watch) ? 0 : watch_init(&watch->watch, watch->loop, &WATCH_OPS, watch);

    r = r < 0 ? r : watch_above(&watch->watch, watch->dir);
    note_watched(watch, r < 0 ? r : watch_directory(&watch->watch, watch->dir));
    if (stat(watch->dir, &st) < 0)
        st = (struct stat){0};
    watch->device = st.st_dev;
    watch->inode = st.st_ino;
    return device != st.st_dev || inode != st.st_ino;
}

/* Limits are per user, and who has used them up may be gone by now; a file that could not be read
 * may be readable. What came meanwhile is read in any case. */
static void on_again(uv_timer_t *timer)
{
    checkpoint_watch_read(timer->data);
}

struct checkpoint_watch *checkpoint_watch_start(uv_loop_t *loop, const char *dir,
                                                const struct checkpoint_watch_ops *ops, void *user)
{
    struct checkpoint_watch *watch = must(calloc(1, sizeof *watch));

    watch->loop = loop;
    watch->dir = dir;
    watch->ops = ops;
    watch->user = user;
    watch->work.data = watch;
    /* A path that is too long names no file. */
    snprintf(watch->path, sizeof watch->path, "%s/" KUBELET_CHECKPOINT_FILE, dir);
    uv_timer_init(loop, &watch->settle);
    watch->settle.data = watch;
    uv_timer_init(loop, &watch->again_timer);
    watch->again_timer.data = watch;
    watch->handles = 2;
    watch->watch.fd = -1;
    checkpoint_watch_read(watch);
    return watch;
}
