#include "shim/cluster/pod_claims.h"

#include <string.h>

#include "cri-proto/agent_v1.pb-c.h"

struct asking {
    const char *pod; /* NULL: any */
    void (*each)(void *to, const char *pod_namespace, const char *claim);
    void *to;
};

static bool is_meant(const struct asking *asking, const Agent__V1__Pod *pod)
{
    size_t len = strlen(pod->namespace_);

    return !asking->pod || strcmp(asking->pod, pod->name) == 0 ||
           (strncmp(asking->pod, pod->namespace_, len) == 0 && asking->pod[len] == '/' &&
            strcmp(asking->pod + len + 1, pod->name) == 0);
}

static void tell(const struct asking *asking, const struct fact *fact)
{
    Agent__V1__Pod *pod = fact->value ? agent__v1__pod__unpack(NULL, fact->len, fact->value) : NULL;

    for (size_t i = 0; pod && is_meant(asking, pod) && i < pod->n_claims; i++) {
        if (pod->claims[i]->claim_name[0] != '\0')
            asking->each(asking->to, pod->namespace_, pod->claims[i]->claim_name);
    }
    agent__v1__pod__free_unpacked(pod, NULL);
}

void pod_claims_each(const struct facts *facts, const char *pod,
                     void (*each)(void *to, const char *pod_namespace, const char *claim), void *to)
{
    const struct fact *fact = facts_find(facts, AGENT__V1__KIND__POD, pod);
    struct asking asking = {.pod = fact ? NULL : pod, .each = each, .to = to};

    if (fact) {
        tell(&asking, fact);
        return;
    }
    while ((fact = facts_next(facts, fact))) {
        if (fact->kind == AGENT__V1__KIND__POD)
            tell(&asking, fact);
    }
}
