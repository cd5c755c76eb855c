#include "devicemgr/books/outbox.h"

#include <string.h>

#include <utlist.h>

#include "devicemgr/things/mem.h"

static bool is_of(const struct outbox_event *event, enum outbox_kind kind, uint64_t number,
                  const char *name)
{
    return event->kind == kind && event->number == number && !event->name == !name &&
           (!name || strcmp(event->name, name) == 0);
}

void outbox_put(struct outbox *outbox, enum outbox_kind kind, uint64_t number, const char *name)
{
    struct outbox_event *event = outbox->first;

    while (event && !is_of(event, kind, number, name))
        event = event->next;
    if (event)
        return;
    event = mem_alloc(1, sizeof *event);
    event->kind = kind;
    event->number = number;
    event->name = name ? mem_strdup(name) : NULL;
    DL_APPEND(outbox->first, event);
}

struct outbox_event *outbox_take(struct outbox *outbox)
{
    struct outbox_event *event = outbox->first;

    if (event)
        DL_DELETE(outbox->first, event);
    return event;
}

void outbox_event_free(struct outbox_event *event)
{
    free(event->name);
    free(event);
}

void outbox_fini(struct outbox *outbox)
{
    struct outbox_event *event;

    while ((event = outbox_take(outbox)))
        outbox_event_free(event);
}
