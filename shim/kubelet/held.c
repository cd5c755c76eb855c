#include "shim/kubelet/held.h"

#include "shim/boot_clock.h"
#include "shim/must.h"

static size_t count_devices(const struct kubelet_checkpoint *checkpoint)
{
    size_t count = 0;

    for (size_t i = 0; i < checkpoint->allocations_len; i++)
        count += checkpoint->allocations[i].devices_len;
    return count;
}

void held_tell(struct host *host, const struct kubelet_file *file)
{
    const struct kubelet_checkpoint *checkpoint = &file->checkpoint;
    size_t len = checkpoint->allocations_len;
    struct devicemgr_kubelet_held *held = must(calloc(len + 1, sizeof *held));
    size_t devices_len = count_devices(checkpoint), at = 0;
    const char **ids = must(calloc(devices_len + 1, sizeof *ids));
    const int64_t **nodes = must(calloc(devices_len + 1, sizeof *nodes));
    size_t *nodes_len = must(calloc(devices_len + 1, sizeof *nodes_len));

    for (size_t i = 0; i < len; i++) {
        const struct kubelet_allocation *from = &checkpoint->allocations[i];

        held[i] = (struct devicemgr_kubelet_held){.pod_uid = from->pod_uid,
                                                  .container = from->container,
                                                  .resource = from->resource,
                                                  .ids = ids + at,
                                                  .ids_len = from->devices_len,
                                                  .numa_nodes = nodes + at,
                                                  .numa_nodes_len = nodes_len + at};
        for (size_t k = 0; k < from->devices_len; k++, at++) {
            ids[at] = from->devices[k].id;
            nodes[at] = from->devices[k].nodes;
            nodes_len[at] = from->devices[k].nodes_len;
        }
    }
    devicemgr_kubelet_holds(host_core(host), boot_now_ms(), file->read_ms, held, len);
    free(nodes_len);
    free(nodes);
    free(ids);
    free(held);
}
