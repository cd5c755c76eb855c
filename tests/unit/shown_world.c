#include "shown_world.h"

#include <stdio.h>

static const char *const ALL[] = {"*"};

/* ---- what is shown, as text ---- */

struct report {
    char text[4096];
    size_t len;
};

static void report_add(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void report_add(struct report *report, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report->len += (size_t)vsnprintf(report->text + report->len, sizeof report->text - report->len,
                                     format, args);
    va_end(args);
    assert_true(report->len < sizeof report->text);
}

/* "g0 g1! g2+ g3@1": g1 unhealthy, g2 held, g3 on NUMA node 1 */
static void add_device(void *user, const struct devicemgr_shown_device *d)
{
    struct report *report = user;

    report_add(report, "%s%s%s%s", report->len ? " " : "", d->id, d->healthy ? "" : "!",
               d->held ? "+" : "");
    for (size_t i = 0; i < d->numa_nodes_len; i++)
        report_add(report, "@%d", (int)d->numa_nodes[i]);
}

static void add_resource(void *user, const struct devicemgr_shown *shown)
{
    struct report *report = user;

    assert_int_not_equal(shown->version, 0);
    report_add(report, "%s%s", report->len ? ", " : "", shown->resource);
}

void expect_resources(struct world *w, const char *expected)
{
    struct report report = {0};

    devicemgr_shown(w->mgr, add_resource, &report);
    assert_string_equal(report.text, expected);
}

struct wanted {
    const char *resource;
    struct devicemgr_shown shown;
};

static void find_wanted(void *user, const struct devicemgr_shown *shown)
{
    struct wanted *wanted = user;

    if (strcmp(shown->resource, wanted->resource) == 0)
        wanted->shown = *shown;
}

static struct devicemgr_shown shown_of(struct world *w, const char *resource)
{
    struct wanted wanted = {.resource = resource};

    devicemgr_shown(w->mgr, find_wanted, &wanted);
    return wanted.shown;
}

uint64_t version_of(struct world *w, const char *resource)
{
    return shown_of(w, resource).version;
}

uint64_t mask_end_of(struct world *w, const char *resource)
{
    return shown_of(w, resource).mask_end_ms;
}

struct seen seen[2];

void forget_seen(void)
{
    memset(seen, 0, sizeof seen);
    seen[0].resource = GPU;
    seen[1].resource = NIC;
}

void look(struct world *w, struct seen *before)
{
    struct seen now = {.resource = before->resource,
                       .version = version_of(w, before->resource),
                       .version_of_all = devicemgr_shown_version(w->mgr),
                       .mask_end_ms = mask_end_of(w, before->resource)};
    struct report report = {0};

    devicemgr_shown_devices(w->mgr, now.resource, add_device, &report);
    strcpy(now.text, report.text);
    assert_int_not_equal(now.version_of_all, 0);
    if (strcmp(now.text, before->text) != 0)
        assert_int_not_equal(now.version, before->version);
    if (now.version != before->version || now.mask_end_ms != before->mask_end_ms)
        assert_int_not_equal(now.version_of_all, before->version_of_all);
    *before = now;
}

void expect_shown(struct world *w, const char *resource, const char *expected)
{
    struct seen *of = &seen[strcmp(resource, GPU) == 0 ? 0 : 1];

    look(w, of);
    assert_string_equal(of->text, expected);
}

/* ---- the world ---- */

int mask_setup(void **state)
{
    struct world *w;

    forget_seen();
    world_setup(state);
    w = *state;
    w->settings.mask_ms = MASK_MS;
    w->settings.annotations = true;
    w->settings.namespaces = ALL;
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
    kubelet_holds(w, "");
    devicemgr_kubelet_started(w->mgr, w->now_ms);
    return 0;
}

/* For good: the redial fails, too. */
void lose(struct world *w)
{
    plugin_lost(w, w->endpoint, "killed");
    plugin_lost(w, w->endpoint, "refused");
    ignore_all(w);
}

/* Time passes; what is to be stored is. */
void pass_stored(struct world *w, uint64_t ms)
{
    pass(w, ms);
    if (w->pending)
        committed(w);
    ignore_all(w);
}

void restart(struct world *w)
{
    world_restart(w);
    ignore_all(w);
    forget_seen(); /* versions begin anew */
}

/* The plugin that was dialled after a restart serves. */
void serve(struct world *w, const char *devices)
{
    plugin_back(w, devices);
    if (w->pending)
        committed(w);
    ignore_all(w);
}

void kubelet_starts(struct world *w)
{
    devicemgr_kubelet_started(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
}

void sandbox_ended(struct world *w, const char *id)
{
    sandbox_stopping(w, id);
    sandbox_stopped(w, id);
}
