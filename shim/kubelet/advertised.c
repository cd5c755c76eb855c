#include "shim/kubelet/advertised.h"

#include <stdlib.h>
#include <string.h>

#include "shim/must.h"

#define RESOURCE_LIST_FIELD 3 /* Resource.list */
/* A Change in a Resource: its tag and length, a place of at most 5 bytes behind its tag, two flags
 * behind theirs. */
#define CHANGE_BYTES_MAX 12

/* ---- taking over from the core ---- */

struct update {
    struct advertised *advertised;
    const struct devicemgr *core;
    struct advertised_list *lists; /* so far */
    size_t len;
    size_t room;
    size_t old; /* of advertised->lists: those before are in `lists`, or gone */
    bool expected;
    enum advertised_change change;
};

static void drop_old(struct update *update)
{
    advertised_list_fini(&update->advertised->lists[update->old++]);
    update->change = ADVERTISED_NAMES;
}

/* The list of that name: the old one, or a new one. Both lists are in the order of names. */
static struct advertised_list *take_list(struct update *update, const char *resource)
{
    struct advertised *advertised = update->advertised;
    struct advertised_list *list;
    int order = 1;

    if (update->len == update->room) {
        update->room = update->room * 2 + 8;
        update->lists = must(realloc(update->lists, update->room * sizeof *update->lists));
    }
    list = &update->lists[update->len++];
    while (update->old < advertised->len &&
           (order = strcmp(advertised->lists[update->old].resource, resource)) < 0)
        drop_old(update);
    if (update->old < advertised->len && order == 0) {
        *list = advertised->lists[update->old++];
    } else {
        *list = (struct advertised_list){.resource = must(strdup(resource))};
        update->change = ADVERTISED_NAMES;
    }
    return list;
}

static void take(void *user, const struct devicemgr_shown *from)
{
    struct update *update = user;
    struct advertised_list *list = take_list(update, from->resource);

    update->expected = update->expected || from->expected;
    if (list->mask_end_ms != from->mask_end_ms && update->change == ADVERTISED_SAME)
        update->change = ADVERTISED_CHANGED;
    list->mask_end_ms = from->mask_end_ms;
    if (list->core_version == from->version)
        return;
    list->core_version = from->version;
    if (!advertised_list_update(list, update->core, from->base, update->advertised->version + 1))
        return;
    update->advertised->version++;
    if (update->change == ADVERTISED_SAME)
        update->change = ADVERTISED_CHANGED;
}

enum advertised_change advertised_update(struct advertised *advertised,
                                         const struct devicemgr *core)
{
    uint64_t core_version = devicemgr_shown_version(core);
    struct update update = {.advertised = advertised, .core = core, .change = ADVERTISED_SAME};

    if (advertised->core_version == core_version)
        return ADVERTISED_SAME;
    devicemgr_shown(core, take, &update);
    while (update.old < advertised->len)
        drop_old(&update);
    free(advertised->lists);
    advertised->lists = update.lists;
    advertised->len = update.len;
    advertised->expected = update.expected;
    if (update.change != ADVERTISED_SAME || advertised->core_version == 0)
        advertised->version++;
    advertised->core_version = core_version;
    return update.change;
}

void advertised_set_settings(struct advertised *advertised, const Bridge__V1__Settings *settings)
{
    advertised->settings = settings;
    advertised->version++;
}

void advertised_set_lost(struct advertised *advertised, struct advertised_list *list)
{
    list->lost++;
    advertised->version++;
}

void advertised_fini(struct advertised *advertised)
{
    for (size_t i = 0; i < advertised->len; i++)
        advertised_list_fini(&advertised->lists[i]);
    free(advertised->lists);
    *advertised = (struct advertised){0};
}

/* ---- messages ---- */

/* What a reader has not got of a list: the whole, or the latest of its differences. */
struct pick {
    const struct advertised_list *list;
    size_t resource; /* its index in the message */
    size_t from;     /* the first of the latest that it has not; none: as many as there are */
    bool whole;
    uint64_t version; /* who has not got it has lists up to a lower version only */
};

static int compare_versions(const void *a, const void *b)
{
    uint64_t one = ((const struct pick *)a)->version, other = ((const struct pick *)b)->version;

    return one < other ? -1 : one > other;
}

/* Of a list that the reader has not got in its version. */
static struct pick pick_of(const struct advertised_list *list,
                           const struct advertised_reader *reader)
{
    struct pick pick = {.list = list, .from = list->latest_len};

    pick.whole = !reader->takes_changes || reader->through < list->known;
    if (pick.whole) {
        pick.version = reader->takes_changes ? list->known : list->version;
        return pick;
    }
    while (pick.from > 0 && list->latest[pick.from - 1].version > reader->through)
        pick.from--;
    pick.version = list->latest[pick.from].version;
    return pick;
}

static size_t pick_bytes(const struct pick *pick)
{
    return pick->whole ? 1 + pick->list->prefix + pick->list->len
                       : (pick->list->latest_len - pick->from) * CHANGE_BYTES_MAX;
}

/*
 * A packed list is put in as it is: as a field that protobuf-c does not know, which it writes as
 * the bytes behind the tag. So they are the length and the list.
 */
static void attach_list(struct advertised_message *message, size_t index, const struct pick *pick)
{
    Bridge__V1__Resource *resource = &message->resources[pick->resource];
    const struct advertised_list *list = pick->list;

    message->lists[index] =
        (ProtobufCMessageUnknownField){.tag = RESOURCE_LIST_FIELD,
                                       .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                       .len = list->prefix + list->len,
                                       .data = list->bytes + list->head - list->prefix};
    resource->base.unknown_fields = &message->lists[index];
    resource->base.n_unknown_fields = 1;
}

/* `room`: behind the changes of other resources. */
static size_t attach_latest(struct advertised_message *message, size_t room,
                            const struct pick *pick)
{
    Bridge__V1__Resource *resource = &message->resources[pick->resource];
    const struct advertised_list *list = pick->list;

    resource->changes = &message->change_pointers[room];
    for (size_t i = pick->from; i < list->latest_len; i++) {
        Bridge__V1__Change *change = &message->changes[room++];

        bridge__v1__change__init(change);
        change->place = list->latest[i].place;
        change->healthy = list->latest[i].healthy;
        change->held = list->latest[i].held;
        resource->changes[resource->n_changes++] = change;
    }
    return room;
}

static void make_room_for_changes(struct advertised_message *message, const struct pick *picks,
                                  size_t len)
{
    size_t changes = 0;

    for (size_t i = 0; i < len; i++)
        changes += picks[i].list->latest_len - picks[i].from;
    message->changes = must(calloc(changes + 1, sizeof *message->changes));
    message->change_pointers = must(calloc(changes + 1, sizeof *message->change_pointers));
}

static void attach_picks(struct advertised_message *message, const struct advertised *advertised,
                         struct pick *picks, size_t len)
{
    size_t bytes = 0, changes = 0, i = 0;

    if (len > 1)
        qsort(picks, len, sizeof *picks, compare_versions);
    make_room_for_changes(message, picks, len);
    for (; i < len; i++) {
        bytes += pick_bytes(&picks[i]);
        if (bytes > ADVERTISED_LISTS_BYTES_MAX)
            break;
        if (picks[i].whole)
            attach_list(message, i, &picks[i]);
        else
            changes = attach_latest(message, changes, &picks[i]);
        message->through = picks[i].version;
    }
    if (i == len)
        message->through = advertised->version;
}

void advertised_message_init(struct advertised_message *message,
                             const struct advertised *advertised,
                             const struct advertised_reader *reader, uint64_t mask_ms)
{
    struct pick *picks = must(calloc(advertised->len + 1, sizeof *picks));
    Bridge__V1__WatchResponse *response = &message->response;
    size_t picked = 0;

    bridge__v1__watch_response__init(response);
    response->daemon_version = (char *)SHIM_VERSION;
    response->mask_ms = mask_ms;
    response->settings = (Bridge__V1__Settings *)(uintptr_t)advertised->settings;
    response->resources = must(calloc(advertised->len + 1, sizeof(Bridge__V1__Resource *)));
    message->resources = must(calloc(advertised->len + 1, sizeof *message->resources));
    message->lists = must(calloc(advertised->len + 1, sizeof *message->lists));
    message->through = reader->through;
    for (size_t i = 0; i < advertised->len; i++) {
        const struct advertised_list *list = &advertised->lists[i];
        Bridge__V1__Resource *resource = &message->resources[response->n_resources];

        if (list->too_long)
            continue;
        bridge__v1__resource__init(resource);
        resource->name = list->resource;
        resource->version = list->version;
        resource->layout = list->layout;
        resource->mask_end_ms = list->mask_end_ms;
        resource->lost = list->lost;
        if (list->version > reader->through) {
            picks[picked] = pick_of(list, reader);
            picks[picked++].resource = response->n_resources;
        }
        response->resources[response->n_resources++] = resource;
    }
    attach_picks(message, advertised, picks, picked);
    free(picks);
}

void advertised_message_fini(struct advertised_message *message)
{
    free(message->changes);
    free(message->change_pointers);
    free(message->lists);
    free(message->resources);
    free(message->response.resources);
}
