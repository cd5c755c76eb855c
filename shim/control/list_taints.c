/*
 * The list of taints, as messages.
 */
#include <string.h>

#include "devicemgr/taints.h"
#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"
#include "shim/control/told_id.h"

struct taints {
    struct list *list;
    Control__V1__TaintsResponse *response;
};

/* Of an id, which counts for the row alone. */
static char *copy(struct list *list, const char *text)
{
    return strcpy(list_alloc(list, strlen(text) + 1, 1), text);
}

static bool on_taint(void *user, const struct devicemgr_taint_row *is)
{
    struct taints *taints = user;
    Control__V1__TaintsResponse *response = taints->response;
    struct list *list = taints->list;
    Control__V1__Taint *row = list_alloc(list, 1, sizeof *row);
    size_t name_bytes = strlen(is->key) + strlen(is->effect) + 2;
    char *name = list_alloc(list, name_bytes, 1);
    const char *key[DEVICEMGR_TAINT_KEY] = {is->resource, NULL, name, is->source, is->words};

    strcpy(stpcpy(stpcpy(name, is->key), ":"), is->effect);
    control__v1__taint__init(row);
    row->resource = list_text(list, is->resource);
    row->id = list_id(list, copy(list, is->id));
    key[1] = row->id;
    row->key = list_text(list, is->key);
    row->value = list_text(list, is->value);
    row->effect = list_text(list, is->effect);
    row->source = list_text(list, is->source);
    row->words = list_text(list, is->words);
    row->since_ms = is->since_ms_ago;
    row->ends = is->ends_in_ms != UINT64_MAX;
    row->ends_in_ms = row->ends ? is->ends_in_ms : 0;
    row->held_back = is->held_back;
    row->refused = is->refused;
    row->pods = is->pods;
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
    return list_goes_on(list, key, DEVICEMGR_TAINT_KEY, &response->next, &response->n_next);
}

/* An id that was told cut, and the one it was of. */
struct looking {
    struct list *list;
    const char *told, *found;
};

static bool look(void *user, const struct devicemgr_taint_row *is)
{
    struct looking *looking = user;

    if (told_id_is_of(looking->told, is->id))
        looking->found = copy(looking->list, is->id); /* the last of them */
    return true;
}

bool list_taints(struct list *list, const struct list_from *from,
                 const Control__V1__ListRequest *request)
{
    struct taints taints = {.list = list};
    const char *after[DEVICEMGR_TAINT_KEY];

    taints.response = list_begin(list, request, DEVICEMGR_TAINT_KEY, CONTROL_PAGE_ROWS_MAX,
                                 &control__v1__taints_response__descriptor);
    if (!taints.response)
        return false;
    if (list->which.after) {
        memcpy(after, list->which.after, sizeof after);
        list->which.after = after;
    }
    if (list->which.after && told_id_is_cut(after[1])) {
        const struct devicemgr_which which = {.resource = after[0]};
        struct looking looking = {.list = list, .told = after[1]};

        devicemgr_taints(from->core, boot_now_ms(), &which, look, &looking);
        after[1] = looking.found;
        if (!looking.found)
            return false;
    }
    devicemgr_taints(from->core, boot_now_ms(), &list->which, on_taint, &taints);
    return true;
}
