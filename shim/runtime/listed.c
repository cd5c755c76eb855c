#include "shim/runtime/listed.h"

#include <stdlib.h>

bool listed_may_run(Runtime__V1__ContainerState state)
{
    return state != RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED;
}

/* What is in an item's fields that repeat: labels and annotations. */
static size_t pairs_of(const ProtobufCMessage *item)
{
    const ProtobufCMessageDescriptor *kind = item->descriptor;
    size_t pairs = 0;

    for (unsigned i = 0; i < kind->n_fields; i++) {
        if (kind->fields[i].label == PROTOBUF_C_LABEL_REPEATED)
            pairs += *(const size_t *)((const char *)item + kind->fields[i].quantifier_offset);
    }
    return pairs;
}

/* A list of either kind has one field, its items. */
size_t listed_bytes(const ProtobufCMessage *list)
{
    const ProtobufCFieldDescriptor *field = list->descriptor->fields;
    size_t len = *(const size_t *)((const char *)list + field->quantifier_offset);
    ProtobufCMessage *const *items =
        *(ProtobufCMessage *const *const *)((const char *)list + field->offset);
    size_t pairs = 0;

    for (size_t i = 0; i < len; i++)
        pairs += pairs_of(items[i]);
    return protobuf_c_message_get_packed_size(list) + pairs * LISTED_PAIR_BYTES;
}

/* Likewise. */
bool listed_join(ProtobufCMessage *list, ProtobufCMessage *more)
{
    const ProtobufCFieldDescriptor *field = list->descriptor->fields;
    size_t *len = (size_t *)((char *)list + field->quantifier_offset);
    size_t *more_len = (size_t *)((char *)more + field->quantifier_offset);
    void ***items = (void ***)((char *)list + field->offset);
    void **more_items = *(void ***)((char *)more + field->offset);
    void **all = realloc(*items, (*len + *more_len + 1) * sizeof *all);

    if (!all)
        return false;
    *items = all;
    for (size_t i = 0; i < *more_len; i++)
        all[(*len)++] = more_items[i];
    *more_len = 0;
    return true;
}

/* `annotations` has room for the item's. */
static struct devicemgr_sandbox sandbox_of(const Runtime__V1__PodSandbox *item,
                                           struct devicemgr_annotation *annotations)
{
    static const Runtime__V1__PodSandboxMetadata none = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
    const Runtime__V1__PodSandboxMetadata *metadata = item->metadata ? item->metadata : &none;

    for (size_t i = 0; i < item->n_annotations; i++)
        annotations[i] = (struct devicemgr_annotation){.key = item->annotations[i]->key,
                                                       .value = item->annotations[i]->value};
    return (struct devicemgr_sandbox){
        .id = item->id,
        .pod_uid = metadata->uid,
        .pod_namespace = metadata->namespace_,
        .pod_name = metadata->name,
        .attempt = metadata->attempt,
        .ready = item->state == RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY,
        .annotations = annotations,
        .annotations_len = item->n_annotations,
    };
}

static struct devicemgr_container container_of(const Runtime__V1__Container *item,
                                               struct devicemgr_annotation *annotations)
{
    static const Runtime__V1__ContainerMetadata none = RUNTIME__V1__CONTAINER_METADATA__INIT;
    const Runtime__V1__ContainerMetadata *metadata = item->metadata ? item->metadata : &none;

    for (size_t i = 0; i < item->n_annotations; i++)
        annotations[i] = (struct devicemgr_annotation){.key = item->annotations[i]->key,
                                                       .value = item->annotations[i]->value};
    return (struct devicemgr_container){
        .id = item->id,
        .sandbox_id = item->pod_sandbox_id,
        .name = metadata->name,
        .attempt = metadata->attempt,
        .running = listed_may_run(item->state),
        .annotations = annotations,
        .annotations_len = item->n_annotations,
        .created = item->state == RUNTIME__V1__CONTAINER_STATE__CONTAINER_CREATED,
    };
}

bool listed_init(struct listed *listed, const Runtime__V1__ListPodSandboxResponse *pods,
                 const Runtime__V1__ListContainersResponse *list)
{
    struct devicemgr_annotation *next;
    size_t annotations_len = 0;

    for (size_t i = 0; i < pods->n_items; i++)
        annotations_len += pods->items[i]->n_annotations;
    for (size_t i = 0; i < list->n_containers; i++)
        annotations_len += list->containers[i]->n_annotations;
    listed->sandboxes = calloc(pods->n_items + 1, sizeof *listed->sandboxes);
    listed->sandboxes_len = pods->n_items;
    listed->containers = calloc(list->n_containers + 1, sizeof *listed->containers);
    listed->containers_len = list->n_containers;
    listed->annotations = next = calloc(annotations_len + 1, sizeof *next);
    if (!listed->sandboxes || !listed->containers || !next) {
        listed_fini(listed);
        return false;
    }
    for (size_t i = 0; i < pods->n_items; i++) {
        listed->sandboxes[i] = sandbox_of(pods->items[i], next);
        next += pods->items[i]->n_annotations;
    }
    for (size_t i = 0; i < list->n_containers; i++) {
        listed->containers[i] = container_of(list->containers[i], next);
        next += list->containers[i]->n_annotations;
    }
    return true;
}

void listed_fini(struct listed *listed)
{
    free(listed->annotations);
    free(listed->containers);
    free(listed->sandboxes);
}
