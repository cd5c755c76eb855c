#include "shim/events/events.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/boot_clock.h"
#include "shim/events/events_file.h"
#include "shim/events/told.h"
#include "shim/file.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/path.h"

#define TROUBLE_BYTES_MAX 256

/* One that was said before the file was read. */
struct early {
    struct event *event;
    bool again;
    STAILQ_ENTRY(early) entry;
};

struct events {
    uv_loop_t *loop;
    char *path, *told_path;
    struct told told;
    char boot_id[BOOT_ID_BYTES_MAX];
    struct ring ring;
    bool loaded;
    STAILQ_HEAD(, early) early; /* until then */
    size_t early_len;
    LIST_HEAD(, events_watch) watches;
    uv_timer_t timer;  /* of the next batch, or the next try, also to read */
    uint64_t shown_id; /* written, or not to be */

    uint8_t *unwritten; /* records that the file has not */
    size_t unwritten_len;
    size_t file_bytes; /* how long the file is */
    bool rewrite;      /* it is not what it should be, nor will be by what is under way */
    char trouble[TROUBLE_BYTES_MAX];
    uint64_t trouble_ms;

    /* What is under way: the worker's until it is done. */
    uv_work_t work;
    bool busy, replaces;
    uint8_t *bytes;
    size_t bytes_len;
    uint64_t bytes_id;   /* all up to it are in them, or in the file */
    uint64_t written_id; /* the last of these */
    int err;

    bool stopping;
    void (*done)(void *user);
    void *done_user;
};

void events_now(const struct events *events, struct event_moment *now)
{
    struct timespec wall;

    clock_gettime(CLOCK_REALTIME, &wall);
    *now = (struct event_moment){.boot_ms = boot_now_ms()};
    now->wall_ms = (uint64_t)wall.tv_sec * 1000 + (uint64_t)wall.tv_nsec / 1000000;
    memcpy(now->boot_id, events->boot_id, sizeof now->boot_id);
}

/* ---- who watches ---- */

static void show(struct events *events, uint64_t id)
{
    struct events_watch *watch, *next;

    if (events->trouble[0])
        told_reserve(&events->told, id);
    events->shown_id = id;
    for (watch = LIST_FIRST(&events->watches); watch; watch = next) {
        next = LIST_NEXT(watch, entry);
        watch->more(watch->user);
    }
}

const struct event *events_after(const struct events *events, uint64_t id)
{
    const struct event *event = ring_after(&events->ring, id);

    return event && event->id <= events->shown_id ? event : NULL;
}

const struct event *events_next(const struct events *events, const struct event *event)
{
    event = TAILQ_NEXT(event, entry);
    return event && event->id <= events->shown_id ? event : NULL;
}

bool events_loaded(const struct events *events)
{
    return events->loaded;
}

uint64_t events_last(const struct events *events)
{
    return events->shown_id;
}

uint64_t events_gone(const struct events *events)
{
    return events->ring.gone_id;
}

void events_watch(struct events *events, struct events_watch *watch)
{
    LIST_INSERT_HEAD(&events->watches, watch, entry);
}

void events_unwatch(struct events_watch *watch)
{
    LIST_REMOVE(watch, entry);
}

const char *events_trouble(const struct events *events, uint64_t *since_ms)
{
    *since_ms = events->trouble_ms;
    return events->trouble[0] ? events->trouble : NULL;
}

/* ---- writing ---- */

static void on_timer(uv_timer_t *timer);

static void set_timer(struct events *events, uint64_t ms)
{
    if (!uv_is_active((uv_handle_t *)&events->timer))
        uv_timer_start(&events->timer, on_timer, ms, 0);
}

/* Once, until it is over. */
static void note_trouble(struct events *events, int err, const char *what)
{
    if (events->trouble[0])
        return;
    events->trouble_ms = boot_now_ms();
    snprintf(events->trouble, sizeof events->trouble, "%s: %s; %s", events->path, strerror(-err),
             what);
    log_write_about(LOG_LEVEL_WARNING, &(struct log_about){.kind = LOG_KIND_EVENTS_UNKEPT}, "%s",
                    events->trouble);
}

static void note_failure(struct events *events, int err)
{
    note_trouble(events, err, "events are lost with the process");
    events->rewrite = true;
}

static void note_kept(struct events *events)
{
    if (events->trouble[0])
        log_write_about(LOG_LEVEL_INFO, &(struct log_about){.kind = LOG_KIND_EVENTS_KEPT},
                        "%s: events are kept again", events->path);
    events->trouble[0] = '\0';
}

static void note_success(struct events *events)
{
    note_kept(events);
    if (events->written_id >= events->shown_id)
        told_forget(&events->told);
}

static void on_write(uv_work_t *work)
{
    struct events *events = work->data;

    events->err = events->replaces ? file_replace(events->path, events->bytes, events->bytes_len)
                                   : events_file_append(events->path, events->file_bytes,
                                                        events->bytes, events->bytes_len);
}

static bool is_to_be_written(const struct events *events)
{
    return events->rewrite || events->unwritten_len > 0;
}

static void finish(struct events *events);
static void write_next(struct events *events);

static void on_written(uv_work_t *work, int status)
{
    struct events *events = work->data;
    bool stale = events->err == -ESTALE;

    assert(status == 0); /* nobody cancels it */
    events->busy = false;
    free(events->bytes);
    if (events->err == 0) {
        events->file_bytes = (events->replaces ? 0 : events->file_bytes) + events->bytes_len;
        note_success(events);
    } else if (stale) {
        events->rewrite = true; /* somebody has touched it */
    } else {
        note_failure(events, events->err);
    }
    show(events, events->trouble[0] ? events->ring.last_id : events->bytes_id);
    if (stale)
        write_next(events);
    else if (events->stopping)
        finish(events);
    else if (events->trouble[0])
        set_timer(events, EVENTS_RETRY_MS);
    else if (is_to_be_written(events))
        set_timer(events, EVENTS_BATCH_MS);
}

static bool is_long(const struct events *events)
{
    return events->file_bytes + events->unwritten_len >
           2 * events->ring.bytes + EVENTS_FILE_SLACK_BYTES;
}

static void forget_unwritten(struct events *events)
{
    free(events->unwritten);
    events->unwritten = NULL;
    events->unwritten_len = 0;
}

static void take_all(struct events *events)
{
    const struct event *event;

    events->bytes = NULL;
    events->bytes_len = 0;
    TAILQ_FOREACH(event, &events->ring.events, entry)
        event_pack(event, &events->bytes, &events->bytes_len);
    forget_unwritten(events);
}

static void write_next(struct events *events)
{
    const struct event *last;

    events->replaces = events->rewrite || is_long(events);
    events->rewrite = false;
    if (events->replaces) {
        take_all(events);
    } else {
        events->bytes = events->unwritten;
        events->bytes_len = events->unwritten_len;
        events->unwritten = NULL;
        events->unwritten_len = 0;
    }
    events->bytes_id = events->ring.last_id;
    last = TAILQ_LAST(&events->ring.events, event_list);
    events->written_id = last ? last->id : 0;
    events->busy = true;
    uv_queue_work(events->loop, &events->work, on_write, on_written);
}

static void read_file(struct events *events);

static void on_timer(uv_timer_t *timer)
{
    struct events *events = timer->data;

    if (events->busy)
        return;
    if (!events->loaded)
        read_file(events);
    else if (is_to_be_written(events))
        write_next(events);
}

/* ---- taking ---- */

static void take(struct events *events, struct event *event, bool again)
{
    struct event_moment now;
    const struct event *taken;

    events_now(events, &now);
    ring_expire(&events->ring, &now);
    taken = ring_put(&events->ring, event, again);
    if (!taken)
        return;
    if (events->trouble[0]) {   /* all that is kept is to be written, */
        events->rewrite = true; /* also if what is under way, without this one, succeeds */
        if (!events->busy)
            show(events, taken->id);
        return;
    }
    event_pack(taken, &events->unwritten, &events->unwritten_len);
    if (events->unwritten_len > EVENTS_BYTES_MAX) { /* the disk hangs */
        forget_unwritten(events);
        events->rewrite = true;
    }
    if (!events->busy)
        set_timer(events, EVENTS_BATCH_MS);
}

static void put_early(struct events *events, struct event *event, bool again)
{
    struct early *early;

    if (events->early_len == EVENTS_EARLY_MAX) {
        event_free(event);
        return;
    }
    early = must(calloc(1, sizeof *early));
    early->event = event;
    early->again = again;
    STAILQ_INSERT_TAIL(&events->early, early, entry);
    events->early_len++;
}

static void take_early(struct events *events, bool lost)
{
    struct early *early;

    while ((early = STAILQ_FIRST(&events->early))) {
        STAILQ_REMOVE_HEAD(&events->early, entry);
        if (lost)
            event_free(early->event);
        else
            take(events, early->event, early->again);
        free(early);
    }
    events->early_len = 0;
}

void events_say(struct events *events, const struct event_said *said)
{
    struct event_moment now;
    struct event *event;

    events_now(events, &now);
    event = event_new(said, &now);
    if (events->loaded)
        take(events, event, said->again);
    else
        put_early(events, event, said->again);
}

/* ---- reading ---- */

static void on_read(uv_work_t *work)
{
    struct events *events = work->data;

    events->err = events_file_read(events->path, &events->bytes, &events->bytes_len);
}

/* True: all of it was good. */
static bool restore(struct events *events)
{
    struct event_moment now;
    struct event *event;
    size_t at = 0, n;

    while ((n = event_unpack(events->bytes + at, events->bytes_len - at, &event)) > 0) {
        ring_restore(&events->ring, event);
        at += n;
    }
    events_now(events, &now);
    ring_expire(&events->ring, &now);
    events->file_bytes = events->bytes_len;
    return at == events->bytes_len;
}

static void take_read(struct events *events)
{
    if (restore(events))
        return;
    log_warning("%s: what stands behind a damaged record is left out", events->path);
    events->rewrite = true;
    set_timer(events, EVENTS_BATCH_MS);
}

/* What it says is not known, and would be lost with what is written in its place. */
static bool is_to_be_read_again(const struct events *events)
{
    return !events->stopping &&
           (events->err == -EMFILE || events->err == -ENFILE || events->err == -ENOMEM);
}

static void on_loaded(uv_work_t *work, int status)
{
    struct events *events = work->data;

    assert(status == 0); /* nobody cancels it */
    events->busy = false;
    if (is_to_be_read_again(events)) {
        note_trouble(events, events->err, "reading it again until it works");
        set_timer(events, EVENTS_RETRY_MS);
        return;
    }
    events->loaded = true;
    if (events->err) {
        events->trouble[0] = '\0'; /* it is another now */
        note_failure(events, events->err);
        set_timer(events, EVENTS_RETRY_MS);
    } else {
        note_kept(events);
        take_read(events);
    }
    free(events->bytes);
    told_init(&events->told, events->told_path); /* there may have been no descriptor before */
    ring_begin_behind(&events->ring, events->told.last_id);
    events->shown_id = events->ring.last_id;
    take_early(events, false);
    show(events, events->shown_id);
    if (events->stopping)
        finish(events);
}

static void read_file(struct events *events)
{
    events->busy = true;
    uv_queue_work(events->loop, &events->work, on_read, on_loaded);
}

/* ---- life ---- */

struct events *events_start(uv_loop_t *loop, const char *state_dir, const char *told_path)
{
    struct events *events = must(calloc(1, sizeof *events));

    events->loop = loop;
    events->path = path_join(state_dir, EVENTS_FILE);
    events->told_path = must(strdup(told_path));
    boot_id_read(events->boot_id);
    ring_init(&events->ring);
    STAILQ_INIT(&events->early);
    uv_timer_init(loop, &events->timer);
    events->timer.data = events;
    events->work.data = events;
    read_file(events);
    return events;
}

static void on_closed(uv_handle_t *handle)
{
    struct events *events = handle->data;
    void (*done)(void *user) = events->done;
    void *user = events->done_user;

    take_early(events, true);
    ring_fini(&events->ring);
    forget_unwritten(events);
    free(events->path);
    free(events->told_path);
    free(events);
    done(user);
}

/* Once more, with what is not written. */
static void finish(struct events *events)
{
    if (is_to_be_written(events) && !events->trouble[0])
        write_next(events);
    else
        uv_close((uv_handle_t *)&events->timer, on_closed);
}

void events_stop(struct events *events, void (*done)(void *user), void *user)
{
    assert(LIST_EMPTY(&events->watches));
    events->stopping = true;
    events->done = done;
    events->done_user = user;
    uv_timer_stop(&events->timer);
    if (!events->busy)
        finish(events);
}
