#include "shim/agent/tell.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cri-proto/utf8.h"
#include "shim/hash.h"
#include "shim/must.h"

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
    uint64_t hash = hash_text(hash_text(tell_object_hash(tell), tell->reason), tell->series);

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

/* Up to so many bytes, and no character cut in two. What is none, as a plugin may have said it, is
 * put as U+FFFD. */
static json_t *text(const char *from, size_t max)
{
    static const char REPLACEMENT[] = "\xef\xbf\xbd";
    char *out = must(malloc(max + 1));
    size_t left = strlen(from), len = 0;
    json_t *string;

    while (left > 0) {
        size_t n = utf8_character_bytes(from, left), put = n ? n : strlen(REPLACEMENT);

        if (len + put > max)
            break;
        memcpy(out + len, n ? from : REPLACEMENT, put);
        len += put;
        from += n ? n : 1;
        left -= n ? n : 1;
    }
    string = json_stringn(out, len);
    free(out);
    return string;
}

/* The object's, '.', and a number; where that is too long for a name, ours in the object's
 * place. */
static void name_event(const char *object, const struct timespec *now,
                       char name[SPAM_NAME_BYTES_MAX])
{
    unsigned long long number =
        (unsigned long long)now->tv_sec * 1000000000 + (unsigned long long)now->tv_nsec;
    bool fits = strlen(object) + strlen(".") + 16 < SPAM_NAME_BYTES_MAX;

    snprintf(name, SPAM_NAME_BYTES_MAX, "%s.%llx", fits ? object : COMPONENT, number);
}

json_t *tell_new(const Agent__V1__Tell *tell, const char *node, char name[SPAM_NAME_BYTES_MAX])
{
    struct timespec now;
    char time[32];

    format_time(&now, time);
    name_event(*tell->namespace_ ? tell->name : node, &now, name);
    return json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:o, s:o, s:o, s:s, s:{s:s, s:s}, s:s, s:s, s:i, s:s, s:s}",
        "apiVersion", "v1", "kind", "Event", "metadata", "name", name, "namespace",
        tell_namespace(tell), "involvedObject", involved(tell, node), "reason",
        text(tell->reason, REASON_BYTES_MAX), "message", text(tell->message, MESSAGE_BYTES_MAX),
        "type", tell->warning ? "Warning" : "Normal", "source", "component", COMPONENT, "host",
        node, "firstTimestamp", time, "lastTimestamp", time, "count", 1, "reportingComponent",
        COMPONENT, "reportingInstance", node);
}

json_t *tell_again(const Agent__V1__Tell *tell, unsigned count)
{
    struct timespec now;
    char time[32];

    format_time(&now, time);
    return json_pack("{s:i, s:s, s:o}", "count", (int)count, "lastTimestamp", time, "message",
                     text(tell->message, MESSAGE_BYTES_MAX));
}
