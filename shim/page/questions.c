#include "shim/page/questions.h"

#include <stdlib.h>
#include <string.h>

#include "shim/answers/answers.h"
#include "shim/control/follow.h"
#include "shim/control/status.h"
#include "shim/control/why.h"
#include "shim/json_value.h"
#include "shim/must.h"

/* ---- what is asked ---- */

void question_init(struct question *question)
{
    *question = (struct question){0};
    control__v1__list_request__init(&question->request);
    question->request.rows = PAGE_ROWS_DEFAULT;
}

static uint32_t rows_of(const char *value)
{
    unsigned long rows = strtoul(value, NULL, 10);

    return rows < 1 ? 1 : rows > PAGE_ROWS_MAX ? PAGE_ROWS_MAX : (uint32_t)rows;
}

void question_add(struct question *question, const char *name, const char *value)
{
    Control__V1__ListRequest *request = &question->request;
    char *text = (char *)(uintptr_t)value; /* it is only read */

    if (strcmp(name, "resource") == 0)
        request->resource = text;
    else if (strcmp(name, "driver") == 0)
        request->driver = text;
    else if (strcmp(name, "pod") == 0)
        request->pod = text;
    else if (strcmp(name, "namespace") == 0)
        request->pod_namespace = text;
    else if (strcmp(name, "rows") == 0)
        request->rows = rows_of(value);
    else if (strcmp(name, "after") == 0 && request->n_after == PAGE_PLACE_PARTS_MAX)
        question->wrong = true;
    else if (strcmp(name, "after") == 0)
        question->place[request->n_after++] = text;
    request->after = question->place;
}

/* ---- lists ---- */

#define ROW(name, type)                                                                            \
    static json_t *name##_row(const void *row)                                                     \
    {                                                                                              \
        return answer_##name((const Control__V1__##type *)row);                                    \
    }
ROW(resource, Resource)
ROW(plugin, Plugin)
ROW(device, Device)
ROW(driver_device, DriverDevice)
ROW(pod, Pod)
ROW(order, Order)
ROW(taint, Taint)
ROW(ending, Ending)
ROW(driver, Driver)
ROW(claim, Claim)

static json_t *allocation_row(const void *row)
{
    const Control__V1__Allocation *is = row;

    return answer_allocation(is, is->ids, is->n_ids);
}

static const struct {
    const char *name;
    list_make *make;
    json_t *(*row)(const void *row);
} LISTS[] = {
    {"resources", list_resources, resource_row},
    {"plugins", list_plugins, plugin_row},
    {"devices", list_devices, device_row},
    {"driver-devices", list_driver_devices, driver_device_row},
    {"allocations", list_allocations, allocation_row},
    {"pods", list_pods, pod_row},
    {"orders", list_orders, order_row},
    {"taints", list_taints, taint_row},
    {"endings", list_endings, ending_row},
    {"drivers", list_drivers, driver_row},
    {"claims", list_claims, claim_row},
};

/* Each list has its own message, and all have these two fields. */
static void *field(const ProtobufCMessage *page, const char *name, size_t *len)
{
    const ProtobufCFieldDescriptor *is =
        protobuf_c_message_descriptor_get_field_by_name(page->descriptor, name);
    const char *bytes = (const char *)page;
    void *all;

    memcpy(len, bytes + is->quantifier_offset, sizeof *len);
    memcpy(&all, bytes + is->offset, sizeof all);
    return all;
}

static json_t *page_of(const ProtobufCMessage *page, json_t *(*row)(const void *row))
{
    json_t *all = must(json_object()), *items = must(json_array());
    size_t rows_len, next_len;
    void **rows = field(page, "rows", &rows_len);
    char **next = field(page, "next", &next_len);

    for (size_t i = 0; i < rows_len; i++)
        json_value_append(items, row(rows[i]));
    json_value_set(all, "items", items);
    json_value_set(all, "next", json_value_texts(next, next_len));
    return all;
}

static enum question_outcome answer_list(size_t which, const struct question *question,
                                         const struct question_from *from, json_t **out)
{
    struct list list;
    bool made = LISTS[which].make(&list, from->lists, &question->request);

    if (made)
        *out = page_of(list.response, LISTS[which].row);
    list_fini(&list);
    return made ? QUESTION_ANSWERED : QUESTION_WRONG;
}

/* ---- the others ---- */

static json_t *status_of(const struct question *question, const struct question_from *from)
{
    struct status status;
    json_t *all;

    (void)question;
    status_init(&status, from->settings, from->lists, from->report);
    all = answer_status(&status.response);
    status_fini(&status);
    return all;
}

static json_t *why_of(const struct question *question, const struct question_from *from)
{
    Control__V1__WhyRequest request = CONTROL__V1__WHY_REQUEST__INIT;
    struct why why;
    json_t *all;

    request.pod = question->request.pod;
    why_init(&why, from->lists, &request);
    all = answer_why(&why.response);
    why_fini(&why);
    return all;
}

/* The newest, the oldest of them first. */
static json_t *events_of(const struct question *question, const struct question_from *from)
{
    json_t *all = must(json_object()), *items = must(json_array());
    const struct event *first = events_after(from->events, 0);
    struct event_moment now;
    size_t len = 0;

    events_now(from->events, &now);
    for (const struct event *event = first; event; event = events_next(from->events, event))
        len++;
    for (const struct event *event = first; event; event = events_next(from->events, event)) {
        Control__V1__Event message;

        if (len-- > question->request.rows)
            continue;
        follow_event(&message, event, &now);
        json_value_append(items, answer_event(&message));
    }
    json_value_set(all, "items", items);
    return all;
}

static const struct {
    const char *name;
    json_t *(*make)(const struct question *question, const struct question_from *from);
} OTHERS[] = {{"status", status_of}, {"why", why_of}, {"events", events_of}};

enum question_outcome question_answer(const char *name, const struct question *question,
                                      const struct question_from *from, json_t **out)
{
    if (question->wrong)
        return QUESTION_WRONG;
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++) {
        if (strcmp(name, LISTS[i].name) == 0)
            return answer_list(i, question, from, out);
    }
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        if (strcmp(name, OTHERS[i].name) == 0) {
            *out = OTHERS[i].make(question, from);
            return QUESTION_ANSWERED;
        }
    }
    return QUESTION_UNKNOWN;
}
