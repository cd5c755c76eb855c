/*
 * The kubelet of the world of replaced devices: what it is shown, gives away, and writes down.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/replace_world.h"
#include "tests/sim/world.h"

/* ---- lists ---- */

struct looked {
    unsigned shown, healthy, held;
};

static void look_at_one(void *user, const struct devicemgr_shown_device *device)
{
    struct looked *looked = user;
    char quoted[16];
    unsigned bit;

    snprintf(quoted, sizeof quoted, "\"%s\"", device->id);
    bit = replace_named(quoted);
    looked->shown |= bit;
    looked->healthy |= device->healthy ? bit : 0;
    looked->held |= device->held ? bit : 0;
}

void replace_kubelet_looks(struct replace_world *r)
{
    struct looked is = {0};

    devicemgr_shown_devices(r->core, RW_RESOURCE, look_at_one, &is);
    if (is.shown != r->shown || is.healthy != r->shown_healthy)
        r->shown_version++;
    r->shown = is.shown;
    r->shown_healthy = is.healthy;
    r->shown_held = is.held;
}

/* Its endpoint is there once the shim shows something. */
void replace_kubelet_takes_list(struct replace_world *r)
{
    if (r->kubelet_version == r->shown_version || r->shown == 0)
        return;
    if (r->kubelet_version == 0)
        replace_judge_first_list(r);
    r->kubelet_healthy = r->shown_healthy;
    r->kubelet_owed = 0;
    for (size_t i = 0; i < r->read.len; i++)
        r->kubelet_owed |= r->read.entries[i].given;
    r->kubelet_version = r->shown_version;
    replace_note(r, "the kubelet takes list %u: healthy %02x", (unsigned)r->kubelet_version,
                 r->kubelet_healthy);
}

/* ---- its checkpoint ---- */

void replace_kubelet_writes(struct replace_world *r)
{
    r->file = (struct rw_file){.healthy = r->kubelet_healthy, .version = r->kubelet_version};
    for (size_t i = 0; i < RW_PODS; i++) {
        const struct rw_pod *pod = &r->pods[i];

        if (pod->there && pod->token && pod->in_books && !pod->in_flight)
            r->file.entries[r->file.len++] = (struct rw_entry){pod->uid, pod->given, pod->init};
    }
}

static void note_read(struct replace_world *r)
{
    for (size_t i = 0; i < RW_PODS; i++) {
        struct rw_pod *pod = &r->pods[i];
        size_t at = 0;

        while (at < r->read.len && r->read.entries[at].uid != pod->uid)
            at++;
        if (at < r->read.len && !pod->read)
            pod->read_ms = r->now_ms;
        pod->read = at < r->read.len;
    }
}

void replace_kubelet_is_read(struct replace_world *r)
{
    struct devicemgr_kubelet_held held[2 * RW_PODS];
    const char *ids[RW_PODS][RW_DEVICES];
    char uids[RW_PODS][16];
    size_t len = 0;

    r->read = r->file;
    for (size_t i = 0; i < r->read.len; i++) {
        const struct rw_entry *entry = &r->read.entries[i];
        size_t ids_len = 0;

        snprintf(uids[i], sizeof uids[i], "u%u", entry->uid);
        for (size_t d = 0; d < RW_DEVICES; d++) {
            if (entry->given >> d & 1)
                ids[i][ids_len++] = replace_id(d);
        }
        for (size_t k = entry->init ? 0 : 1; k < RW_CONTAINERS; k++)
            held[len++] = (struct devicemgr_kubelet_held){.pod_uid = uids[i],
                                                          .container = k == 0 ? "init" : "main",
                                                          .resource = RW_RESOURCE,
                                                          .ids = ids[i],
                                                          .ids_len = ids_len};
    }
    replace_note(r, "the kubelet's file is read: %zu pods, healthy %02x", r->read.len,
                 r->read.healthy);
    note_read(r);
    devicemgr_kubelet_holds(r->core, r->now_ms, r->now_ms, held, len);
    replace_shim_run(r);
}

void replace_kubelet_took(struct replace_world *r)
{
    if (!devicemgr_replacing(r->core, RW_RESOURCE) || r->read.version == 0 ||
        r->read.version != r->shown_version || r->read.healthy != r->shown_healthy)
        return;
    replace_note(r, "the kubelet took list %u", (unsigned)r->read.version);
    devicemgr_kubelet_took(r->core, r->now_ms, RW_RESOURCE);
    replace_shim_run(r);
}

/* ---- pods ---- */

static unsigned in_books(const struct replace_world *r)
{
    unsigned set = 0;

    for (size_t i = 0; i < RW_PODS; i++) {
        if (r->pods[i].there && r->pods[i].in_books)
            set |= r->pods[i].given;
    }
    return set;
}

/* Any of those it takes to be free. */
static unsigned choose(struct replace_world *r, unsigned want)
{
    unsigned free = r->kubelet_healthy & ~in_books(r), set = 0;

    if (replace_count(free) < want)
        return 0;
    while (replace_count(set) < want)
        set |= free & 1u << rng_below(&r->rng, RW_DEVICES);
    return set;
}

void replace_kubelet_admits(struct replace_world *r)
{
    struct rw_pod *pod = &r->pods[rng_below(&r->rng, RW_PODS)];
    bool token = rng_percent(&r->rng, 70);
    unsigned want = rng_percent(&r->rng, 65) ? 1 : 2, given = token ? choose(r, want) : 0;

    if (pod->there || (token && !given))
        return;
    *pod = (struct rw_pod){.there = true,
                           .uid = ++r->last_uid,
                           .token = token,
                           .init = rng_percent(&r->rng, 35),
                           .want = want,
                           .given = given,
                           .in_books = token,
                           .in_flight = token};
    pod->at = pod->init ? 0 : 1;
    pod->containers[0].had = pod->containers[1].had = given;
    replace_note(r, "u%u is admitted, wants %u, is given %02x", pod->uid, want, given);
    if (!token)
        replace_pod_begins(r, pod);
}

void replace_kubelet_allocated(struct replace_world *r)
{
    for (size_t i = 0; i < RW_PODS; i++) {
        if (!r->pods[i].there || !r->pods[i].in_flight)
            continue;
        r->pods[i].in_flight = false;
        replace_kubelet_writes(r);
        replace_pod_begins(r, &r->pods[i]);
    }
}

void replace_kubelet_forgets(struct replace_world *r, struct rw_pod *pod)
{
    replace_note(r, "the kubelet forgets u%u", pod->uid);
    pod->in_books = false;
    pod->there = !pod->over;
}

/* With what it wrote down. */
void replace_kubelet_restarts(struct replace_world *r)
{
    replace_note(r, "the kubelet restarts");
    count_add(COUNT_REPLACE_KUBELET);
    for (size_t i = 0; i < RW_PODS; i++) {
        struct rw_pod *pod = &r->pods[i];

        if (pod->there && pod->in_flight) /* it is admitted anew, as another pod */
            *pod = (struct rw_pod){0};
    }
    r->kubelet_healthy = 0;
    r->kubelet_version = 0;
    r->kubelet_started_ms = r->now_ms;
    replace_kubelet_writes(r);
    devicemgr_kubelet_started(r->core, r->now_ms);
    devicemgr_kubelet_listed(r->core, r->now_ms);
    replace_shim_run(r);
}
