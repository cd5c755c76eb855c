#include "shim/agent/spam.h"

#include <stddef.h>
#include <stdio.h>

static struct spam_object *object_at(struct spam *spam, uint64_t hash)
{
    struct spam_object *oldest = &spam->objects[0];

    for (size_t i = 0; i < SPAM_OBJECTS_MAX; i++) {
        struct spam_object *object = &spam->objects[i];

        if (object->hash == hash)
            return object;
        if (object->at_ms < oldest->at_ms)
            oldest = object;
    }
    *oldest = (struct spam_object){.hash = hash, .tokens = SPAM_BURST};
    return oldest;
}

bool spam_allows(struct spam *spam, uint64_t object, uint64_t now_ms)
{
    struct spam_object *at = object_at(spam, object);

    if (at->at_ms > 0)
        at->tokens += (double)(now_ms - at->at_ms) / SPAM_REFILL_MS;
    if (at->tokens > SPAM_BURST)
        at->tokens = SPAM_BURST;
    at->at_ms = now_ms;
    if (at->tokens < 1)
        return false;
    at->tokens -= 1;
    return true;
}

struct spam_event *spam_find(struct spam *spam, uint64_t event, uint64_t now_ms)
{
    for (size_t i = 0; i < SPAM_EVENTS_MAX; i++) {
        struct spam_event *at = &spam->events[i];

        if (at->hash == event && at->hash != 0 && now_ms - at->at_ms <= SPAM_ALIKE_MS)
            return at;
    }
    return NULL;
}

void spam_note(struct spam *spam, uint64_t event, const char *name, uint64_t now_ms)
{
    struct spam_event *to = &spam->events[0];

    for (size_t i = 0; i < SPAM_EVENTS_MAX; i++) {
        struct spam_event *at = &spam->events[i];

        if (at->hash == event) {
            to = at;
            break;
        }
        if (at->at_ms < to->at_ms)
            to = at;
    }
    *to = (struct spam_event){.hash = event, .at_ms = now_ms, .count = 1};
    snprintf(to->name, sizeof to->name, "%s", name);
}
