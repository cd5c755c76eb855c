#include "devicemgr/books/happened.h"

#include <string.h>

#include "devicemgr/books/state.h"

/* ---- one event, with all that it points to, in one piece of memory ---- */

static size_t texts_bytes(const struct devicemgr_event *event)
{
    size_t bytes = mem_text_bytes(event->resource) + mem_text_bytes(event->pod_uid) +
                   mem_text_bytes(event->pod_namespace) + mem_text_bytes(event->pod_name) +
                   mem_text_bytes(event->container) + mem_text_bytes(event->text) +
                   mem_text_bytes(event->claim_uid) + mem_text_bytes(event->claim_namespace) +
                   mem_text_bytes(event->claim_name);

    for (size_t i = 0; i < event->ids_len; i++)
        bytes += mem_text_bytes(event->ids[i]);
    return bytes;
}

static struct devicemgr_event *copy_of(const struct devicemgr_event *from)
{
    size_t head = sizeof *from + from->ids_len * sizeof *from->ids;
    struct devicemgr_event *to = mem_alloc(head + texts_bytes(from), 1);
    const char **ids = (const char **)(to + 1);
    char *end = (char *)to + head;

    *to = *from;
    to->resource = mem_text_move(&end, from->resource);
    to->pod_uid = mem_text_move(&end, from->pod_uid);
    to->pod_namespace = mem_text_move(&end, from->pod_namespace);
    to->pod_name = mem_text_move(&end, from->pod_name);
    to->container = mem_text_move(&end, from->container);
    to->text = mem_text_move(&end, from->text);
    to->claim_uid = mem_text_move(&end, from->claim_uid);
    to->claim_namespace = mem_text_move(&end, from->claim_namespace);
    to->claim_name = mem_text_move(&end, from->claim_name);
    for (size_t i = 0; i < from->ids_len; i++)
        ids[i] = mem_text_move(&end, from->ids[i]);
    to->ids = ids;
    return to;
}

static void put(struct state *state, const struct devicemgr_event *event)
{
    action_push(&state->actions, ACTION_EVENT, 0)->event = copy_of(event);
}

static void set_ids(struct devicemgr_event *event, const struct ids *ids)
{
    event->ids = (const char *const *)ids->v;
    event->ids_len = ids->len < DEVICEMGR_EVENT_IDS_MAX ? ids->len : DEVICEMGR_EVENT_IDS_MAX;
    event->ids_total = ids->len;
}

/* ---- what there is to tell ---- */

void happened_to_resource(struct state *state, enum devicemgr_event_kind kind, bool again,
                          const char *resource, const char *words)
{
    const struct devicemgr_event event = {
        .kind = kind, .again = again, .resource = resource, .text = words};

    if (state->watched)
        put(state, &event);
}

static void tell_allocation(struct state *state, enum devicemgr_event_kind kind, bool again,
                            const struct allocation *allocation, const char *words)
{
    const struct pod *pod;
    struct devicemgr_event event = {.kind = kind,
                                    .again = again,
                                    .resource = allocation->resource,
                                    .pod_uid = allocation->pod_uid,
                                    .container = allocation->container,
                                    .text = words};

    if (!state->watched)
        return;
    pod = pods_find(&state->pods, allocation->pod_uid);
    if (pod) {
        event.pod_namespace = pod->pod_namespace;
        event.pod_name = pod->name;
    }
    set_ids(&event, &allocation->ids);
    put(state, &event);
}

void happened_to_allocation(struct state *state, enum devicemgr_event_kind kind, bool again,
                            const struct allocation *allocation)
{
    tell_allocation(state, kind, again, allocation, NULL);
}

void happened_taken(struct state *state, const struct allocation *allocation, const char *by)
{
    tell_allocation(state, DEVICEMGR_EVENT_TAKEN, false, allocation, by);
}

void happened_replaced(struct state *state, const struct allocation *allocation, const char *words)
{
    tell_allocation(state, DEVICEMGR_EVENT_REPLACED, false, allocation, words);
}

void happened_to_pod(struct state *state, enum devicemgr_event_kind kind,
                     const struct ending *ending, const char *word, const char *words)
{
    const struct devicemgr_event event = {.kind = kind,
                                          .pod_uid = ending->pod_uid,
                                          .pod_namespace = ending->pod_namespace,
                                          .pod_name = ending->pod_name,
                                          .word = word,
                                          .text = words};

    if (state->watched)
        put(state, &event);
}

void happened_shutdown(struct state *state, const char *word, const char *words)
{
    const struct devicemgr_event event = {
        .kind = DEVICEMGR_EVENT_SHUTDOWN, .word = word, .text = words};

    if (state->watched)
        put(state, &event);
}

void happened_refused(struct state *state, const struct demand *demand, const char *resource,
                      const struct ids *ids, const char *word, const char *words)
{
    struct devicemgr_event event = {.kind = DEVICEMGR_EVENT_REFUSED,
                                    .resource = resource,
                                    .pod_uid = demand->pod_uid,
                                    .pod_namespace = demand->pod_namespace,
                                    .pod_name = demand->pod_name,
                                    .container = demand->container,
                                    .word = word,
                                    .text = words};

    if (!state->watched)
        return;
    set_ids(&event, ids);
    put(state, &event);
}

/* "pool/name" of each device, as the driver answered. */
static void set_devices(struct devicemgr_event *event, const struct granted *devices,
                        struct ids *names)
{
    size_t len =
        devices->len < DEVICEMGR_EVENT_IDS_MAX ? devices->len : (size_t)DEVICEMGR_EVENT_IDS_MAX;

    names->v = mem_alloc(len, sizeof *names->v);
    for (; names->len < len; names->len++)
        names->v[names->len] = granted_device_id(&devices->v[names->len]);
    event->ids = (const char *const *)names->v;
    event->ids_len = names->len;
    event->ids_total = devices->len;
}

void happened_to_claim(struct state *state, enum devicemgr_event_kind kind, bool again,
                       const struct claim *claim, const char *words)
{
    struct devicemgr_event event = {.kind = kind,
                                    .again = again,
                                    .resource = claim->driver,
                                    .claim_uid = claim->uid,
                                    .claim_namespace = claim->pod_namespace,
                                    .claim_name = claim->name,
                                    .text = words};
    struct ids names = {0};

    if (!state->watched)
        return;
    set_devices(&event, &claim->devices, &names);
    put(state, &event);
    ids_fini(&names);
}
