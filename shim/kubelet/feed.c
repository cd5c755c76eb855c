#include "shim/kubelet/feed.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/boot_clock.h"
#include "shim/kubelet/advertised.h"
#include "shim/kubelet/checkpoint_watch.h"
#include "shim/kubelet/claim_questions.h"
#include "shim/kubelet/drivers_shown.h"
#include "shim/kubelet/health_shown.h"
#include "shim/kubelet/held.h"
#include "shim/kubelet/questions.h"
#include "shim/kubelet/watchers.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/rpc/keeper.h"
#include "shim/rpc/listener.h"
#include "shim/rpc/rpc.h"
#include "shim/stopping.h"

#define SOCKET_DIRECTORY_MODE 0755
/* Among the listeners in the store. */
#define STORED_NAME "feed"

struct feed {
    const struct config *config;
    struct host *host;
    const struct feed_ops *ops;
    void *user;
    struct rpc_server *server;
    struct listener listener; /* the server's */
    struct keeper *keeper;    /* of its socket */
    struct checkpoint_watch *watch;
    const struct kubelet_file *file; /* the watch's; NULL: not read yet, and nothing is sent */
    struct advertised advertised;
    struct watchers watchers;
    struct questions questions;
    struct drivers_shown drivers;
    struct health_shown health;
    struct claim_questions claim_questions;
    Bridge__V1__Settings settings; /* the bridge's part of them */
    uint64_t settle_end_ms;
    bool settled;    /* something may be sent; stays so */
    uv_timer_t turn; /* to look at the core, or at streams that were full */
    struct stopping stopping;
};

/* What the kubelet's checkpoint says, unless it is just being read. */
static const struct kubelet_file *current_file(const struct feed *feed)
{
    return checkpoint_watch_current(feed->watch) ? feed->file : NULL;
}

void feed_taken(const struct feed *feed, pid_t kubelet, struct taken *out)
{
    if (!feed->file)
        *out = (struct taken){.words = "the kubelet's checkpoint is being read"};
    else if (feed->advertised.core_version != devicemgr_shown_version(host_core(feed->host)))
        *out = (struct taken){.words = "what it is shown is just changing"};
    else if (!feed->settled)
        *out = (struct taken){.words = "a plugin that was there before is about to list"};
    else
        watchers_judge(&feed->watchers, &feed->advertised, current_file(feed), kubelet, out);
    watchers_note(&feed->watchers, kubelet, out);
}

bool feed_kubelet_has(const struct feed *feed, const char *resource)
{
    const struct kubelet_checkpoint *checkpoint;

    if (!feed->file)
        return true;
    checkpoint = &feed->file->checkpoint;
    for (size_t i = 0; i < checkpoint->resources_len; i++) {
        if (strcmp(checkpoint->resources[i].name, resource) == 0)
            return true;
    }
    return false;
}

/* ---- turns ---- */

static void on_turn(uv_timer_t *timer);

/* There is a turn then at the latest. */
static void turn_within(struct feed *feed, uint64_t wait_ms)
{
    uv_update_time(feed->turn.loop);
    if (!uv_is_active((uv_handle_t *)&feed->turn) || uv_timer_get_due_in(&feed->turn) > wait_ms)
        uv_timer_start(&feed->turn, on_turn, wait_ms, 0);
}

static void turn_at_once(struct feed *feed)
{
    turn_within(feed, 0);
}

/* Whether what is shown may be sent; if not yet, there will be another turn. */
static bool settle(struct feed *feed)
{
    uint64_t now_ms = boot_now_ms();

    feed->settled = feed->settled || !feed->advertised.expected || now_ms >= feed->settle_end_ms;
    if (!feed->settled)
        turn_within(feed, feed->settle_end_ms - now_ms);
    return feed->settled;
}

/* What the kubelet has let go of is to be registered anew. */
static void look_for_lost(struct feed *feed)
{
    uint64_t now_ms = boot_now_ms(), next_ms = UINT64_MAX;

    for (size_t i = 0; i < feed->advertised.len; i++) {
        struct advertised_list *list = &feed->advertised.lists[i];
        enum displaced_seen seen = watchers_look(&feed->watchers, list, current_file(feed));

        if (displaced_step(&list->displaced, seen, now_ms)) {
            log_write_about(
                LOG_LEVEL_WARNING, &(struct log_about){.resource = list->resource},
                "resource %s: the kubelet has no healthy device of it: a plugin that "
                "registered with the kubelet itself has taken it over, and has gone or has "
                "none; it is registered anew",
                list->resource);
            advertised_set_lost(&feed->advertised, list);
        }
        if (seen == DISPLACED_YES && displaced_next_ms(&list->displaced) < next_ms)
            next_ms = displaced_next_ms(&list->displaced);
    }
    if (next_ms != UINT64_MAX)
        turn_within(feed, next_ms - now_ms);
}

/* Who waits for the kubelet to let go of a device hears that it has, of the list as it is now. */
static void tell_taken(struct feed *feed)
{
    struct devicemgr *core = host_core(feed->host);
    bool told = false;

    for (size_t i = 0; i < feed->advertised.len; i++) {
        const struct advertised_list *list = &feed->advertised.lists[i];

        if (!devicemgr_replacing(core, list->resource) ||
            !watchers_stored(&feed->watchers, list, current_file(feed)))
            continue;
        devicemgr_kubelet_took(core, boot_now_ms(), list->resource);
        told = true;
    }
    if (told)
        host_kick(feed->host);
}

static void show_drivers(struct feed *feed)
{
    uint64_t next_ms;

    if (!drivers_shown_update(&feed->drivers))
        turn_within(feed, FEED_RETRY_MS);
    next_ms = drivers_shown_next_ms(&feed->drivers);
    if (next_ms != UINT64_MAX)
        turn_within(feed, boot_left_ms(next_ms));
}

static void on_turn(uv_timer_t *timer)
{
    struct feed *feed = timer->data;

    if (host_ready(feed->host))
        show_drivers(feed);
    /* Behind the drivers: of one that the bridge does not know yet it hears first that it is
     * there. */
    if (!health_shown_update(&feed->health))
        turn_within(feed, FEED_RETRY_MS);
    if (!feed->file)
        return;
    if (advertised_update(&feed->advertised, host_core(feed->host)) == ADVERTISED_NAMES) {
        /* What is held of a resource that was not shown was not taken by the core. */
        held_tell(feed->host, feed->file);
        host_kick(feed->host);
        advertised_update(&feed->advertised, host_core(feed->host));
    }
    if (settle(feed)) {
        look_for_lost(feed);
        tell_taken(feed);
        if (!watchers_update(&feed->watchers, &feed->advertised, feed->config->bridge.mask_ms))
            turn_within(feed, FEED_RETRY_MS);
    }
    feed->ops->changed(feed->user);
}

void feed_look(struct feed *feed)
{
    /* In the next turn: an event of the core is often one of many. */
    if (devicemgr_shown_version(host_core(feed->host)) != feed->advertised.core_version ||
        drivers_shown_is_due(&feed->drivers))
        turn_at_once(feed);
}

/* ---- settings ---- */

/* The numbers are those of the config. */
_Static_assert((int)BRIDGE__V1__LOG_FORMAT__LOGFMT == CONFIG_LOG_LOGFMT &&
                   (int)BRIDGE__V1__LOG_FORMAT__JSON == CONFIG_LOG_JSON &&
                   (int)BRIDGE__V1__LOG_FORMAT__PLAIN == CONFIG_LOG_PLAIN &&
                   (int)BRIDGE__V1__LOG_FORMAT__JOURNAL == CONFIG_LOG_JOURNAL,
               "another format is told");

void feed_settings_read(struct feed *feed, const struct settings *settings)
{
    const struct config *config = &settings->config;
    Bridge__V1__Settings *out = &feed->settings;

    bridge__v1__settings__init(out);
    out->log_level_set = settings->level_set;
    if (!settings->degraded[0]) {
        out->read_ms = settings->read_ms;
        out->log_level = config->log_level;
        out->log_format = (Bridge__V1__LogFormat)config->log_format;
        out->kubelet_plugin_dir = config->bridge.kubelet_plugin_dir;
        out->preferred_timeout_ms = config->bridge.preferred_timeout_ms;
    }
    feed->questions.timeout_ms = config->bridge.preferred_timeout_ms;
    advertised_set_settings(&feed->advertised, out);
    turn_at_once(feed);
}

/* ---- calls ---- */

static void on_gone(void *user)
{
    struct feed *feed = user;

    feed->ops->changed(feed->user);
}

static void on_watch(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct feed *feed = user;

    if (watchers_add(&feed->watchers, call, (const Bridge__V1__WatchRequest *)message))
        turn_at_once(feed);
}

static void on_report(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct feed *feed = user;
    bool stores;

    if (!watchers_report(&feed->watchers, call, (const Bridge__V1__ReportRequest *)message,
                         &stores))
        return;
    if (stores)
        checkpoint_watch_read(feed->watch);
    feed->ops->changed(feed->user);
}

static void on_prefer(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct feed *feed = user;

    questions_ask(&feed->questions, call, (const Bridge__V1__PreferRequest *)message);
}

void feed_preferred(struct feed *feed, uint64_t number, const char *const *ids, size_t ids_len)
{
    questions_answer(&feed->questions, number, ids, ids_len);
}

static void on_watch_drivers(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct feed *feed = user;

    (void)message;
    if (drivers_shown_add(&feed->drivers, call))
        turn_at_once(feed);
}

static void on_watch_health(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct feed *feed = user;

    (void)message;
    if (health_shown_add(&feed->health, call))
        turn_at_once(feed);
}

void feed_driver_health(struct feed *feed, const char *driver, uint64_t instance,
                        const DraHealth__V1alpha1__NodeWatchResourcesResponse *health)
{
    health_shown_say(&feed->health, driver, instance, health);
    turn_at_once(feed);
}

static void on_prepare_claims(struct rpc_incoming *call, const ProtobufCMessage *message,
                              void *user)
{
    struct feed *feed = user;

    claim_questions_ask(&feed->claim_questions, call, true,
                        (const Bridge__V1__ClaimsRequest *)message);
}

static void on_unprepare_claims(struct rpc_incoming *call, const ProtobufCMessage *message,
                                void *user)
{
    struct feed *feed = user;

    claim_questions_ask(&feed->claim_questions, call, false,
                        (const Bridge__V1__ClaimsRequest *)message);
}

void feed_show_drivers_away(struct feed *feed, bool away_too)
{
    drivers_shown_set_away_too(&feed->drivers, away_too);
    feed_look(feed);
}

bool feed_shows_driver(const struct feed *feed, const char *driver)
{
    return drivers_shown_has(&feed->drivers, driver);
}

bool feed_kubelet_has_driver(const struct feed *feed, const char *driver)
{
    return watchers_have_driver(&feed->watchers, driver);
}

const struct health_words *feed_health(const struct feed *feed)
{
    return &feed->health.words;
}

void feed_claim_done(struct feed *feed, uint64_t number, const struct devicemgr_claim_done *done)
{
    claim_questions_answer(&feed->claim_questions, number, done);
}

static const struct rpc_method METHODS[] = {
    {BRIDGE_WATCH, &bridge__v1__watch_request__descriptor, on_watch},
    {BRIDGE_REPORT, &bridge__v1__report_request__descriptor, on_report},
    {BRIDGE_PREFER, &bridge__v1__prefer_request__descriptor, on_prefer},
    {BRIDGE_WATCH_DRIVERS, &bridge__v1__watch_drivers_request__descriptor, on_watch_drivers},
    {BRIDGE_WATCH_HEALTH, &bridge__v1__watch_health_request__descriptor, on_watch_health},
    {BRIDGE_PREPARE_CLAIMS, &bridge__v1__claims_request__descriptor, on_prepare_claims},
    {BRIDGE_UNPREPARE_CLAIMS, &bridge__v1__claims_request__descriptor, on_unprepare_claims},
};

/* ---- the kubelet's checkpoint ---- */

static void on_file(void *user, const struct kubelet_file *file)
{
    struct feed *feed = user;

    feed->file = file;
    held_tell(feed->host, feed->file);
    host_kick(feed->host);
    turn_at_once(feed); /* also if nothing has changed: it may be the first time */
}

static const struct checkpoint_watch_ops WATCH_OPS = {.read = on_file};

/* ---- what becomes of it ---- */

size_t feed_queued_max(const struct feed *feed)
{
    return rpc_server_queued_max(feed->server);
}

const char *feed_trouble(const struct feed *feed, uint64_t *since_ms)
{
    return keeper_trouble(feed->keeper, since_ms);
}

void feed_look_at_bridge(const struct feed *feed, struct watchers_bridge *out)
{
    watchers_look_at_bridge(&feed->watchers, out);
}

/* ---- life ---- */

static int serve(void *user)
{
    struct feed *feed = user;

    return listener_look(&feed->listener);
}

static void open_socket(struct feed *feed, uv_loop_t *loop, struct fd_store *store)
{
    const char *path = feed->config->bridge.socket;
    const struct socket_place place = {.dir_mode = SOCKET_DIRECTORY_MODE, .name = path};
    char what[PATH_MAX + 64];

    if (rpc_server_new(loop, &place, METHODS, sizeof METHODS / sizeof *METHODS, feed,
                       &feed->server) < 0)
        abort(); /* out of memory */
    rpc_server_set_pings(feed->server, FEED_PINGS_MS);
    listener_init(&feed->listener, feed->server, store, STORED_NAME);
    snprintf(what, sizeof what, "bridge.socket = \"%s\"", path);
    feed->keeper = keeper_start(loop, what, serve, feed);
}

struct feed *feed_start(uv_loop_t *loop, const struct config *config, struct host *host,
                        struct fd_store *store, const struct feed_ops *ops, void *user)
{
    struct feed *feed = must(calloc(1, sizeof *feed));

    feed->config = config;
    feed->host = host;
    feed->ops = ops;
    feed->user = user;
    watchers_init(&feed->watchers, on_gone, feed);
    questions_init(&feed->questions, host, config->bridge.preferred_timeout_ms);
    drivers_shown_init(&feed->drivers, config, host);
    health_shown_init(&feed->health);
    claim_questions_init(&feed->claim_questions, host);
    open_socket(feed, loop, store);
    feed->settle_end_ms = boot_now_ms() + FEED_SETTLE_MS;
    uv_timer_init(loop, &feed->turn);
    feed->turn.data = feed;
    feed->watch = checkpoint_watch_start(loop, config->bridge.kubelet_plugin_dir, &WATCH_OPS, feed);
    return feed;
}

void feed_stop(struct feed *feed, void (*done)(void *user), void *user)
{
    feed->stopping = (struct stopping){2, free, feed, done, user}; /* the watch, the timer */
    keeper_stop(feed->keeper);
    listener_fini(&feed->listener);
    rpc_server_close(feed->server);
    watchers_fini(&feed->watchers);
    questions_fini(&feed->questions);
    drivers_shown_fini(&feed->drivers);
    health_shown_fini(&feed->health);
    claim_questions_fini(&feed->claim_questions);
    advertised_fini(&feed->advertised);
    checkpoint_watch_stop(feed->watch, stopping_part, &feed->stopping);
    stopping_close(&feed->stopping, (uv_handle_t *)&feed->turn);
}
