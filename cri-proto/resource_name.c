#include "cri-proto/resource_name.h"

#include <string.h>

#include "cri-proto/kube_name.h"

/* What the kubelet puts in front before it applies the rule of qualified names. */
#define QUOTA_PREFIX "requests."

bool resource_name_valid(const char *name)
{
    const char *slash = strchr(name, '/');

    return slash && !strstr(name, "kubernetes.io/") &&
           strncmp(name, QUOTA_PREFIX, strlen(QUOTA_PREFIX)) != 0 &&
           (size_t)(slash - name) + strlen(QUOTA_PREFIX) <= KUBE_SUBDOMAIN_BYTES_MAX &&
           kube_name_is_qualified(name);
}
