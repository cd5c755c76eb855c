#include "shim/kubelet/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/boot.h"
#include "shim/kubelet/process.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/plugins/manager.h"

/* None, as a time. */
#define NEVER UINT64_MAX

struct hold {
    TAILQ_ENTRY(hold) entry;
    uint64_t number;   /* the owner's */
    uint64_t limit_ms; /* its client gives up soon after */
};
TAILQ_HEAD(holds, hold);

/* Which file is kubelet.sock. A file system may give an inode's number away again at once, so the
 * time counts, too; all zero: there is none. */
struct identity {
    uint64_t device;
    uint64_t inode;
    uint64_t modified_ns;
};

/*
 *     ──Version{""}──▶ ARMED ──first relist──▶ HOLDING ──taken, or time over──▶ OPEN
 *                        └──────────── a relist is answered ──────────────────────▲
 *
 * HOLDING waits for ops.taken() or kubelet_limit(), also while its calls come and go. OPEN is
 * remembered, so that the process is not armed again; where there is to be no gate it begins there.
 */
enum kubelet_state {
    KUBELET_ARMED,
    KUBELET_HOLDING,
    KUBELET_OPEN,
};

struct kubelet {
    TAILQ_ENTRY(kubelet) entry;
    pid_t pid;
    uint64_t started; /* process.h */
    enum kubelet_state state;
    struct identity before; /* kubelet.sock when it announced itself: an earlier kubelet's */
    /* HOLDING */
    uint64_t since_ms;  /* of the first call */
    uint64_t socket_ms; /* since when its kubelet.sock is there; NEVER: it is not */
    uint64_t alone_ms;  /* since when no bridge is there; NEVER: one is */
    struct holds holds;
};

struct gate {
    const struct config_bridge *config;
    bool closes; /* false: it only knows who is a kubelet */
    const struct gate_ops *ops;
    void *user;
    char boot_id[BOOT_ID_BYTES_MAX];
    char path[PATH_MAX];
    TAILQ_HEAD(kubelets, kubelet) kubelets; /* the oldest first */
    size_t kubelets_len;
    size_t holds_len;
    struct holds released; /* release() is still to be called */
    uv_timer_t timer;
    void (*done)(void *user);
    void *done_user;
};

/* ---- kubelet.sock ---- */

static struct identity look_at_socket(const struct gate *gate)
{
    char path[PATH_MAX];
    struct stat st;

    if (snprintf(path, sizeof path, "%s/kubelet.sock", gate->config->kubelet_plugin_dir) >=
            (int)sizeof path ||
        lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return (struct identity){0};
    return (struct identity){st.st_dev, st.st_ino,
                             (uint64_t)st.st_mtim.tv_sec * 1000000000 +
                                 (uint64_t)st.st_mtim.tv_nsec};
}

static bool identity_is(const struct identity *a, const struct identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->modified_ns == b->modified_ns;
}

/* Whether there is one, and not the one from before. */
static bool has_socket(const struct gate *gate, const struct kubelet *kubelet)
{
    static const struct identity none;
    struct identity now = look_at_socket(gate);

    return !identity_is(&now, &none) && !identity_is(&now, &kubelet->before);
}

/* ---- kubelets ---- */

static struct kubelet *kubelet_add(struct gate *gate, pid_t pid, uint64_t started)
{
    struct kubelet *kubelet = must(calloc(1, sizeof *kubelet));

    kubelet->pid = pid;
    kubelet->started = started;
    kubelet->state = gate->closes ? KUBELET_ARMED : KUBELET_OPEN;
    kubelet->socket_ms = NEVER;
    kubelet->alone_ms = NEVER;
    TAILQ_INIT(&kubelet->holds);
    TAILQ_INSERT_TAIL(&gate->kubelets, kubelet, entry);
    gate->kubelets_len++;
    return kubelet;
}

static void hold_free(struct gate *gate, struct holds *holds, struct hold *hold)
{
    TAILQ_REMOVE(holds, hold, entry);
    gate->holds_len--;
    free(hold);
}

static void kubelet_free(struct gate *gate, struct kubelet *kubelet)
{
    while (!TAILQ_EMPTY(&kubelet->holds))
        hold_free(gate, &kubelet->holds, TAILQ_FIRST(&kubelet->holds));
    TAILQ_REMOVE(&gate->kubelets, kubelet, entry);
    gate->kubelets_len--;
    free(kubelet);
}

static bool kubelet_lives(const struct kubelet *kubelet)
{
    uint64_t started;

    return process_started(kubelet->pid, &started) == 0 && started == kubelet->started;
}

/* The process that has the pid now, if it is known. */
static struct kubelet *kubelet_find(const struct gate *gate, pid_t pid)
{
    struct kubelet *kubelet;

    TAILQ_FOREACH(kubelet, &gate->kubelets, entry)
    {
        if (kubelet->pid == pid && kubelet_lives(kubelet))
            return kubelet;
    }
    return NULL;
}

/* Makes room for one more: without the dead ones, and without the oldest if that was not enough. */
static void drop_kubelets(struct gate *gate)
{
    struct kubelet *kubelet, *next;

    for (kubelet = TAILQ_FIRST(&gate->kubelets); kubelet; kubelet = next) {
        next = TAILQ_NEXT(kubelet, entry);
        if (TAILQ_EMPTY(&kubelet->holds) && !kubelet_lives(kubelet))
            kubelet_free(gate, kubelet);
    }
    for (kubelet = TAILQ_FIRST(&gate->kubelets);
         kubelet && gate->kubelets_len >= GATE_PROCESSES_MAX; kubelet = next) {
        next = TAILQ_NEXT(kubelet, entry);
        if (TAILQ_EMPTY(&kubelet->holds))
            kubelet_free(gate, kubelet);
    }
}

/*
 * ---- the file: a line for each that is armed, "BOOT_ID PID STARTED DEVICE INODE MODIFIED" ----
 *
 * The last three are kubelet.sock's from before; earlier releases wrote the first three only.
 */

static bool write_lines(const struct gate *gate, FILE *file)
{
    const struct kubelet *kubelet;
    bool good = true;

    TAILQ_FOREACH(kubelet, &gate->kubelets, entry)
    {
        if (kubelet->state != KUBELET_OPEN)
            good = fprintf(file, "%s %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                           gate->boot_id, kubelet->pid, kubelet->started, kubelet->before.device,
                           kubelet->before.inode, kubelet->before.modified_ns) > 0 &&
                   good;
    }
    return good;
}

/* A file of our own making, whatever is in its place. NULL: see errno. */
static FILE *create_file(const char *path)
{
    FILE *file;
    int fd;

    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    file = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && !file)
        close(fd);
    return file;
}

/* Not synced: it is to outlive the daemon, not the kernel, nor the kubelets in it. So it does not
 * wait for a disk, and may be written here. */
static int write_file(const struct gate *gate)
{
    char path[PATH_MAX + 4];
    FILE *file;
    bool good;

    snprintf(path, sizeof path, "%s.new", gate->path);
    file = create_file(path);
    if (!file)
        return -errno;
    errno = 0; /* stdio need not say why */
    good = write_lines(gate, file);
    good = fclose(file) == 0 && good;
    if (!good || rename(path, gate->path) < 0) {
        int r = errno != 0 ? -errno : -EIO;

        unlink(path);
        return r;
    }
    return 0;
}

static void save(const struct gate *gate)
{
    const struct kubelet *kubelet;
    bool armed = false;
    int r = 0;

    TAILQ_FOREACH(kubelet, &gate->kubelets, entry)
    {
        armed = armed || kubelet->state != KUBELET_OPEN;
    }
    if (armed)
        r = write_file(gate);
    else if (unlink(gate->path) < 0 && errno != ENOENT)
        r = -errno;
    if (r < 0)
        log_warning("%s: %s; should the daemon be killed now, the next one does not know whom to "
                    "hold",
                    gate->path, strerror(-r));
}

static void restore_line(struct gate *gate, const char *line)
{
    char boot_id[BOOT_ID_BYTES_MAX];
    struct identity before = {0};
    uint64_t started, now;
    int pid, end = 0, more = 0;

    if (sscanf(line, "%63s %9d %18" SCNu64 " %n", boot_id, &pid, &started, &end) == 3 &&
        sscanf(line + end, "%20" SCNu64 " %20" SCNu64 " %20" SCNu64 " %n", &before.device,
               &before.inode, &before.modified_ns, &more) == 3)
        end += more;
    if (end == 0 || line[end] != '\0') {
        log_warning("%s: a line makes no sense; it is left out", gate->path);
        return;
    }
    if (strcmp(boot_id, gate->boot_id) != 0 || gate->kubelets_len >= GATE_PROCESSES_MAX ||
        process_started(pid, &now) < 0 || now != started || !gate_watches(gate, pid))
        return;
    kubelet_add(gate, pid, started)->before = before;
    log_info("kubelet (process %d): its first relist is still to come", pid);
}

static void restore(struct gate *gate)
{
    FILE *file = fopen(gate->path, "re");
    char line[256];

    if (!file)
        return;
    while (fgets(line, sizeof line, file))
        restore_line(gate, line);
    fclose(file);
    save(gate);
}

/* ---- holding and letting go ---- */

/* The kubelet's calls go on, and all that follow. */
static void kubelet_open(struct gate *gate, struct kubelet *kubelet)
{
    kubelet->state = KUBELET_OPEN;
    TAILQ_CONCAT(&gate->released, &kubelet->holds, entry);
    save(gate);
}

/* Until when its calls are held, and what the limit is. */
struct limit {
    uint64_t ms;
    const char *words;
};

static void limit_lower(struct limit *limit, uint64_t from_ms, uint64_t wait_ms, const char *words)
{
    if (from_ms == NEVER || from_ms + wait_ms >= limit->ms)
        return;
    limit->ms = from_ms + wait_ms;
    limit->words = words;
}

static struct limit kubelet_limit(const struct gate *gate, const struct kubelet *kubelet)
{
    uint64_t timeout_ms = gate->config->gate_timeout_ms;
    struct limit limit = {.ms = NEVER};
    const struct hold *hold;

    limit_lower(&limit, kubelet->socket_ms, timeout_ms,
                "bridge.gate_timeout after its kubelet.sock");
    limit_lower(&limit, kubelet->alone_ms, timeout_ms, "bridge.gate_timeout without a bridge");
    TAILQ_FOREACH(hold, &kubelet->holds, entry)
    {
        limit_lower(&limit, hold->limit_ms, 0,
                    kubelet->socket_ms == NEVER
                        ? "its caller's, without a kubelet.sock in bridge.kubelet_plugin_dir"
                        : "its caller's");
    }
    return limit;
}

/* Takes in what has come since the last look. */
static void kubelet_look(const struct gate *gate, struct kubelet *kubelet,
                         const struct taken *taken, uint64_t now_ms)
{
    if (kubelet->socket_ms == NEVER && (taken->reached || has_socket(gate, kubelet)))
        kubelet->socket_ms = now_ms;
    if (taken->bridge)
        kubelet->alone_ms = NEVER;
    else if (kubelet->alone_ms == NEVER)
        kubelet->alone_ms = now_ms;
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
        log_info("kubelet (process %d): its first relist goes on after %" PRIu64 " ms: %s",
                 kubelet->pid, held_ms, taken.words);
    else if (now_ms >= limit.ms)
        log_warning("kubelet (process %d): its first relist goes on after %" PRIu64
                    " ms, the time limit (%s): %s",
                    kubelet->pid, held_ms, limit.words, taken.words);
    else
        return false;
    kubelet_open(gate, kubelet);
    return true;
}

static void release_all(struct gate *gate)
{
    while (!TAILQ_EMPTY(&gate->released)) {
        struct hold *hold = TAILQ_FIRST(&gate->released);
        uint64_t number = hold->number;

        hold_free(gate, &gate->released, hold);
        gate->ops->release(gate->user, number);
    }
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
    uint64_t next_ms = TAILQ_EMPTY(&gate->released) ? NEVER : now_ms;
    const struct kubelet *kubelet;

    TAILQ_FOREACH(kubelet, &gate->kubelets, entry)
    {
        if (!TAILQ_EMPTY(&kubelet->holds) && kubelet_next_ms(gate, kubelet, now_ms) < next_ms)
            next_ms = kubelet_next_ms(gate, kubelet, now_ms);
    }
    if (next_ms == NEVER) {
        uv_timer_stop(&gate->timer);
        return;
    }
    uv_update_time(gate->timer.loop);
    uv_timer_start(&gate->timer, on_timer, next_ms > now_ms ? next_ms - now_ms : 0, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct gate *gate = timer->data;
    uint64_t now_ms = manager_now_ms();
    struct kubelet *kubelet;
    bool waits = false;

    TAILQ_FOREACH(kubelet, &gate->kubelets, entry)
    {
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

static void add_hold(struct gate *gate, struct kubelet *kubelet, uint64_t number, uint64_t limit_ms)
{
    struct hold *hold = must(calloc(1, sizeof *hold));

    hold->number = number;
    hold->limit_ms = limit_ms;
    TAILQ_INSERT_TAIL(&kubelet->holds, hold, entry);
    gate->holds_len++;
}

/* ---- what the relay says ---- */

bool gate_watches(const struct gate *gate, pid_t pid)
{
    return process_is_one_of(pid, gate->config->kubelet_processes,
                             gate->config->kubelet_processes_len);
}

bool gate_armed(const struct gate *gate, pid_t pid)
{
    const struct kubelet *kubelet = kubelet_find(gate, pid);

    return kubelet && kubelet->state != KUBELET_OPEN;
}

bool gate_announced(struct gate *gate, pid_t pid)
{
    struct kubelet *kubelet;
    uint64_t started;

    if (!gate_watches(gate, pid) || process_started(pid, &started) < 0 || kubelet_find(gate, pid))
        return false;
    drop_kubelets(gate);
    if (gate->kubelets_len >= GATE_PROCESSES_MAX)
        return true; /* each holds something: that cannot be on a node */
    kubelet = kubelet_add(gate, pid, started);
    log_info("kubelet (process %d) has started%s", pid,
             gate->closes ? ": its first relist waits until it has the devices" : "");
    if (!gate->closes)
        return true;
    kubelet->before = look_at_socket(gate);
    save(gate);
    return true;
}

bool gate_hold(struct gate *gate, pid_t pid, uint64_t deadline_ms, uint64_t hold)
{
    struct kubelet *kubelet = kubelet_find(gate, pid);
    uint64_t now_ms = manager_now_ms(), limit_ms = hold_limit_ms(deadline_ms, now_ms);
    bool held;

    if (!kubelet || kubelet->state == KUBELET_OPEN || gate->holds_len >= GATE_HOLDS_MAX)
        return false;
    if (kubelet->state == KUBELET_ARMED) {
        kubelet->state = KUBELET_HOLDING;
        kubelet->since_ms = now_ms;
    }
    held = limit_ms > now_ms && !kubelet_judge(gate, kubelet, now_ms);
    if (held)
        add_hold(gate, kubelet, hold, limit_ms);
    set_timer(gate, now_ms);
    gate->ops->waits(gate->user);
    return held;
}

static bool cancel_in(struct gate *gate, struct holds *holds, uint64_t number)
{
    struct hold *hold;

    TAILQ_FOREACH(hold, holds, entry)
    {
        if (hold->number == number) {
            hold_free(gate, holds, hold);
            return true;
        }
    }
    return false;
}

void gate_cancelled(struct gate *gate, uint64_t hold)
{
    bool found = cancel_in(gate, &gate->released, hold);
    struct kubelet *kubelet;

    TAILQ_FOREACH(kubelet, &gate->kubelets, entry)
    {
        found = found || cancel_in(gate, &kubelet->holds, hold);
    }
    if (found)
        set_timer(gate, manager_now_ms());
}

void gate_answered(struct gate *gate, pid_t pid)
{
    struct kubelet *kubelet = kubelet_find(gate, pid);

    if (!kubelet || kubelet->state == KUBELET_OPEN)
        return;
    log_warning("kubelet (process %d): a relist was answered that was not held", pid);
    kubelet_open(gate, kubelet); /* with what else it asked: pods are admitted from now on */
    set_timer(gate, manager_now_ms());
}

void gate_changed(struct gate *gate)
{
    const struct kubelet *kubelet;

    TAILQ_FOREACH(kubelet, &gate->kubelets, entry)
    {
        if (!TAILQ_EMPTY(&kubelet->holds))
            uv_timer_start(&gate->timer, on_timer, 0, 0);
    }
}

/* ---- life ---- */

struct gate *gate_start(uv_loop_t *loop, const struct config *config, const struct gate_ops *ops,
                        void *user)
{
    const char *socket = config->bridge.socket;
    struct gate *gate;

    gate = must(calloc(1, sizeof *gate));
    gate->config = &config->bridge;
    gate->closes = config->bridge.enabled && config->bridge.gate;
    gate->ops = ops;
    gate->user = user;
    TAILQ_INIT(&gate->kubelets);
    TAILQ_INIT(&gate->released);
    boot_id_read(gate->boot_id);
    snprintf(gate->path, sizeof gate->path, "%.*s/" GATE_FILE, (int)(strrchr(socket, '/') - socket),
             socket);
    uv_timer_init(loop, &gate->timer);
    gate->timer.data = gate;
    if (gate->closes)
        restore(gate);
    return gate;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct gate *gate = handle->data;
    void (*done)(void *user) = gate->done;
    void *user = gate->done_user;

    free(gate);
    done(user);
}

void gate_stop(struct gate *gate, void (*done)(void *user), void *user)
{
    gate->done = done;
    gate->done_user = user;
    while (!TAILQ_EMPTY(&gate->kubelets))
        kubelet_free(gate, TAILQ_FIRST(&gate->kubelets));
    while (!TAILQ_EMPTY(&gate->released))
        hold_free(gate, &gate->released, TAILQ_FIRST(&gate->released));
    uv_close((uv_handle_t *)&gate->timer, on_timer_closed);
}
