/*
 * The annotations by which a pod asks for devices, one for each container that does.
 */
#ifndef TESTS_SIM_POD_REQUESTS_H
#define TESTS_SIM_POD_REQUESTS_H

#include <stddef.h>

#include "devicemgr/devicemgr.h"
#include "tests/sim/kubelet.h"

struct pod_requests {
    struct devicemgr_annotation v[POD_CONTAINERS_MAX]; /* into the texts */
    char keys[POD_CONTAINERS_MAX][64], values[POD_CONTAINERS_MAX][128];
    size_t len;
};

/* Must not be moved afterwards. */
void pod_requests_fill(const struct pod_sim *pod, struct pod_requests *requests);

#endif
