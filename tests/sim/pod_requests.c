#include "tests/sim/pod_requests.h"

#include "cri-proto/token.h"

#include <stdio.h>

/* "" if it asks for nothing in this way. */
static void fill_value(const struct pod_container *container, char *value, size_t bytes)
{
    size_t used = 0;

    value[0] = '\0';
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (container->count[r] > 0 && container->ids[r] == 0)
            used += (size_t)snprintf(value + used, bytes - used, "%s%s=%u", used ? ", " : "",
                                     resource_sim_name(r), container->count[r]);
    }
}

void pod_requests_fill(const struct pod_sim *pod, struct pod_requests *requests)
{
    requests->len = 0;
    for (unsigned name = 0; name < pod->containers_len; name++) {
        char *value = requests->values[requests->len], *key = requests->keys[requests->len];

        fill_value(&pod->containers[name], value, sizeof requests->values[0]);
        if (value[0] == '\0')
            continue;
        snprintf(key, sizeof requests->keys[0], TOKEN_KEY_PREFIX "%s", container_sim_name(name));
        requests->v[requests->len++] = (struct devicemgr_annotation){key, value};
    }
}
