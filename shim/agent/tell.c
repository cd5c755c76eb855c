#include "shim/agent/tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <jansson.h>

#include "shim/hash.h"

/* The server takes no longer ones (pkg/apis/core/validation/events.go). */
#define MESSAGE_BYTES_MAX 1024
#define REASON_BYTES_MAX 128
#define COMPONENT "cri-device-shim"

uint64_t tell_object_hash(const Agent__V1__Tell *tell)
{
    return hash_text(hash_text(hash_text(HASH_BEGIN, tell->namespace_), tell->name), tell->uid) | 1;
}

uint64_t tell_event_hash(const Agent__V1__Tell *tell)
{
    uint64_t hash = hash_text(hash_text(tell_object_hash(tell), tell->reason), tell->message);

    return hash_word(hash, tell->warning) | 1;
}

const char *tell_namespace(const Agent__V1__Tell *tell)
{
    return *tell->namespace_ ? tell->namespace_ : "default";
}

static void format_time(struct timespec *now, char out[32])
{
    struct tm tm;

    clock_gettime(CLOCK_REALTIME, now);
    gmtime_r(&now->tv_sec, &tm);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* The Node's uid is its name there, as the kubelet has it. */
static json_t *involved(const Agent__V1__Tell *tell, const char *node)
{
    if (*tell->namespace_)
        return json_pack("{s:s, s:s, s:s, s:s, s:s}", "apiVersion", "v1", "kind", "Pod",
                         "namespace", tell->namespace_, "name", tell->name, "uid", tell->uid);
    return json_pack("{s:s, s:s, s:s, s:s}", "apiVersion", "v1", "kind", "Node", "name", node,
                     "uid", node);
}

/* Up to so many bytes, and no character cut in two. */
static json_t *text(const char *from, size_t max)
{
    size_t len = strlen(from);

    if (len > max) {
        len = max;
        while (len > 0 && ((unsigned char)from[len] & 0xc0) == 0x80)
            len--;
    }
    return json_stringn(from, len);
}

char *tell_new(const Agent__V1__Tell *tell, const char *node, char name[SPAM_NAME_BYTES_MAX])
{
    struct timespec now;
    char time[32], *out;
    json_t *event;

    format_time(&now, time);
    snprintf(name, SPAM_NAME_BYTES_MAX, "%.253s.%llx", *tell->namespace_ ? tell->name : node,
             (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec);
    event = json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:o, s:o, s:o, s:s, s:{s:s, s:s}, s:s, s:s, s:i, s:s, s:s}",
        "apiVersion", "v1", "kind", "Event", "metadata", "name", name, "namespace",
        tell_namespace(tell), "involvedObject", involved(tell, node), "reason",
        text(tell->reason, REASON_BYTES_MAX), "message", text(tell->message, MESSAGE_BYTES_MAX),
        "type", tell->warning ? "Warning" : "Normal", "source", "component", COMPONENT, "host",
        node, "firstTimestamp", time, "lastTimestamp", time, "count", 1, "reportingComponent",
        COMPONENT, "reportingInstance", node);
    out = event ? json_dumps(event, JSON_COMPACT) : NULL;
    json_decref(event);
    return out;
}

char *tell_again(unsigned count)
{
    struct timespec now;
    char time[32], *out;
    json_t *patch;

    format_time(&now, time);
    patch = json_pack("{s:i, s:s}", "count", (int)count, "lastTimestamp", time);
    out = patch ? json_dumps(patch, JSON_COMPACT) : NULL;
    json_decref(patch);
    return out;
}
