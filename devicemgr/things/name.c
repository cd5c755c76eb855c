#include "devicemgr/things/name.h"

#include "devicemgr/things/allocation.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/pod.h"

void name_demand(const struct demand *demand, const char *resource, struct text *text)
{
    text_add(text, "container \"%.63s\" of pod \"", demand->container);
    text_add_words(text, demand->pod_namespace, TEXT_WORDS_BYTES_MAX / 2);
    text_add(text, "/");
    text_add_words(text, demand->pod_name, TEXT_WORDS_BYTES_MAX / 2);
    text_add(text, "\": ");
    if (!resource)
        return;
    text_add(text, "resource ");
    text_add_words(text, resource, TEXT_WORDS_BYTES_MAX / 2);
    text_add(text, ": ");
}

void name_holder(const struct pods *pods, const struct allocation *holder, struct text *text)
{
    const struct pod *pod = pods_find(pods, holder->pod_uid);

    text_add(text, "container \"%.63s\" of pod \"", holder->container);
    if (pod) {
        text_add_words(text, pod->pod_namespace, TEXT_WORDS_BYTES_MAX / 2);
        text_add(text, "/");
        text_add_words(text, pod->name, TEXT_WORDS_BYTES_MAX / 2);
    } else {
        text_add_words(text, holder->pod_uid, TEXT_WORDS_BYTES_MAX / 2);
    }
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
