#include "devicemgr/things/demand.h"

#include "devicemgr/devicemgr.h"
#include "devicemgr/things/mem.h"

void demand_init(struct demand *demand, uint64_t create, uint64_t now_ms,
                 const struct devicemgr_create *said)
{
    demand->create = create;
    demand->sandbox_id = mem_strdup(said->sandbox_id);
    demand->pod_uid = mem_strdup(said->pod_uid);
    demand->pod_namespace = mem_strdup(said->pod_namespace);
    demand->pod_name = mem_strdup(said->pod_name);
    demand->container = mem_strdup(said->container);
    demand->attempt = said->attempt;
    demand->started_ms = now_ms;
}

void demand_copy(struct demand *to, const struct demand *demand)
{
    const struct request *request = &demand->request;

    *to = (struct demand){.create = DEMAND_OF_NO_CREATE,
                          .sandbox_id = mem_strdup(demand->sandbox_id),
                          .pod_uid = mem_strdup(demand->pod_uid),
                          .pod_namespace = mem_strdup(demand->pod_namespace),
                          .pod_name = mem_strdup(demand->pod_name),
                          .container = mem_strdup(demand->container),
                          .attempt = demand->attempt,
                          .read = demand->read,
                          .started_ms = demand->started_ms};
    to->request.len = request->len;
    to->request.items = mem_alloc(request->len, sizeof *to->request.items);
    for (size_t i = 0; i < request->len; i++) {
        const struct request_item *from = &request->items[i];

        to->request.items[i] = (struct request_item){
            .resource = mem_strdup(from->resource), .count = from->count, .token = from->token};
        ids_copy(&to->request.items[i].ids, from->ids.v, from->ids.len);
    }
}

void demand_fini(struct demand *demand)
{
    request_fini(&demand->request);
    free(demand->sandbox_id);
    free(demand->pod_uid);
    free(demand->pod_namespace);
    free(demand->pod_name);
    free(demand->container);
}
