#include "shim/kubelet/gate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "shim/boot.h"
#include "shim/boot_clock.h"
#include "shim/file_identity.h"
#include "shim/kubelet/armed_file.h"
#include "shim/kubelet/kubelets.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/path.h"
#include "shim/process.h"

#define TELL_BYTES_MAX (TAKEN_WORDS_BYTES_MAX + 256)

struct gate {
    const struct config_bridge *config;
    bool closes; /* false: it only knows who is a kubelet */
    const struct gate_ops *ops;
    void *user;
    char boot_id[BOOT_ID_BYTES_MAX];
    char *path; /* of the file of those that are armed */
    struct kubelets kubelets;
    struct gate_counts counts;
    uv_timer_t timer;
    void (*done)(void *user);
    void *done_user;
};

static void save(const struct gate *gate)
{
    armed_file_save(gate->path, gate->boot_id, &gate->kubelets);
}

static struct file_identity look_at_socket(const struct gate *gate)
{
    return file_identity_at(gate->config->kubelet_plugin_dir, "kubelet.sock", S_IFSOCK);
}

/* Whether there is a kubelet.sock, and not the one from before. */
static bool has_socket(const struct gate *gate, const struct kubelet *kubelet)
{
    struct file_identity now = look_at_socket(gate);

    return !file_identity_is_none(&now) && !file_identity_is(&now, &kubelet->before);
}

/* ---- holding and letting go ---- */

static void let_go(struct gate *gate, struct kubelet *kubelet)
{
    kubelets_open(&gate->kubelets, kubelet);
    save(gate);
}

/* Until when its calls are held, and what the limit is. */
struct limit {
    uint64_t ms;
    const char *words;
};

static void limit_lower(struct limit *limit, uint64_t from_ms, uint64_t wait_ms, const char *words)
{
    if (from_ms == KUBELETS_NEVER || from_ms + wait_ms >= limit->ms)
        return;
    limit->ms = from_ms + wait_ms;
    limit->words = words;
}

static struct limit kubelet_limit(const struct gate *gate, const struct kubelet *kubelet)
{
    uint64_t timeout_ms = gate->config->gate_timeout_ms;
    struct limit limit = {.ms = KUBELETS_NEVER};
    const struct hold *hold;

    limit_lower(&limit, kubelet->socket_ms, timeout_ms,
                "bridge.gate_timeout after its kubelet.sock");
    limit_lower(&limit, kubelet->alone_ms, timeout_ms, "bridge.gate_timeout without a bridge");
    TAILQ_FOREACH(hold, &kubelet->holds, entry) {
        limit_lower(&limit, hold->limit_ms, 0,
                    kubelet->socket_ms == KUBELETS_NEVER
                        ? "its caller's, without a kubelet.sock in bridge.kubelet_plugin_dir"
                        : "its caller's");
    }
    return limit;
}

const struct gate_counts *gate_counts(const struct gate *gate)
{
    return &gate->counts;
}

unsigned gate_holds(const struct gate *gate)
{
    const struct kubelet *kubelet;
    unsigned n = 0;

    TAILQ_FOREACH(kubelet, &gate->kubelets.list, entry)
        n += !TAILQ_EMPTY(&kubelet->holds);
    return n;
}

/* Takes in what has come since the last look. */
static void kubelet_look(const struct gate *gate, struct kubelet *kubelet,
                         const struct taken *taken, uint64_t now_ms)
{
    if (kubelet->socket_ms == KUBELETS_NEVER && (taken->reached || has_socket(gate, kubelet)))
        kubelet->socket_ms = now_ms;
    if (taken->bridge)
        kubelet->alone_ms = KUBELETS_NEVER;
    else if (kubelet->alone_ms == KUBELETS_NEVER)
        kubelet->alone_ms = now_ms;
}

static void tell(struct gate *gate, enum log_level level, enum log_kind kind, const char *word,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* In the log, and to who wants to hear of it. */
static void tell(struct gate *gate, enum log_level level, enum log_kind kind, const char *word,
                 const char *format, ...)
{
    char words[TELL_BYTES_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    log_write_about(level, &(struct log_about){.kind = kind}, "%s", words);
    if (gate->ops->told)
        gate->ops->told(gate->user, word, words);
}

/* True: it is let go. */
static bool kubelet_judge(struct gate *gate, struct kubelet *kubelet, uint64_t now_ms)
{
    uint64_t held_ms = now_ms - kubelet->since_ms;
    struct limit limit;
    struct taken taken;

    gate->ops->taken(gate->user, kubelet->pid, &taken);
    kubelet_look(gate, kubelet, &taken, now_ms);
    limit = kubelet_limit(gate, kubelet);
    if (taken.all)
        tell(gate, LOG_LEVEL_INFO, LOG_KIND_GATE_OPENED, "opened",
             "kubelet (process %d): its first relist goes on after %" PRIu64 " ms: %s",
             kubelet->pid, held_ms, taken.words);
    else if (now_ms >= limit.ms)
        tell(gate, LOG_LEVEL_WARNING, LOG_KIND_GATE_OPENED, "expired",
             "kubelet (process %d): its first relist goes on after %" PRIu64
             " ms, the time limit (%s): %s",
             kubelet->pid, held_ms, limit.words, taken.words);
    else
        return false;
    histogram_add(&gate->counts.held, held_ms * 1000);
    gate->counts.expired += !taken.all;
    let_go(gate, kubelet);
    return true;
}

static void release_all(struct gate *gate)
{
    uint64_t number;

    while (kubelets_take_released(&gate->kubelets, &number))
        gate->ops->release(gate->user, number);
}

static void on_timer(uv_timer_t *timer);

/* When a kubelet that is held is to be looked at again, at the latest. Nobody tells of a
 * kubelet.sock that no bridge reaches. */
static uint64_t kubelet_next_ms(const struct gate *gate, const struct kubelet *kubelet,
                                uint64_t now_ms)
{
    uint64_t limit_ms = kubelet_limit(gate, kubelet).ms, look_ms = now_ms + GATE_LOOK_MS;

    return look_ms < limit_ms ? look_ms : limit_ms;
}

/* For the next look, or at once if somebody was let go. */
static void set_timer(struct gate *gate, uint64_t now_ms)
{
    uint64_t next_ms = TAILQ_EMPTY(&gate->kubelets.released) ? KUBELETS_NEVER : now_ms;
    const struct kubelet *kubelet;

    TAILQ_FOREACH(kubelet, &gate->kubelets.list, entry) {
        if (!TAILQ_EMPTY(&kubelet->holds) && kubelet_next_ms(gate, kubelet, now_ms) < next_ms)
            next_ms = kubelet_next_ms(gate, kubelet, now_ms);
    }
    if (next_ms == KUBELETS_NEVER) {
        uv_timer_stop(&gate->timer);
        return;
    }
    uv_update_time(gate->timer.loop);
    uv_timer_start(&gate->timer, on_timer, next_ms > now_ms ? next_ms - now_ms : 0, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct gate *gate = timer->data;
    uint64_t now_ms = boot_now_ms();
    struct kubelet *kubelet;
    bool waits = false;

    TAILQ_FOREACH(kubelet, &gate->kubelets.list, entry) {
        if (TAILQ_EMPTY(&kubelet->holds))
            continue;
        kubelet_judge(gate, kubelet, now_ms);
        waits = true;
    }
    if (waits)
        gate->ops->waits(gate->user);
    release_all(gate);
    set_timer(gate, now_ms);
}

static uint64_t hold_limit_ms(uint64_t deadline_ms, uint64_t now_ms)
{
    if (deadline_ms == UINT64_MAX)
        return now_ms + GATE_HOLD_MS_MAX;
    return deadline_ms > GATE_MARGIN_MS ? deadline_ms - GATE_MARGIN_MS : 0;
}

/* ---- what the relay says ---- */

bool gate_watches(const struct gate *gate, pid_t pid)
{
    return process_is_one_of(pid, gate->config->kubelet_processes,
                             gate->config->kubelet_processes_len);
}

bool gate_armed(const struct gate *gate, pid_t pid)
{
    const struct kubelet *kubelet = kubelets_find(&gate->kubelets, pid);

    return kubelet && kubelet->state != KUBELET_OPEN;
}

bool gate_announced(struct gate *gate, pid_t pid)
{
    struct kubelet *kubelet;
    uint64_t started;

    if (!gate_watches(gate, pid) || process_started(pid, &started) < 0 ||
        kubelets_find(&gate->kubelets, pid))
        return false;
    if (!kubelets_make_room(&gate->kubelets))
        return true; /* each holds something: that cannot be on a node */
    kubelet =
        kubelets_add(&gate->kubelets, pid, started, gate->closes ? KUBELET_ARMED : KUBELET_OPEN);
    tell(gate, LOG_LEVEL_INFO, LOG_KIND_KUBELET_STARTED, gate->closes ? "armed" : "off",
         "kubelet (process %d) has started%s", pid,
         gate->closes ? ": its first relist waits until it has the devices" : "");
    if (!gate->closes)
        return true;
    kubelet->before = look_at_socket(gate);
    save(gate);
    return true;
}

bool gate_hold(struct gate *gate, pid_t pid, uint64_t deadline_ms, uint64_t hold)
{
    struct kubelet *kubelet = kubelets_find(&gate->kubelets, pid);
    uint64_t now_ms = boot_now_ms(), limit_ms = hold_limit_ms(deadline_ms, now_ms);
    bool held;

    if (!kubelet || kubelet->state == KUBELET_OPEN || gate->kubelets.holds_len >= GATE_HOLDS_MAX)
        return false;
    kubelet_begin_holding(kubelet, now_ms);
    held = limit_ms > now_ms && !kubelet_judge(gate, kubelet, now_ms);
    if (held)
        kubelets_hold(&gate->kubelets, kubelet, hold, limit_ms);
    set_timer(gate, now_ms);
    gate->ops->waits(gate->user);
    return held;
}

void gate_cancelled(struct gate *gate, uint64_t hold)
{
    if (kubelets_cancel(&gate->kubelets, hold))
        set_timer(gate, boot_now_ms());
}

void gate_answered(struct gate *gate, pid_t pid)
{
    struct kubelet *kubelet = kubelets_find(&gate->kubelets, pid);

    if (!kubelet || kubelet->state == KUBELET_OPEN)
        return;
    log_warning("kubelet (process %d): a relist was answered that was not held", pid);
    let_go(gate, kubelet); /* with what else it asked: pods are admitted from now on */
    set_timer(gate, boot_now_ms());
}

void gate_changed(struct gate *gate)
{
    const struct kubelet *kubelet;

    TAILQ_FOREACH(kubelet, &gate->kubelets.list, entry) {
        if (!TAILQ_EMPTY(&kubelet->holds))
            uv_timer_start(&gate->timer, on_timer, 0, 0);
    }
}

void gate_look(const struct gate *gate, struct gate_kubelet *out)
{
    const struct kubelet *kubelet = kubelets_newest(&gate->kubelets);

    *out = (struct gate_kubelet){0};
    if (!kubelet)
        return;
    out->pid = kubelet->pid;
    out->armed = kubelet->state == KUBELET_ARMED;
    out->holds = kubelet->state == KUBELET_HOLDING;
    if (out->holds)
        out->held_ms = boot_now_ms() - kubelet->since_ms;
}

/* ---- life ---- */

static bool is_kubelet(const void *user, pid_t pid)
{
    return gate_watches(user, pid);
}

struct gate *gate_start(uv_loop_t *loop, const struct config *config, const struct gate_ops *ops,
                        void *user)
{
    struct gate *gate = must(calloc(1, sizeof *gate));

    gate->config = &config->bridge;
    gate->closes = config->bridge.enabled && config->bridge.gate;
    gate->ops = ops;
    gate->user = user;
    kubelets_init(&gate->kubelets);
    boot_id_read(gate->boot_id);
    gate->path = path_beside(config->bridge.socket, GATE_FILE);
    uv_timer_init(loop, &gate->timer);
    gate->timer.data = gate;
    if (gate->closes)
        armed_file_restore(gate->path, gate->boot_id, &gate->kubelets, is_kubelet, gate);
    return gate;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct gate *gate = handle->data;
    void (*done)(void *user) = gate->done;
    void *user = gate->done_user;

    free(gate->path);
    free(gate);
    done(user);
}

void gate_stop(struct gate *gate, void (*done)(void *user), void *user)
{
    gate->done = done;
    gate->done_user = user;
    kubelets_fini(&gate->kubelets);
    uv_close((uv_handle_t *)&gate->timer, on_timer_closed);
}
