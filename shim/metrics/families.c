#include "shim/metrics/families.h"

#include "shim/version.h"

/* ---- the device manager ---- */

struct resources {
    struct exposition *e;
    unsigned n;
    bool allocatable; /* which of the two is put */
};

static void put_resource(void *user, const struct devicemgr_capacity *capacity)
{
    struct resources *resources = user;
    double value = resources->allocatable ? (double)capacity->allocatable
                                          : (double)(capacity->capacity - capacity->allocatable);

    if (resources->n++ < METRICS_RESOURCES_MAX)
        exposition_sample(resources->e, value, "resource", capacity->resource, "health",
                          resources->allocatable ? "healthy" : "unhealthy", NULL);
}

static void put_devices(struct exposition *e, const struct devicemgr *core)
{
    struct resources healthy = {.e = e, .allocatable = true}, unhealthy = {.e = e};

    exposition_family(e, "devices", GAUGE,
                      "Devices listed; all of a plugin that is away are unhealthy.");
    devicemgr_capacity(core, put_resource, &healthy);
    devicemgr_capacity(core, put_resource, &unhealthy);
}

static void put_gauge(struct exposition *e, const char *name, const char *help, double value)
{
    exposition_family(e, name, GAUGE, help);
    exposition_sample(e, value, NULL);
}

static void put_core(struct exposition *e, const struct devicemgr *core)
{
    struct devicemgr_kept kept;

    devicemgr_kept(core, &kept);
    put_gauge(e, "creates", "CreateContainer calls that wait for a device or its answer.",
              (double)kept.creates);
    put_gauge(e, "plugin_calls", "Calls of plugins under way for those.", (double)kept.calls);
    put_gauge(e, "allocations", "Containers' devices that are kept, one for each resource.",
              (double)kept.allocations);
    put_gauge(e, "pods", "Pods known.", (double)kept.pods);
    put_devices(e, core);
}

/* ---- the daemon ---- */

static void put_build(struct exposition *e)
{
    exposition_family(e, "build_info", GAUGE, "The version and commit that runs.");
    exposition_sample(e, 1, "version", version_text, NULL);
}

void families_put(struct exposition *e, const struct metrics_view *view)
{
    put_build(e);
    put_gauge(e, "ready", "Whether /readyz says so.", view->not_ready ? 0 : 1);
    put_gauge(e, "settings_degraded", "Whether the settings are not those of the file.",
              view->settings->degraded[0] ? 1 : 0);
    put_core(e, host_core(view->host));
}
