#include "shim/registry/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "shim/boot.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/registry/handshake.h"
#include "shim/registry/info.h"
#include "shim/registry/kubelet_link.h"
#include "shim/registry/limits.h"
#include "shim/registry/sockets.h"
#include "shim/stopping.h"

/* How often the links in the kubelet's directory are looked at, as long as there are any. */
#define LINKS_LOOK_MS 1000
#define FAILED_BYTES_MAX (INFO_WORDS_BYTES_MAX + 128)

/* One socket. */
struct candidate {
    struct registry *registry;
    LIST_ENTRY(candidate) entry;
    const char *path; /* this and the next are the sockets' */
    int file;
    struct handshake *handshake;
    uint64_t registration; /* 0: none, or not any more */
    bool answered;
    bool linked;    /* it is the kubelet's */
    char *endpoint; /* of the registration, */
    char *driver;   /* and whose it is; NULL: no driver's */
    uid_t uid;
};

struct registry {
    uv_loop_t *loop;
    const char *kubelet_directory;
    char boot_id[BOOT_ID_BYTES_MAX];
    const struct registry_ops *ops;
    void *user;
    struct sockets *sockets;
    LIST_HEAD(, candidate) candidates; /* the newest first */
    uv_timer_t links_timer;
    int links_error; /* of the last look at the links */
    uint64_t last_number;
    bool over; /* nothing is told any more */
    struct stopping stopping;
};

/* ---- what is the kubelet's ---- */

static void tell_links(struct registry *r, int error)
{
    if (error && error != r->links_error)
        log_warning(
            "kubelet_registry_dir = \"%s\": %s; what registers with the kubelet waits for it",
            r->kubelet_directory, strerror(-error));
    else if (!error && r->links_error)
        log_info("kubelet_registry_dir = \"%s\": works now", r->kubelet_directory);
    r->links_error = error;
}

static void on_links_look(uv_timer_t *timer)
{
    struct registry *r = timer->data;
    int error = 0, made;
    bool any = false;
    struct candidate *c;

    LIST_FOREACH(c, &r->candidates, entry) {
        if (!c->linked)
            continue;
        any = true;
        made = kubelet_link_make(r->kubelet_directory, r->boot_id, c->path, c->file);
        if (made > 0)
            log_info("registration socket %s is the kubelet's: linked into %s", c->path,
                     r->kubelet_directory);
        error = made < 0 ? made : error;
    }
    tell_links(r, error);
    if (any)
        uv_timer_start(timer, on_links_look, LINKS_LOOK_MS, 0);
}

static void pass_on(struct candidate *c, const char *type)
{
    struct registry *r = c->registry;
    char words[FAILED_BYTES_MAX];

    if (!*r->kubelet_directory) {
        snprintf(words, sizeof words,
                 "RegisterPlugin error -- no handler registered for plugin type: %.128s at socket "
                 "%.256s",
                 type, c->path);
        handshake_answer(c->handshake, words);
        return;
    }
    c->linked = true;
    handshake_leave(c->handshake);
    uv_timer_start(&r->links_timer, on_links_look, 0, 0);
}

/* ---- one socket ---- */

static void forget(struct candidate *c)
{
    c->registration = 0;
    free(c->endpoint);
    free(c->driver);
    c->endpoint = c->driver = NULL;
}

/* It is not registered any more, if it was or was about to be. */
static void withdraw(struct candidate *c)
{
    struct registry *r = c->registry;
    uint64_t registration = c->registration;

    forget(c);
    if (registration && !r->over)
        r->ops->gone(r->user, registration);
}

static bool is_of(const struct candidate *c, const char *driver)
{
    return c->registration && c->driver && strcmp(c->driver, driver) == 0;
}

/* Of a driver with many the oldest that nobody serves goes for another. */
static void make_room(struct registry *r, const char *driver)
{
    struct candidate *c, *dead = NULL;
    size_t count = 0;

    LIST_FOREACH(c, &r->candidates, entry) {
        count += is_of(c, driver);
    }
    if (count < REGISTRY_OF_ONE_DRIVER)
        return;
    LIST_FOREACH(c, &r->candidates, entry) {
        if (is_of(c, driver) && c->answered && handshake_is_dead(c->handshake))
            dead = c; /* who came first is last */
    }
    if (!dead)
        return;
    withdraw(dead);
    handshake_anew(dead->handshake);
}

static void begin(struct candidate *c, const Pluginregistration__PluginInfo *info)
{
    struct registry *r = c->registry;

    if (info_kind(info) == INFO_DRIVER)
        make_room(r, info->name);
    c->registration = REGISTRY_NUMBER_BIT | ++r->last_number;
    c->answered = false;
    c->endpoint = must(strdup(info_endpoint(info, c->path)));
    c->driver = info_kind(info) == INFO_DRIVER ? must(strdup(info->name)) : NULL;
    if (info_kind(info) == INFO_DRIVER)
        r->ops->driver(r->user, c->registration, info->name, c->endpoint,
                       (const char *const *)info->supported_versions, info->n_supported_versions);
    else
        r->ops->plugin(r->user, c->registration, info->name, c->endpoint, c->uid);
}

/* `step` is the kubelet's word for where it failed. */
static void fail(struct candidate *c, const char *step, const char *wrong)
{
    char words[FAILED_BYTES_MAX];

    forget(c);
    snprintf(words, sizeof words, "RegisterPlugin error -- plugin %s failed with err: %s", step,
             wrong);
    handshake_answer(c->handshake, words);
}

static void on_asked(void *user, const Pluginregistration__PluginInfo *info, uid_t uid)
{
    struct candidate *c = user;
    char wrong[INFO_WORDS_BYTES_MAX];

    c->uid = uid;
    if (info_kind(info) == INFO_OTHER) {
        pass_on(c, info->type);
    } else if (!info_check(info, c->path, wrong)) {
        fail(c, "validation", wrong);
    } else {
        begin(c, info);
    }
}

static void on_refused(void *user)
{
    withdraw(user);
}

static const struct handshake_ops HANDSHAKE_OPS = {.asked = on_asked, .refused = on_refused};

static void *on_came(void *user, const char *path, int file)
{
    struct registry *r = user;
    struct candidate *c = must(calloc(1, sizeof *c));

    c->registry = r;
    c->path = path;
    c->file = file;
    LIST_INSERT_HEAD(&r->candidates, c, entry);
    c->handshake = handshake_start(r->loop, path, file, &HANDSHAKE_OPS, c);
    return c;
}

static void on_went(void *user, void *socket)
{
    struct registry *r = user;
    struct candidate *c = socket;

    LIST_REMOVE(c, entry);
    handshake_stop(c->handshake);
    /* Also one of a daemon before this one, of which it is not known yet what it is. */
    if (*r->kubelet_directory && !r->over)
        kubelet_link_remove(r->kubelet_directory, r->boot_id, c->path);
    withdraw(c);
    free(c);
}

static bool on_dead(void *user, const void *socket)
{
    const struct candidate *c = socket;

    (void)user;
    return handshake_is_dead(c->handshake);
}

static const struct sockets_ops SOCKETS_OPS = {.came = on_came, .went = on_went, .dead = on_dead};

/* ---- its owner's ---- */

struct registry *registry_start(uv_loop_t *loop, const char *directory,
                                const char *kubelet_directory, const struct registry_ops *ops,
                                void *user)
{
    struct registry *r = must(calloc(1, sizeof *r));

    r->loop = loop;
    r->kubelet_directory = kubelet_directory;
    r->ops = ops;
    r->user = user;
    LIST_INIT(&r->candidates);
    uv_timer_init(loop, &r->links_timer);
    r->links_timer.data = r;
    boot_id_read(r->boot_id);
    if (*kubelet_directory)
        kubelet_link_clean(kubelet_directory, r->boot_id);
    r->sockets = sockets_start(
        loop,
        &(struct sockets_place){.directory = directory, .setting = "registry_dir", .is_ours = true},
        &SOCKETS_OPS, r);
    return r;
}

/* NULL: it is not pending. */
static struct candidate *find_pending(struct registry *r, uint64_t registration)
{
    struct candidate *c;

    LIST_FOREACH(c, &r->candidates, entry) {
        if (c->registration == registration && !c->answered)
            break;
    }
    return c;
}

void registry_answer(struct registry *r, uint64_t registration, const char *error)
{
    struct candidate *c = find_pending(r, registration);

    if (!c)
        return;
    c->answered = !error;
    if (error)
        fail(c, "registration", error);
    else
        handshake_answer(c->handshake, NULL);
}

void registry_refuse(struct registry *r, uint64_t registration, const char *wrong)
{
    struct candidate *c = find_pending(r, registration);

    if (c)
        fail(c, "validation", wrong);
}

bool registry_peer(const struct registry *r, uint64_t registration, uid_t *uid)
{
    const struct candidate *c;

    LIST_FOREACH(c, &r->candidates, entry) {
        if (c->registration == registration) {
            *uid = c->uid;
            return true;
        }
    }
    return false;
}

static bool is_at(const struct candidate *c, const char *endpoint)
{
    return c->endpoint && strcmp(c->endpoint, endpoint) == 0;
}

bool registry_has_endpoint(const struct registry *r, const char *endpoint)
{
    const struct candidate *c;

    LIST_FOREACH(c, &r->candidates, entry) {
        if (is_at(c, endpoint))
            return true;
    }
    return false;
}

bool registry_waits_at(const struct registry *r, const char *endpoint)
{
    const struct candidate *c;

    LIST_FOREACH(c, &r->candidates, entry) {
        if (!c->answered && is_at(c, endpoint))
            return true;
    }
    return false;
}

const char *registry_trouble(const struct registry *r, uint64_t *since_ms)
{
    return sockets_trouble(r->sockets, since_ms);
}

void registry_stop(struct registry *r, void (*done)(void *user), void *user)
{
    r->over = true;
    r->stopping = (struct stopping){2, free, r, done, user};
    stopping_close(&r->stopping, (uv_handle_t *)&r->links_timer);
    sockets_stop(r->sockets, stopping_part, &r->stopping);
}
