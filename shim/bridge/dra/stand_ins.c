#include "shim/bridge/dra/stand_ins.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cri-proto/kube_name.h"
#include "cri-proto/methods.h"
#include "shim/boot_clock.h"
#include "shim/bridge/dra/health_watch.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/path.h"
#include "shim/rpc/unix_socket.h"

#define ENDPOINT_DIR "dra"

struct stand_ins {
    struct stand_in_world world;
    char *registry_dir;
    const struct stand_ins_ops *ops;
    void *user;
    struct stand_in *shown[STAND_INS_MAX];
    /* Serves, or did as this daemon had it. */
    bool confirmed[STAND_INS_MAX];
    bool registered[STAND_INS_MAX]; /* by the kubelet, when it was looked last */
    bool changed; /* which are, by one that was withdrawn, and ops->registered has not run since */
    uint64_t
        moved_ms[STAND_INS_MAX]; /* to the kubelet itself: since when, the loop's time; 0: not */
    size_t len;
    struct rpc_call *watch;
    struct health_watch health;
    bool told;         /* ops->told, of this daemon */
    bool heard;        /* it has said which drivers there are */
    bool unknown;      /* this daemon does not know the call */
    bool swept;        /* what processes before have left is removed */
    uint64_t since_ms; /* that there is this daemon, the loop's time */
    uv_timer_t timer;
};

/* ---- the table ---- */

static size_t find(const struct stand_ins *stand_ins, const char *name)
{
    size_t i = 0;

    while (i < stand_ins->len && strcmp(stand_in_name(stand_ins->shown[i]), name) != 0)
        i++;
    return i;
}

static void withdraw(struct stand_ins *stand_ins, size_t i, const char *why)
{
    log_info("driver %s: withdrawn from the kubelet: %s", stand_in_name(stand_ins->shown[i]), why);
    stand_in_free(stand_ins->shown[i]);
    stand_ins->changed = stand_ins->changed || stand_ins->registered[i];
    stand_ins->len--;
    stand_ins->shown[i] = stand_ins->shown[stand_ins->len];
    stand_ins->confirmed[i] = stand_ins->confirmed[stand_ins->len];
    stand_ins->registered[i] = stand_ins->registered[stand_ins->len];
    stand_ins->moved_ms[i] = stand_ins->moved_ms[stand_ins->len];
    stand_ins->ops->shown(stand_ins->user);
}

/* Of one that is gone: what it said does not count for the one that comes. */
static void forget_health(struct stand_ins *stand_ins, size_t i)
{
    health_words_forget_all(&stand_ins->health.words, stand_in_name(stand_ins->shown[i]));
}

static void add(struct stand_ins *stand_ins, const Bridge__V1__Driver *message)
{
    size_t i = stand_ins->len;

    if (!kube_name_is_dns_subdomain(message->name, strlen(message->name))) {
        log_warning("driver %.*s: that is no driver's name; not shown", KUBE_SUBDOMAIN_BYTES_MAX,
                    message->name);
        return;
    }
    if (i == STAND_INS_MAX) {
        log_warning("driver %s: there are %d already; not shown", message->name, STAND_INS_MAX);
        return;
    }
    stand_ins->shown[i] =
        stand_in_new(&stand_ins->world, message->name, message->services, message->n_services);
    if (!stand_ins->shown[i])
        return;
    stand_ins->confirmed[i] = stand_ins->registered[i] = false;
    stand_ins->moved_ms[i] = 0;
    stand_ins->len++;
    log_info("driver %s: shown to the kubelet", message->name);
    stand_ins->ops->shown(stand_ins->user);
}

/* It is not withdrawn for that: one that is upgraded has pods whose claims are being prepared. */
static void change_services(struct stand_ins *stand_ins, struct stand_in *stand_in,
                            const Bridge__V1__Driver *message)
{
    if (stand_in_has_services(stand_in, message->services, message->n_services))
        return;
    log_info("driver %s: it has other services now", message->name);
    stand_in_set_services(stand_in, message->services, message->n_services);
    stand_in_look(stand_in);
    stand_ins->ops->shown(stand_ins->user);
}

static void show(struct stand_ins *stand_ins, const Bridge__V1__Driver *message)
{
    size_t i = find(stand_ins, message->name);

    if (i < stand_ins->len)
        change_services(stand_ins, stand_ins->shown[i], message);
    else
        add(stand_ins, message);
    if (i == stand_ins->len)
        return;
    stand_ins->confirmed[i] = true;
    stand_ins->moved_ms[i] = 0;
}

/* What the kubelet has of one that has moved, and a process before was about to withdraw: that is
 * for us to do, when its time has come. */
static void take_up_moved(struct stand_ins *stand_ins,
                          const Bridge__V1__WatchDriversResponse *message)
{
    for (size_t i = 0; i < message->n_drivers; i++) {
        const Bridge__V1__Driver *driver = message->drivers[i];

        if (driver->moved && driver->moved_ms && !driver->serves &&
            find(stand_ins, driver->name) == stand_ins->len &&
            stand_in_is_left(&stand_ins->world, driver->name))
            add(stand_ins, driver);
    }
}

static const Bridge__V1__Driver *find_message(const Bridge__V1__WatchDriversResponse *message,
                                              const char *name)
{
    for (size_t i = 0; i < message->n_drivers; i++) {
        if (strcmp(message->drivers[i]->name, name) == 0)
            return message->drivers[i];
    }
    return NULL;
}

/* The kubelet has the other one, and we have answered; not for ever: a kubelet that has just
 * started may ask us on. */
static bool is_handed_over(const struct stand_ins *stand_ins, size_t i)
{
    uint64_t gone_ms = uv_now(stand_ins->world.loop) - stand_ins->moved_ms[i];

    return gone_ms >= CLAIMS_TIMEOUT_MS ||
           (gone_ms >= STAND_INS_MOVED_MS && stand_in_is_idle(stand_ins->shown[i]));
}

static void withdraw_moved(struct stand_ins *stand_ins)
{
    for (size_t i = stand_ins->len; i-- > 0;) {
        if (!stand_ins->moved_ms[i] || !is_handed_over(stand_ins, i))
            continue;
        forget_health(stand_ins, i);
        withdraw(stand_ins, i, "it has registered there itself");
    }
}

/* The loop's time, never 0. */
static uint64_t since_when(const struct stand_ins *stand_ins, const Bridge__V1__Driver *moved)
{
    uint64_t boot_ms = boot_now_ms(), now_ms = uv_now(stand_ins->world.loop);
    uint64_t ago_ms = moved->moved_ms && moved->moved_ms < boot_ms ? boot_ms - moved->moved_ms : 0;

    return ago_ms < now_ms ? now_ms - ago_ms : 1;
}

static void note_moved(struct stand_ins *stand_ins, const Bridge__V1__WatchDriversResponse *message)
{
    for (size_t i = 0; i < stand_ins->len; i++) {
        const Bridge__V1__Driver *found = find_message(message, stand_in_name(stand_ins->shown[i]));

        if (!found || !found->moved || stand_ins->moved_ms[i])
            continue;
        stand_ins->moved_ms[i] = since_when(stand_ins, found);
        stand_in_end_health(stand_ins->shown[i]);
        stand_ins->ops->shown(stand_ins->user);
    }
}

/* What was said to serve, and does not any more. One of which this daemon has never said it may
 * just be coming. */
static void withdraw_gone(struct stand_ins *stand_ins,
                          const Bridge__V1__WatchDriversResponse *message)
{
    for (size_t i = stand_ins->len; i-- > 0;) {
        const Bridge__V1__Driver *found = find_message(message, stand_in_name(stand_ins->shown[i]));

        if (stand_ins->confirmed[i] && !(found && (found->serves || found->moved))) {
            forget_health(stand_ins, i);
            withdraw(stand_ins, i, "it does not serve any more");
        }
    }
}

/* One that has moved goes when it is handed over. */
static void withdraw_unconfirmed(struct stand_ins *stand_ins)
{
    for (size_t i = stand_ins->len; i-- > 0;) {
        if (!stand_ins->confirmed[i] && !stand_ins->moved_ms[i]) {
            forget_health(stand_ins, i);
            withdraw(stand_ins, i, "it has not come back");
        }
    }
}

/* ---- what processes before have left ---- */

static bool is_left(const char *dir, const char *name)
{
    char *path;
    int fd;

    if (strncmp(name, STAND_IN_PREFIX, strlen(STAND_IN_PREFIX)) != 0)
        return false;
    path = path_join(dir, name);
    fd = unix_connect(path);
    free(path);
    if (fd >= 0)
        close(fd);
    return fd == -ECONNREFUSED;
}

/* A kubelet would dial them in vain, and keep those that it has registered. */
static void sweep(const struct stand_ins *stand_ins)
{
    DIR *dir = opendir(stand_ins->registry_dir);

    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (is_left(stand_ins->registry_dir, entry->d_name) &&
            unlinkat(dirfd(dir), entry->d_name, 0) == 0)
            log_info("%s/%s: of a bridge that is gone, removed", stand_ins->registry_dir,
                     entry->d_name);
    }
    if (dir)
        closedir(dir);
}

/* One that has moved is for the daemon to tell of. */
size_t stand_ins_shown(const struct stand_ins *stand_ins,
                       Bridge__V1__Driver *drivers[static STAND_INS_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < stand_ins->len; i++) {
        if (!stand_ins->moved_ms[i])
            drivers[len++] = stand_in_message(stand_ins->shown[i]);
    }
    return len;
}

void stand_ins_restore(struct stand_ins *stand_ins, Bridge__V1__Driver *const *drivers, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (stand_in_is_kept(&stand_ins->world, drivers[i]->name))
            add(stand_ins, drivers[i]);
    }
}

/* ---- the feed ---- */

static void tell(struct stand_ins *stand_ins)
{
    if (!stand_ins->told)
        stand_ins->ops->told(stand_ins->user);
    stand_ins->told = true;
    if (!stand_ins->swept)
        sweep(stand_ins);
    stand_ins->swept = true;
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const Bridge__V1__WatchDriversResponse *response = (const void *)message;
    struct stand_ins *stand_ins = user;
    bool awaited = false; /* some driver, which this daemon may be about to reach */

    (void)call;
    withdraw_gone(stand_ins, response);
    take_up_moved(stand_ins, response);
    note_moved(stand_ins, response);
    withdraw_moved(stand_ins);
    for (size_t i = 0; i < response->n_drivers; i++) {
        if (response->drivers[i]->serves)
            show(stand_ins, response->drivers[i]);
        else
            awaited = awaited || !response->drivers[i]->moved;
    }
    stand_ins->heard = true;
    if (!awaited)
        tell(stand_ins);
}

/* One of a release that knows nothing of drivers has none. */
static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct stand_ins *stand_ins = user;

    (void)call;
    stand_ins->watch = NULL;
    stand_ins->unknown = status->code == RPC_UNIMPLEMENTED;
    if (!stand_ins->unknown)
        return;
    withdraw_unconfirmed(stand_ins);
    tell(stand_ins);
}

static void ask(struct stand_ins *stand_ins)
{
    static const struct rpc_call_ops ops = {on_message, on_done};
    Bridge__V1__WatchDriversRequest request = BRIDGE__V1__WATCH_DRIVERS_REQUEST__INIT;

    stand_ins->watch =
        feed_client_call(stand_ins->world.feed, BRIDGE_WATCH_DRIVERS, &request.base,
                         &bridge__v1__watch_drivers_response__descriptor, true, 0, &ops, stand_ins);
}

void stand_ins_feed_came(struct stand_ins *stand_ins)
{
    stand_ins->since_ms = uv_now(stand_ins->world.loop);
    memset(stand_ins->confirmed, 0, sizeof stand_ins->confirmed);
    stand_ins->heard = false;
    stand_ins->told = false;
    stand_ins->unknown = false;
    ask(stand_ins);
    health_watch_feed_came(&stand_ins->health);
    for (size_t i = 0; i < stand_ins->len; i++)
        stand_in_look(stand_ins->shown[i]);
}

void stand_ins_feed_lost(struct stand_ins *stand_ins)
{
    rpc_call_cancel(stand_ins->watch);
    stand_ins->watch = NULL;
    stand_ins->heard = false;
    health_watch_feed_lost(&stand_ins->health);
}

static void on_health_changed(void *user)
{
    struct stand_ins *stand_ins = user;

    for (size_t i = 0; i < stand_ins->len; i++)
        stand_in_look_at_health(stand_ins->shown[i]);
}

/* ---- the kubelet ---- */

static void look_whether_registered(struct stand_ins *stand_ins)
{
    bool changed = stand_ins->changed;

    stand_ins->changed = false;
    for (size_t i = 0; i < stand_ins->len; i++) {
        bool registered = stand_in_is_registered(stand_ins->shown[i]);

        changed = changed || registered != stand_ins->registered[i];
        stand_ins->registered[i] = registered;
    }
    if (changed)
        stand_ins->ops->registered(stand_ins->user);
}

size_t stand_ins_registered(const struct stand_ins *stand_ins, char *names[static STAND_INS_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < stand_ins->len; i++) {
        if (stand_ins->registered[i])
            names[len++] = (char *)(uintptr_t)stand_in_name(stand_ins->shown[i]);
    }
    return len;
}

/* ---- life ---- */

static void on_timer(uv_timer_t *timer)
{
    struct stand_ins *stand_ins = timer->data;

    if (!stand_ins->watch && !stand_ins->unknown && feed_client_alive(stand_ins->world.feed))
        ask(stand_ins);
    if (feed_client_alive(stand_ins->world.feed))
        health_watch_look(&stand_ins->health);
    if (stand_ins->heard && uv_now(timer->loop) - stand_ins->since_ms >= STAND_INS_SETTLE_MS) {
        withdraw_unconfirmed(stand_ins);
        tell(stand_ins);
    }
    withdraw_moved(stand_ins);
    for (size_t i = 0; i < stand_ins->len; i++)
        stand_in_look(stand_ins->shown[i]);
    look_whether_registered(stand_ins);
}

struct stand_ins *stand_ins_new(uv_loop_t *loop, struct feed_client *feed, struct fd_store *store,
                                const char *feed_socket, const char *registry_dir,
                                const struct stand_ins_ops *ops, void *user)
{
    struct stand_ins *stand_ins = must(calloc(1, sizeof *stand_ins));

    stand_ins->registry_dir = must(strdup(registry_dir));
    stand_ins->world =
        (struct stand_in_world){.loop = loop,
                                .feed = feed,
                                .store = store,
                                .health = &stand_ins->health.words,
                                .endpoint_dir = path_beside(feed_socket, ENDPOINT_DIR),
                                .registry_dir = stand_ins->registry_dir};
    stand_ins->health =
        (struct health_watch){.feed = feed, .changed = on_health_changed, .user = stand_ins};
    health_watch_init(&stand_ins->health);
    stand_ins->ops = ops;
    stand_ins->user = user;
    uv_timer_init(loop, &stand_ins->timer);
    stand_ins->timer.data = stand_ins;
    uv_timer_start(&stand_ins->timer, on_timer, LOOK_MS, LOOK_MS);
    return stand_ins;
}

static void on_closed(uv_handle_t *handle)
{
    struct stand_ins *stand_ins = handle->data;

    free(stand_ins->world.endpoint_dir);
    free(stand_ins->registry_dir);
    free(stand_ins);
}

void stand_ins_free(struct stand_ins *stand_ins, bool leaves)
{
    stand_ins_feed_lost(stand_ins);
    stand_ins->world.leaves = leaves;
    while (stand_ins->len > 0)
        stand_in_free(stand_ins->shown[--stand_ins->len]);
    health_watch_fini(&stand_ins->health);
    uv_close((uv_handle_t *)&stand_ins->timer, on_closed);
}
