#include "shim/events/event.h"

#include <stdlib.h>
#include <string.h>

#include "cri-proto/events_v1.pb-c.h"
#include "cri-proto/utf8.h"
#include "shim/hash.h"
#include "shim/must.h"
#include "shim/printable.h"

/* ---- one piece of memory ---- */

static size_t room_of(const char *text, size_t bytes_max)
{
    return (text ? strnlen(text, bytes_max) : 0) + 1;
}

/* How much of a text that is cut at `len` is whole characters. */
static size_t whole_len(const char *text, size_t len)
{
    size_t cut = len;

    if (text[len] == '\0')
        return len;
    while (cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80)
        cut--;
    return cut;
}

static void make_good(char *text)
{
    if (!utf8_is_text(text)) {
        for (char *c = text; *c; c++)
            if ((unsigned char)*c >= 0x80)
                *c = '?';
    }
    make_printable(text);
}

static char *put(char **end, const char *text, size_t bytes_max)
{
    char *copy = *end;
    size_t len = text ? strnlen(text, bytes_max) : 0;

    *end += len + 1;
    if (len > 0) {
        len = whole_len(text, len);
        memcpy(copy, text, len);
    }
    copy[len] = '\0';
    make_good(copy);
    return copy;
}

/* As many as fit. */
static size_t ids_that_fit(const struct event_said *said, size_t *bytes)
{
    size_t n = 0, sum = 0, next;

    for (; n < said->ids_len; n++) {
        next = sum + strnlen(said->ids[n], EVENTS_IDS_BYTES_MAX) + 1 + sizeof(char *);
        if (next > EVENTS_IDS_BYTES_MAX)
            break;
        sum = next;
    }
    *bytes = sum;
    return n;
}

/* ---- what is the same ---- */

static uint64_t hash_of(const struct event *event)
{
    uint64_t hash = hash_text(hash_text(HASH_BEGIN, event->kind), event->resource);

    hash = hash_text(hash_text(hash, event->pod_uid), event->container);
    hash = hash_text(hash, event->claim_uid);
    hash = hash_word(hash_text(hash, event->word), event->ids_total);
    for (size_t i = 0; i < event->ids_len; i++)
        hash = hash_text(hash, event->ids[i]);
    return hash;
}

bool event_about_same(const struct event *a, const struct event *b)
{
    return strcmp(a->resource, b->resource) == 0 && strcmp(a->pod_uid, b->pod_uid) == 0 &&
           strcmp(a->container, b->container) == 0 && strcmp(a->claim_uid, b->claim_uid) == 0;
}

/* ---- the value ---- */

struct event *event_new(const struct event_said *said, const struct event_moment *now)
{
    size_t ids_bytes, ids_len = ids_that_fit(said, &ids_bytes), bytes = sizeof(struct event);
    const char *names[] = {
        said->kind,      said->resource, said->pod_uid,   said->pod_namespace,   said->pod_name,
        said->container, said->word,     said->claim_uid, said->claim_namespace, said->claim_name};
    struct event *event;
    char *end;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        bytes += room_of(names[i], EVENTS_NAME_BYTES_MAX);
    bytes += ids_bytes + room_of(said->text, EVENTS_TEXT_BYTES_MAX);
    event = must(calloc(1, bytes));
    event->bytes = bytes;
    event->times = 1;
    event->first = event->last = *now;
    event->ids = (char **)(event + 1);
    end = (char *)(event->ids + ids_len);
    event->kind = put(&end, said->kind, EVENTS_NAME_BYTES_MAX);
    event->resource = put(&end, said->resource, EVENTS_NAME_BYTES_MAX);
    event->pod_uid = put(&end, said->pod_uid, EVENTS_NAME_BYTES_MAX);
    event->pod_namespace = put(&end, said->pod_namespace, EVENTS_NAME_BYTES_MAX);
    event->pod_name = put(&end, said->pod_name, EVENTS_NAME_BYTES_MAX);
    event->container = put(&end, said->container, EVENTS_NAME_BYTES_MAX);
    event->word = put(&end, said->word, EVENTS_NAME_BYTES_MAX);
    event->claim_uid = put(&end, said->claim_uid, EVENTS_NAME_BYTES_MAX);
    event->claim_namespace = put(&end, said->claim_namespace, EVENTS_NAME_BYTES_MAX);
    event->claim_name = put(&end, said->claim_name, EVENTS_NAME_BYTES_MAX);
    event->text = put(&end, said->text, EVENTS_TEXT_BYTES_MAX);
    for (; event->ids_len < ids_len; event->ids_len++)
        event->ids[event->ids_len] = put(&end, said->ids[event->ids_len], EVENTS_IDS_BYTES_MAX);
    event->ids_total = said->ids_total > ids_len ? said->ids_total : ids_len;
    event->same = hash_of(event);
    return event;
}

void event_free(struct event *event)
{
    free(event);
}

uint64_t event_ago_ms(const struct event_moment *then, const struct event_moment *now)
{
    bool this_boot = now->boot_id[0] != '\0' && strcmp(then->boot_id, now->boot_id) == 0;
    uint64_t then_ms = this_boot ? then->boot_ms : then->wall_ms;
    uint64_t now_ms = this_boot ? now->boot_ms : now->wall_ms;

    return now_ms > then_ms ? now_ms - then_ms : 0;
}

/* ---- records: how long, a checksum, and a message ---- */

struct head {
    uint32_t len;
    uint32_t sum;
};

static uint32_t sum_of(const uint8_t *bytes, size_t len)
{
    uint64_t hash = hash_bytes(HASH_BEGIN, bytes, len);

    return (uint32_t)(hash ^ hash >> 32);
}

/* Borrows the texts. */
static void message_of(const struct event *event, Events__V1__Event *message,
                       Events__V1__Moment moments[2])
{
    const struct event_moment *of[] = {&event->first, &event->last};

    events__v1__event__init(message);
    for (size_t i = 0; i < 2; i++) {
        events__v1__moment__init(&moments[i]);
        moments[i].wall_ms = of[i]->wall_ms;
        moments[i].boot_ms = of[i]->boot_ms;
        moments[i].boot_id = (char *)of[i]->boot_id;
    }
    message->first = &moments[0];
    message->last = &moments[1];
    event_put(event, message);
}

void event_pack(const struct event *event, uint8_t **bytes, size_t *len)
{
    Events__V1__Moment moments[2];
    Events__V1__Event message;
    struct head head;
    uint8_t *at;

    message_of(event, &message, moments);
    head.len = (uint32_t)events__v1__event__get_packed_size(&message);
    *bytes = must(realloc(*bytes, *len + sizeof head + head.len));
    at = *bytes + *len;
    events__v1__event__pack(&message, at + sizeof head);
    head.sum = sum_of(at + sizeof head, head.len);
    memcpy(at, &head, sizeof head);
    *len += sizeof head + head.len;
}

static struct event_moment moment_of(const Events__V1__Moment *message)
{
    struct event_moment moment = {0};

    if (!message)
        return moment;
    moment.wall_ms = message->wall_ms;
    moment.boot_ms = message->boot_ms;
    memcpy(moment.boot_id, message->boot_id, strnlen(message->boot_id, BOOT_ID_BYTES_MAX - 1));
    return moment;
}

static struct event *event_of(const Events__V1__Event *message)
{
    const struct event_said said = {.kind = message->kind,
                                    .resource = message->resource,
                                    .ids = (const char *const *)message->ids,
                                    .ids_len = message->n_ids,
                                    .ids_total = message->ids_total,
                                    .pod_uid = message->pod_uid,
                                    .pod_namespace = message->pod_namespace,
                                    .pod_name = message->pod_name,
                                    .container = message->container,
                                    .claim_uid = message->claim_uid,
                                    .claim_namespace = message->claim_namespace,
                                    .claim_name = message->claim_name,
                                    .word = message->word,
                                    .text = message->text};
    struct event_moment last = moment_of(message->last);
    struct event *event = event_new(&said, &last);

    event->first = moment_of(message->first);
    event->id = message->id;
    event->times = message->times;
    return event;
}

size_t event_unpack(const uint8_t *bytes, size_t len, struct event **event)
{
    Events__V1__Event *message;
    struct head head;

    if (len < sizeof head)
        return 0;
    memcpy(&head, bytes, sizeof head);
    if (head.len > len - sizeof head || sum_of(bytes + sizeof head, head.len) != head.sum)
        return 0;
    message = events__v1__event__unpack(NULL, head.len, bytes + sizeof head);
    if (!message)
        return 0;
    *event = event_of(message);
    events__v1__event__free_unpacked(message, NULL);
    return sizeof head + head.len;
}
