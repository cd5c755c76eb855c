#include "shim/registry/elsewhere.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "shim/kubelet_registry.h"
#include "shim/must.h"
#include "shim/registry/handshake.h"
#include "shim/registry/info.h"
#include "shim/registry/registry.h"
#include "shim/registry/sockets.h"
#include "shim/stopping.h"

/* While they are asked: nothing tells of what is mounted over the directory. */
#define LOOK_AGAIN_MS 1000

/* A socket that is none of ours. */
struct other {
    struct elsewhere *elsewhere;
    LIST_ENTRY(other) entry;
    const char *path; /* this and the next are the sockets' */
    int file;
    struct handshake *handshake; /* NULL: it is not asked */
    uint64_t number;             /* 0: it is no driver, as far as it is known; or */
    char *unwanted;              /* it is one by this name, of which nobody wants to know */
};

struct elsewhere {
    uv_loop_t *loop;
    const char *directory;
    uint64_t from_ms; /* nobody is asked before, the loop's time */
    const struct elsewhere_ops *ops;
    void *user;
    struct sockets *sockets; /* NULL: nobody has ever asked */
    LIST_HEAD(, other) others;
    uv_timer_t timer; /* of what elsewhere_ask() has said, and of the next look */
    bool asks, asked; /* and what is so */
    uint64_t last_number;
    bool over;
    struct stopping stopping;
};

/* ---- one socket ---- */

static void on_asked(void *user, const Pluginregistration__PluginInfo *info, uid_t uid)
{
    struct other *other = user;
    struct elsewhere *e = other->elsewhere;
    char wrong[INFO_WORDS_BYTES_MAX];

    handshake_leave(other->handshake);
    if (info_kind(info) != INFO_DRIVER || !info_check(info, other->path, wrong))
        return;
    other->number = REGISTRY_NUMBER_BIT | ELSEWHERE_NUMBER_BIT | ++e->last_number;
    if (e->ops->driver(e->user, other->number, info->name, info_endpoint(info, other->path),
                       (const char *const *)info->supported_versions, info->n_supported_versions,
                       uid))
        return;
    other->number = 0;
    other->unwanted = must(strdup(info->name));
}

static const struct handshake_ops HANDSHAKE_OPS = {.asked = on_asked, .quiet = true};

static void begin(struct other *other)
{
    other->handshake =
        handshake_start(other->elsewhere->loop, other->path, other->file, &HANDSHAKE_OPS, other);
}

static void end(struct other *other)
{
    struct elsewhere *e = other->elsewhere;
    uint64_t number = other->number;

    handshake_stop(other->handshake);
    other->handshake = NULL;
    other->number = 0;
    free(other->unwanted);
    other->unwanted = NULL;
    if (number && !e->over)
        e->ops->gone(e->user, number);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void *on_came(void *user, const char *path, int file)
{
    struct elsewhere *e = user;
    struct other *other = must(calloc(1, sizeof *other));

    *other = (struct other){.elsewhere = e, .path = path, .file = file};
    LIST_INSERT_HEAD(&e->others, other, entry);
    if (e->asked && !kubelet_registry_is_ours(name_of(path)))
        begin(other);
    return other;
}

static void on_went(void *user, void *socket)
{
    struct other *other = socket;

    (void)user;
    LIST_REMOVE(other, entry);
    end(other);
    free(other);
}

static const struct sockets_ops SOCKETS_OPS = {.came = on_came, .went = on_went};

/* ---- whether they are asked ---- */

static void on_turn(uv_timer_t *timer);

static void look(struct elsewhere *e)
{
    const struct sockets_place place = {.directory = e->directory,
                                        .setting = "kubelet_registry_dir"};

    if (!e->sockets)
        e->sockets = sockets_start(e->loop, &place, &SOCKETS_OPS, e);
    else
        sockets_look(e->sockets);
    uv_timer_start(&e->timer, on_turn, LOOK_AGAIN_MS, 0);
}

static void on_turn(uv_timer_t *timer)
{
    struct elsewhere *e = timer->data;
    bool changed = e->asked != e->asks;
    struct other *other;

    e->asked = e->asks;
    if (e->asked)
        look(e);
    if (!changed)
        return;
    LIST_FOREACH(other, &e->others, entry) {
        if (!e->asked)
            end(other);
        else if (!kubelet_registry_is_ours(name_of(other->path)))
            begin(other);
    }
}

void elsewhere_ask(struct elsewhere *e, bool ask)
{
    uint64_t now_ms = uv_now(e->loop);

    if (!*e->directory || ask == e->asks)
        return;
    e->asks = ask;
    uv_timer_start(&e->timer, on_turn, now_ms < e->from_ms ? e->from_ms - now_ms : 0, 0);
}

void elsewhere_known(struct elsewhere *e, const char *name)
{
    struct other *other;

    LIST_FOREACH(other, &e->others, entry) {
        if (!other->unwanted || strcmp(other->unwanted, name) != 0)
            continue;
        end(other);
        begin(other);
    }
}

/* ---- life ---- */

struct elsewhere *elsewhere_start(uv_loop_t *loop, const char *directory, uint64_t from_ms,
                                  const struct elsewhere_ops *ops, void *user)
{
    struct elsewhere *e = must(calloc(1, sizeof *e));

    e->loop = loop;
    e->directory = directory;
    e->from_ms = from_ms;
    e->ops = ops;
    e->user = user;
    LIST_INIT(&e->others);
    uv_timer_init(loop, &e->timer);
    e->timer.data = e;
    return e;
}

void elsewhere_stop(struct elsewhere *e, void (*done)(void *user), void *user)
{
    e->over = true;
    e->stopping = (struct stopping){1, free, e, done, user};
    if (e->sockets) {
        e->stopping.parts++;
        sockets_stop(e->sockets, stopping_part, &e->stopping);
    }
    stopping_close(&e->stopping, (uv_handle_t *)&e->timer);
}
