#include "devicemgr/things/name.h"

#include "devicemgr/things/allocation.h"
#include "devicemgr/things/pod.h"

void name_demand(const struct demand *demand, const char *resource, struct text *text)
{
    text_add(text, "container \"%.63s\"", demand->container);
    text_add_name(text, " of pod \"", demand->pod_namespace);
    text_add_name(text, "/", demand->pod_name);
    text_add(text, "\": ");
    if (!resource)
        return;
    text_add_name(text, "resource ", resource);
    text_add(text, ": ");
}

void name_holder(const struct pods *pods, const struct allocation *holder, struct text *text)
{
    const struct pod *pod = pods_find(pods, holder->pod_uid);

    text_add(text, "container \"%.63s\"", holder->container);
    text_add_name(text, " of pod \"", pod ? pod->pod_namespace : holder->pod_uid);
    if (pod)
        text_add_name(text, "/", pod->name);
    text_add(text, "\"");
}

struct devicemgr_about name_about_holder(const struct pods *pods, const struct allocation *holder)
{
    const struct pod *pod = pods_find(pods, holder->pod_uid);

    return (struct devicemgr_about){.resource = holder->resource,
                                    .pod_namespace = pod ? pod->pod_namespace : NULL,
                                    .pod_name = pod ? pod->name : NULL,
                                    .container = holder->container};
}
