#include "devicemgr/things/demand.h"

#include "devicemgr/devicemgr.h"
#include "devicemgr/things/mem.h"

static void set_names(struct demand *demand, const char *sandbox_id, const char *pod_uid,
                      const char *pod_namespace, const char *pod_name, const char *container)
{
    const char *parts[] = {sandbox_id, pod_uid, pod_namespace, pod_name, container};
    size_t bytes;

    demand->names = mem_key(parts, 5, &bytes);
    mem_parts(demand->names, parts, 5);
    demand->sandbox_id = parts[0];
    demand->pod_uid = parts[1];
    demand->pod_namespace = parts[2];
    demand->pod_name = parts[3];
    demand->container = parts[4];
}

void demand_init(struct demand *demand, uint64_t create, uint64_t now_ms,
                 const struct devicemgr_create *said)
{
    demand->create = create;
    set_names(demand, said->sandbox_id, said->pod_uid, said->pod_namespace, said->pod_name,
              said->container);
    demand->attempt = said->attempt;
    demand->started_ms = now_ms;
}

void demand_copy(struct demand *to, const struct demand *demand)
{
    const struct request *request = &demand->request;

    *to = (struct demand){.create = DEMAND_OF_NO_CREATE,
                          .attempt = demand->attempt,
                          .read = demand->read,
                          .started_ms = demand->started_ms};
    set_names(to, demand->sandbox_id, demand->pod_uid, demand->pod_namespace, demand->pod_name,
              demand->container);
    to->request.len = request->len;
    to->request.items = mem_alloc(request->len, sizeof *to->request.items);
    for (size_t i = 0; i < request->len; i++) {
        const struct request_item *from = &request->items[i];

        to->request.items[i] = (struct request_item){.resource = mem_strdup(from->resource),
                                                     .count = from->count,
                                                     .token = from->token,
                                                     .claimed = from->claimed};
        ids_copy(&to->request.items[i].ids, from->ids.v, from->ids.len);
        by_claims_copy(&to->request.items[i].by, &from->by);
    }
}

void demand_fini(struct demand *demand)
{
    request_fini(&demand->request);
    free(demand->names);
}

size_t demand_names_bytes(const struct demand *demand)
{
    return strlen(demand->sandbox_id) + strlen(demand->pod_uid) + strlen(demand->pod_namespace) +
           strlen(demand->pod_name) + strlen(demand->container);
}
