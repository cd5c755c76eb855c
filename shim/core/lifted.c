#include "shim/core/lifted.h"

#include <string.h>

#include "devicemgr/codes.h"
#include "devicemgr/dra.h"
#include "devicemgr/lift.h"
#include "shim/boot_clock.h"
#include "shim/core/host_state.h"

static bool is_wanted(const struct config *config)
{
    for (size_t i = 0; i < config->resources_len; i++) {
        if (config->resources[i].dra)
            return true;
    }
    return false;
}

/* The kubelet unprepares what it has in its books, also a claim that nobody has ever prepared, and
 * of which nothing is known here: its pod does not end as long as there is no such driver. */
static void on_driver(void *user, const struct devicemgr_driver *driver)
{
    bool *known = user;

    *known = *known || strcmp(driver->name, DEVICEMGR_LIFT_DRIVER) == 0;
}

void lifted_start(struct host *host)
{
    static const char *const SERVICES[] = {"v1.DRAPlugin", "v1beta1.DRAPlugin"};
    const struct devicemgr_driver_instance is = {.name = DEVICEMGR_LIFT_DRIVER,
                                                 .endpoint = "",
                                                 .services = SERVICES,
                                                 .services_len =
                                                     sizeof SERVICES / sizeof *SERVICES};
    bool wanted = is_wanted(host->config);

    if (!wanted)
        devicemgr_drivers(host->core, on_driver, &wanted);
    if (!wanted || !host->ops->lift_prepare)
        return;
    devicemgr_driver_register(host->core, boot_now_ms(), LIFTED_INSTANCE, &is);
    devicemgr_driver_connected(host->core, boot_now_ms(), LIFTED_INSTANCE);
}

void lifted_unprepare(struct host *host, uint64_t call)
{
    devicemgr_claim_answered(host->core, boot_now_ms(), call, CODE_OK, "", NULL, 0);
}

void lifted_refuse(struct host *host, uint64_t call)
{
    devicemgr_claim_answered(
        host->core, boot_now_ms(), call, CODE_UNAVAILABLE,
        "what is allocated to it is not known: nothing is known of the cluster "
        "here ([cluster] enabled)",
        NULL, 0);
}
