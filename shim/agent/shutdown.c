#include "shim/agent/shutdown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/agent/backoff.h"
#include "shim/agent/delay_lock.h"
#include "shim/agent/limits.h"
#include "shim/agent/logind.h"
#include "shim/boot_clock.h"
#include "shim/log.h"
#include "shim/must.h"

struct shutdown {
    uv_loop_t *loop;
    void (*changed)(void *user);
    void *user;
    struct {
        bool wanted, over;
        uint64_t grace_ms, over_since_ms;
    } wish;
    bool daemon_there;
    struct logind *logind; /* NULL: nothing is wanted */
    struct logind_said said;
    uint64_t told_grace_ms; /* the grace that its limit was held against last */
    bool heard;             /* logind has said something in this life */
    uint64_t heard_ms;      /* of the shutdown under way: when it was heard of */
    uint64_t since_ms;      /* likewise, for the daemon; 0: it was under way before */
    bool kubelet_locked;
    struct delay_lock lock;
    bool inhibiting;
    uint64_t again_ms; /* no lock is asked for before that */
    struct backoff backoff;
    char words[ERROR_WORDS_BYTES_MAX]; /* why there is none; "": it was not refused */
    uv_timer_t timer;
};

static void look(struct shutdown *shutdown);

/* ---- the lock ---- */

/* The daemon's word on another shutdown than this one is none. */
static bool is_over(const struct shutdown *shutdown)
{
    return shutdown->wish.over && (shutdown->since_ms == 0 || shutdown->wish.over_since_ms == 0 ||
                                   shutdown->wish.over_since_ms == shutdown->since_ms);
}

/* When a lock is let go that nobody speaks of. */
static uint64_t latest_ms(const struct shutdown *shutdown)
{
    uint64_t limit_ms = shutdown->said.limit_ms;

    return shutdown->heard_ms + (limit_ms > SHUTDOWN_EARLY_MS ? limit_ms - SHUTDOWN_EARLY_MS : 0);
}

static bool is_to_be_held(const struct shutdown *shutdown)
{
    if (!shutdown->wish.wanted || !shutdown->said.shutting_down)
        return shutdown->wish.wanted;
    return !is_over(shutdown) && (shutdown->daemon_there || boot_now_ms() < latest_ms(shutdown));
}

static void release(struct shutdown *shutdown, const char *why)
{
    log_info("the lock on the machine's shutdown is let go: %s", why);
    delay_lock_release(&shutdown->lock);
    shutdown->changed(shutdown->user);
}

static void hold(struct shutdown *shutdown)
{
    if (!shutdown->said.known || shutdown->said.shutting_down || shutdown->inhibiting ||
        boot_now_ms() < shutdown->again_ms)
        return;
    shutdown->inhibiting = true;
    logind_inhibit(shutdown->logind);
}

static void on_inhibited(void *user, int fd, const char *words)
{
    struct shutdown *shutdown = user;

    shutdown->inhibiting = false;
    if (fd >= 0) {
        delay_lock_take(&shutdown->lock, fd);
        log_info("logind: the machine's shutdown is delayed, by %llu ms at most",
                 (unsigned long long)shutdown->said.limit_ms);
    } else {
        if (strcmp(words, shutdown->words) != 0)
            log_warning("logind: no lock on the machine's shutdown: %s", words);
        shutdown->again_ms =
            boot_now_ms() +
            backoff_failed(&shutdown->backoff, uv_now(shutdown->loop), 0, LOCK_AGAIN_MS_MAX);
    }
    snprintf(shutdown->words, sizeof shutdown->words, "%s", words);
    shutdown->changed(shutdown->user);
    look(shutdown);
}

static void on_timer(uv_timer_t *timer)
{
    struct shutdown *shutdown = timer->data;

    delay_lock_tell(&shutdown->lock);
    look(shutdown);
}

/* The timer is for what has its time. */
static void wake_at(struct shutdown *shutdown, uint64_t until_ms)
{
    uint64_t wait_ms = boot_left_ms(until_ms);

    if (!uv_is_active((uv_handle_t *)&shutdown->timer) ||
        uv_timer_get_due_in(&shutdown->timer) > wait_ms)
        uv_timer_start(&shutdown->timer, on_timer, wait_ms, 0);
}

/* After each change: the lock as it is to be. */
static void look(struct shutdown *shutdown)
{
    bool held = delay_lock_held(&shutdown->lock);

    if (held && !is_to_be_held(shutdown))
        release(shutdown, !shutdown->wish.wanted ? "it is not wanted any more"
                          : is_over(shutdown)    ? "all is over"
                                                 : "there is no daemon, and no more time");
    else if (!held && is_to_be_held(shutdown))
        hold(shutdown);
    uv_timer_stop(&shutdown->timer);
    if (delay_lock_held(&shutdown->lock) && shutdown->said.shutting_down && !shutdown->daemon_there)
        wake_at(shutdown, latest_ms(shutdown));
    if (!delay_lock_held(&shutdown->lock) && shutdown->again_ms > boot_now_ms())
        wake_at(shutdown, shutdown->again_ms);
    if (!delay_lock_told(&shutdown->lock))
        wake_at(shutdown, boot_now_ms() + LOCK_TELL_AGAIN_MS);
}

/* ---- logind ---- */

static void tell_limit(struct shutdown *shutdown, const struct logind_said *said)
{
    shutdown->told_grace_ms = shutdown->wish.grace_ms;
    if (said->limit_ms < shutdown->wish.grace_ms)
        log_warning(
            "logind waits for %llu ms at a shutdown, and [shutdown] wants %llu: "
            "InhibitDelayMaxSec= of logind.conf is to be more, as \"cri-device-shimctl node "
            "enable\" has it",
            (unsigned long long)said->limit_ms, (unsigned long long)shutdown->wish.grace_ms);
}

/* What has come or gone of a shutdown. */
static void take_shutdown(struct shutdown *shutdown, const struct logind_said *said)
{
    if (said->shutting_down && !shutdown->said.shutting_down) {
        shutdown->heard_ms = boot_now_ms();
        shutdown->since_ms = shutdown->heard ? shutdown->heard_ms : 0;
        shutdown->kubelet_locked = false;
        log_info("logind: the machine shuts down");
    } else if (!said->shutting_down) {
        if (shutdown->said.shutting_down)
            log_info("logind: the machine does not shut down any more");
        shutdown->heard_ms = shutdown->since_ms = 0;
        shutdown->kubelet_locked = false;
    }
    shutdown->kubelet_locked |= said->kubelets;
    shutdown->heard = true;
}

/* A lock that logind does not know of delays nothing: it is one of a logind that has forgotten all.
 * What it says was read after the lock came, since it answers one after the other. */
static void on_said(void *user, const struct logind_said *said)
{
    struct shutdown *shutdown = user;
    bool known_before = shutdown->said.known;

    if (said->known) {
        take_shutdown(shutdown, said);
        if (!known_before || said->limit_ms != shutdown->said.limit_ms ||
            shutdown->wish.grace_ms != shutdown->told_grace_ms)
            tell_limit(shutdown, said);
    } else if (known_before || strcmp(said->trouble, shutdown->said.trouble) != 0) {
        log_warning("%s", said->trouble);
    }
    shutdown->said = *said;
    if (said->known && !said->ours && delay_lock_held(&shutdown->lock))
        release(shutdown, "logind does not know it");
    shutdown->changed(shutdown->user);
    look(shutdown);
}

/* ---- the daemon ---- */

static void start_or_stop(struct shutdown *shutdown)
{
    static const struct logind_ops ops = {on_said, on_inhibited};

    if (shutdown->wish.wanted && !shutdown->logind) {
        shutdown->logind = logind_start(shutdown->loop, &ops, shutdown);
    } else if (!shutdown->wish.wanted && shutdown->logind) {
        logind_stop(shutdown->logind);
        shutdown->logind = NULL;
        shutdown->inhibiting = shutdown->heard = shutdown->kubelet_locked = false;
        shutdown->heard_ms = shutdown->since_ms = 0;
        memset(&shutdown->said, 0, sizeof shutdown->said);
    }
}

void shutdown_wish(struct shutdown *shutdown, const Agent__V1__ShutdownWish *wish, bool first)
{
    shutdown->daemon_there = true;
    if (wish) {
        shutdown->wish.wanted = wish->wanted;
        shutdown->wish.over = wish->over;
        shutdown->wish.grace_ms = wish->grace_ms;
        shutdown->wish.over_since_ms = wish->over_since_ms;
    } else if (first) {
        memset(&shutdown->wish, 0, sizeof shutdown->wish);
    }
    start_or_stop(shutdown);
    if (wish && shutdown->logind)
        logind_read(shutdown->logind);
    look(shutdown);
}

void shutdown_daemon_lost(struct shutdown *shutdown)
{
    shutdown->daemon_there = false;
    look(shutdown);
}

static const char *trouble_of(const struct shutdown *shutdown)
{
    if (!shutdown->said.known)
        return shutdown->said.trouble;
    if (delay_lock_held(&shutdown->lock) || !is_to_be_held(shutdown))
        return "";
    return shutdown->said.shutting_down ? "no lock is given in a shutdown" : shutdown->words;
}

bool shutdown_tell(const struct shutdown *shutdown, Agent__V1__Shutdown *out)
{
    agent__v1__shutdown__init(out);
    out->known = shutdown->said.known;
    out->trouble = (char *)trouble_of(shutdown);
    out->under_way = shutdown->said.shutting_down;
    out->since_ms = shutdown->since_ms;
    out->limit_ms = shutdown->said.limit_ms;
    out->locked = delay_lock_held(&shutdown->lock);
    out->kubelet_locked = shutdown->kubelet_locked;
    out->kubelet_gone = shutdown->said.shutting_down && !shutdown->said.kubelets;
    return shutdown->wish.wanted;
}

/* ---- life ---- */

struct shutdown *shutdown_new(uv_loop_t *loop, struct fd_store *store, void (*changed)(void *user),
                              void *user)
{
    struct shutdown *shutdown = must(calloc(1, sizeof *shutdown));

    shutdown->loop = loop;
    shutdown->changed = changed;
    shutdown->user = user;
    uv_timer_init(loop, &shutdown->timer);
    shutdown->timer.data = shutdown;
    delay_lock_init(&shutdown->lock, store);
    shutdown->wish.wanted = delay_lock_held(&shutdown->lock);
    start_or_stop(shutdown);
    return shutdown;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void shutdown_free(struct shutdown *shutdown)
{
    if (!shutdown)
        return;
    logind_stop(shutdown->logind);
    delay_lock_fini(&shutdown->lock);
    uv_close((uv_handle_t *)&shutdown->timer, on_closed);
}
