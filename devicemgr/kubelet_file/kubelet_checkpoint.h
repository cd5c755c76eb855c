/*
 * The kubelet's own checkpoint, `kubelet_internal_checkpoint`: what its device manager knew of
 * registered resources and of the devices that containers hold (pkg/kubelet/cm/devicemanager/
 * checkpoint/checkpoint.go). Read, never written.
 *
 * Both formats: with the ids of each NUMA node, and the plain list of Kubernetes 1.19 and before.
 * The file is an upper bound: pods that are over stay in it until its next write.
 */
#ifndef DEVICEMGR_KUBELET_FILE_KUBELET_CHECKPOINT_H
#define DEVICEMGR_KUBELET_FILE_KUBELET_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "devicemgr/things/ids.h"

#define KUBELET_CHECKPOINT_FILE "kubelet_internal_checkpoint"

/* A node with 100,000 devices whose ids have 100 characters writes 20 MB: each id is in
 * RegisteredDevices, and once more where it is allocated. */
#define KUBELET_CHECKPOINT_BYTES_MAX (64u * 1024 * 1024)
#define KUBELET_CHECKPOINT_ERROR_BYTES_MAX 256

/* A device in an allocation; one that belongs to several nodes is listed under each by the kubelet,
 * and once here. */
struct kubelet_device {
    char *id;
    int64_t *nodes; /* ascending; none: no topology, or the old format (the kubelet reads that as
                       node 0, which nobody knows) */
    size_t nodes_len;
};

struct kubelet_allocation {
    char *pod_uid;
    char *container;
    char *resource;
    struct kubelet_device *devices; /* in the natural order of ids */
    size_t devices_len;
    /* What the plugin's Allocate answered; NULL: it cannot be read (the kubelet drops such an entry
     * with a log line). */
    V1beta1__ContainerAllocateResponse *options;
};

struct kubelet_resource {
    char *name;
    struct ids healthy; /* only these: none while the plugin is away */
};

struct kubelet_checkpoint {
    struct kubelet_allocation *allocations; /* in the file's order, which is no order */
    size_t allocations_len;
    struct kubelet_resource *resources; /* by name */
    size_t resources_len;
    bool with_nodes; /* false: the old format, or nothing in it that would tell */
    uint32_t checksum;
};

/*
 * Reads the file's bytes and verifies its checksum. 0, or -1 with `err` filled and `out` untouched:
 * it is no JSON, not the kubelet's, or damaged. The caller gives `out` to
 * kubelet_checkpoint_fini(). `text` is only read.
 */
int kubelet_checkpoint_parse(const char *text, size_t bytes, struct kubelet_checkpoint *out,
                             char *err, size_t err_bytes) __attribute__((warn_unused_result));

/* Accepts a zeroed struct. */
void kubelet_checkpoint_fini(struct kubelet_checkpoint *checkpoint);

#endif
