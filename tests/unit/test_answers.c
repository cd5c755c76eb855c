/*
 * shim/answers: nothing that the daemon says is lost on its way into JSON. A message is filled by
 * its descriptor; whichever field of it is another, the document is another.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/answers/answers.h"
#include "shim/must.h"

#define ROWS 2        /* of each repeated field */
#define OTHER 1000000 /* to another number: a thousand seconds, where it counts milliseconds */

typedef json_t *(*make_fn)(const ProtobufCMessage *message);

struct subject {
    const char *name;
    const ProtobufCMessageDescriptor *is;
    make_fn make;
    const char *const *silent; /* fields that the document has no place for; NULL at the end */
};

#define FIELDS_MAX 256 /* of one message, those of the messages in it among them */

/* What is looked at: a message, filled, and which of its fields its document shows. */
struct look {
    const struct subject *subject;
    ProtobufCMessage *root;
    char path[256]; /* of the field that is looked at */
    char *paths[FIELDS_MAX];
    bool shown[FIELDS_MAX];
    size_t len;
};

static char *render(const struct look *look)
{
    json_t *json = look->subject->make(look->root);
    char *text;

    assert_non_null(json);
    text = must(json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII));
    json_decref(json);
    return text;
}

/* ---- a filled message ---- */

static ProtobufCMessage *filled(const ProtobufCMessageDescriptor *is, bool truth, unsigned *next);

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_ENUM:
        return sizeof(uint32_t);
    default:
        fail_msg("%s: a type that is not looked at yet", field->name);
        return 0;
    }
}

static void number_set(const ProtobufCFieldDescriptor *field, void *at, uint64_t value)
{
    if (size_of(field) == sizeof value)
        *(uint64_t *)at = value;
    else
        *(uint32_t *)at = (uint32_t)value;
}

static void value_fill(const ProtobufCFieldDescriptor *field, void *at, bool truth, unsigned *next)
{
    char text[32];

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        snprintf(text, sizeof text, "text-%u", (*next)++);
        *(char **)at = must(strdup(text));
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at = filled(field->descriptor, truth, next);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = truth;
        break;
    case PROTOBUF_C_TYPE_ENUM:
        number_set(field, at, 0);
        break;
    default:
        number_set(field, at, 7000 * (uint64_t)(*next)++);
    }
}

static ProtobufCMessage *filled(const ProtobufCMessageDescriptor *is, bool truth, unsigned *next)
{
    char *message = must(calloc(1, is->sizeof_message));

    protobuf_c_message_init(is, message);
    for (unsigned i = 0; i < is->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &is->fields[i];
        char *at = message + field->offset;

        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t size = size_of(field);

            *(void **)at = must(calloc(ROWS, size));
            *(size_t *)(message + field->quantifier_offset) = ROWS;
            for (unsigned k = 0; k < ROWS; k++)
                value_fill(field, *(char **)at + k * size, truth, next);
        } else {
            value_fill(field, at, truth, next);
        }
    }
    return (ProtobufCMessage *)message;
}

/* ---- each field of it, another for a moment ---- */

/* `at` has `size` bytes of `other` meanwhile. */
static bool shows(const struct look *look, void *at, size_t size, const void *other)
{
    char own[sizeof(uint64_t)], *before, *changed, *after;
    bool same_second, other_document;

    memcpy(own, at, size);
    do { /* until no second began meanwhile: what is "ago" would be another by that alone */
        before = render(look);
        memcpy(at, other, size);
        changed = render(look);
        memcpy(at, own, size);
        after = render(look);
        same_second = strcmp(before, after) == 0;
        other_document = strcmp(before, changed) != 0;
        free(before);
        free(changed);
        free(after);
    } while (!same_second);
    return other_document;
}

static bool value_shows(const struct look *look, const ProtobufCFieldDescriptor *field, void *at)
{
    protobuf_c_boolean not ;
    const char *text = "another text";
    uint64_t number[2] = {0, 1}; /* of them one is no more than it was */

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return shows(look, at, sizeof text, &text);
    case PROTOBUF_C_TYPE_BOOL:
        not = !*(protobuf_c_boolean *)at;
        return shows(look, at, sizeof not, &not );
    case PROTOBUF_C_TYPE_MESSAGE:
        return false;
    default:
        memcpy(number, at, size_of(field));
        number[0] += OTHER;
        return shows(look, at, size_of(field), &number[0]) ||
               shows(look, at, size_of(field), &number[1]);
    }
}

static void walk(struct look *look, ProtobufCMessage *message);

static void value_look(struct look *look, const ProtobufCFieldDescriptor *field, void *at)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        walk(look, *(ProtobufCMessage **)at);
        return;
    }
    assert_true(look->len < FIELDS_MAX);
    if (!look->paths[look->len])
        look->paths[look->len] = must(strdup(look->path));
    look->shown[look->len] |= value_shows(look, field, at);
    look->len++;
}

static void walk(struct look *look, ProtobufCMessage *message)
{
    size_t len = strlen(look->path);

    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        char *at = (char *)message + field->offset;

        snprintf(look->path + len, sizeof look->path - len, ".%s", field->name);
        if (field->label != PROTOBUF_C_LABEL_REPEATED) {
            value_look(look, field, at);
            continue;
        }
        for (size_t k = 0; k < ROWS; k++)
            value_look(look, field, *(char **)at + k * size_of(field));
    }
    look->path[len] = '\0';
}

static bool may_be_silent(const struct subject *subject, const char *path)
{
    for (const char *const *at = subject->silent; at && *at; at++) {
        if (strcmp(*at, path) == 0)
            return true;
    }
    return false;
}

/* Where all that is yes or no is yes, or no: some fields show in one of them only. */
static void each_field_shows(void **state)
{
    const struct subject *subject = *state;
    struct look look = {.subject = subject};
    unsigned wrong = 0;

    for (int truth = 0; truth < 2; truth++) {
        unsigned next = 1;

        look.len = 0;
        look.root = filled(subject->is, truth, &next);
        walk(&look, look.root);
        protobuf_c_message_free_unpacked(look.root, NULL);
    }
    for (size_t i = 0; i < look.len; i++) {
        if (look.shown[i] == may_be_silent(subject, look.paths[i])) {
            print_error("%s%s: %s\n", subject->name, look.paths[i],
                        look.shown[i] ? "shown, and named as silent" : "not shown");
            wrong++;
        }
        free(look.paths[i]);
    }
    assert_int_equal(wrong, 0);
}

#define MAKE(lower, Message)                                                                       \
    static json_t *make_##lower(const ProtobufCMessage *message)                                   \
    {                                                                                              \
        return answer_##lower((const Control__V1__##Message *)message);                            \
    }
MAKE(status, StatusResponse)
MAKE(why, WhyResponse)
MAKE(resource, Resource)
MAKE(plugin, Plugin)
MAKE(device, Device)
MAKE(driver_device, DriverDevice)
MAKE(pod, Pod)
MAKE(order, Order)
MAKE(taint, Taint)
MAKE(ending, Ending)
MAKE(driver, Driver)
MAKE(claim, Claim)
MAKE(event, Event)

static json_t *make_allocation(const ProtobufCMessage *message)
{
    const Control__V1__Allocation *row = (const Control__V1__Allocation *)message;

    return answer_allocation(row, row->ids, row->n_ids);
}

#define SUBJECT(lower, under, may_be)                                                              \
    {                                                                                              \
        .name = #lower, .is = &control__v1__##under##__descriptor, .make = make_##lower,           \
        .silent = may_be                                                                           \
    }

int main(void)
{
    /* The count that it stands in has the kind; the others are of the list of orders. */
    static const char *const STATUS_SILENT[] = {".orders.newest.kind", ".orders.newest.more_ms",
                                                ".orders.newest.over", NULL};
    /* All of them are there: its rows are joined before. */
    static const char *const ALLOCATION_SILENT[] = {".ids_total", NULL};
    static const struct subject SUBJECTS[] = {
        SUBJECT(status, status_response, STATUS_SILENT),
        SUBJECT(why, why_response, NULL),
        SUBJECT(resource, resource, NULL),
        SUBJECT(plugin, plugin, NULL),
        SUBJECT(device, device, NULL),
        SUBJECT(driver_device, driver_device, NULL),
        SUBJECT(pod, pod, NULL),
        SUBJECT(order, order, NULL),
        SUBJECT(taint, taint, NULL),
        SUBJECT(ending, ending, NULL),
        SUBJECT(driver, driver, NULL),
        SUBJECT(claim, claim, NULL),
        SUBJECT(event, event, NULL),
        SUBJECT(allocation, allocation, ALLOCATION_SILENT),
    };
    struct CMUnitTest tests[sizeof SUBJECTS / sizeof *SUBJECTS];

    for (size_t i = 0; i < sizeof SUBJECTS / sizeof *SUBJECTS; i++) {
        tests[i] = (struct CMUnitTest){.name = SUBJECTS[i].name,
                                       .test_func = each_field_shows,
                                       .initial_state = (void *)&SUBJECTS[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
