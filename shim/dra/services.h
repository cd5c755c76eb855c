/*
 * Which of the gRPC services that a DRA driver says it has is called, as the kubelet chooses
 * (pkg/kubelet/cm/dra/plugin, validateSupportedServices). Texts in, values out; no state.
 */
#ifndef SHIM_DRA_SERVICES_H
#define SHIM_DRA_SERVICES_H

#include <stdbool.h>
#include <stddef.h>

#define SERVICES_WORDS_BYTES_MAX 1024

enum driver_service {
    DRIVER_V1,
    DRIVER_V1BETA1,
    DRIVER_ALPHA, /* that of Kubernetes 1.31, in the directory v1alpha4 */
};

/*
 * The first in the driver's order that is known here. A list that has entries and names no service,
 * such as that of a driver which gives its own version, "1.0.0", is one of the alpha's time. False:
 * none will do, and `words` say so as the kubelet would; they are ASCII and printable.
 */
bool services_choose(const char *const *services, size_t services_len, enum driver_service *out,
                     char words[static SERVICES_WORDS_BYTES_MAX])
    __attribute__((warn_unused_result));

/* Whether it says that it tells of its devices' health (v1alpha1). */
bool services_have_health(const char *const *services, size_t services_len);

#endif
