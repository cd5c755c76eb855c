/*
 * The list of pods that are ended, as messages.
 */
#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"

struct endings {
    struct list *list;
    Control__V1__EndingsResponse *response;
};

static void add_ask(struct list *list, Control__V1__Ending *row,
                    const struct devicemgr_ending_ask *is)
{
    Control__V1__EndingAsk *ask = list_alloc(list, 1, sizeof *ask);

    control__v1__ending_ask__init(ask);
    ask->asker = list_text(list, is->asker);
    ask->why = list_text(list, is->why);
    ask->own_grace = is->own_grace;
    ask->grace_ms = is->grace_ms;
    ask->here = is->here;
    row->asks[row->n_asks++] = ask;
    list->bytes += CONTROL_ROW_BYTES;
}

static bool on_ending(void *user, const struct devicemgr_ending_row *is)
{
    struct endings *endings = user;
    Control__V1__EndingsResponse *response = endings->response;
    struct list *list = endings->list;
    Control__V1__Ending *row = list_alloc(list, 1, sizeof *row);
    const char *const key[] = {is->pod_namespace, is->name, is->uid};

    control__v1__ending__init(row);
    row->uid = list_text(list, is->uid);
    row->pod_namespace = list_text(list, is->pod_namespace);
    row->name = list_text(list, is->name);
    row->state = list_text(list, is->state);
    row->asked_ms = is->asked_ms_ago;
    row->due = is->due;
    row->due_in_ms = is->due_in_ms;
    row->asks = list_alloc(list, is->asks_len, sizeof *row->asks);
    while (row->n_asks < is->asks_len)
        add_ask(list, row, &is->asks[row->n_asks]);
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
    return list_goes_on(list, key, DEVICEMGR_ENDING_KEY, &response->next, &response->n_next);
}

bool list_endings(struct list *list, const struct list_from *from,
                  const Control__V1__ListRequest *request)
{
    struct endings endings = {.list = list};

    endings.response = list_begin(list, request, DEVICEMGR_ENDING_KEY, CONTROL_PAGE_ROWS_MAX,
                                  &control__v1__endings_response__descriptor);
    if (endings.response)
        devicemgr_ending_rows(from->core, boot_now_ms(), &list->which, on_ending, &endings);
    return endings.response;
}
