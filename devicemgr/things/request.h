/*
 * Which devices a container asks for: parsed from the tokens in its annotations and from the pod's
 * own request annotation.
 *
 *   token   key    devices.cri-device-shim/vendor.com_gpu        (the resource, '/' as '_')
 *           value  {"resource":"vendor.com/gpu","ids":["g0"]}    (these members, no others)
 *   asked   key    asked.devices.cri-device-shim/vendor.com_gpu  (of a container that has others in
 *           value  as the token's                                 the place of what a token said)
 *   request key    devices.cri-device-shim/<container>
 *           value  vendor.com/gpu=2, other.com/nic=1
 */
#ifndef DEVICEMGR_THINGS_REQUEST_H
#define DEVICEMGR_THINGS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cri-proto/token.h"
#include "devicemgr/things/by_claims.h"
#include "devicemgr/things/ids.h"
#include "devicemgr/things/text.h"

struct devicemgr_annotation;

#define REQUEST_KEY_PREFIX TOKEN_KEY_PREFIX

/* What a plugin says of its preference is asked once. */
enum request_prefer {
    PREFER_NOT_ASKED,
    PREFER_ASKED,
    PREFER_ANSWERED,
};

/* Of one resource. */
struct request_item {
    char *resource;
    size_t count;
    bool token;                 /* the kubelet chose: `ids` are its choice, sorted; */
    bool claimed;               /* or the scheduler did, for claims (lift_marker.h): likewise, */
    struct by_claims by;        /* and for which */
    struct ids ids;             /* empty without a token */
    enum request_prefer prefer; /* what is not read, but comes to be known: without a token, */
    struct ids preferred;       /* by the plugin, in its order */
};

/* A zeroed struct asks for nothing. */
struct request {
    struct request_item *items; /* after request_sort() by resource name */
    size_t len;
};

void request_fini(struct request *request);
bool request_names(const struct request *request, const char *resource);
static inline bool request_is_token_key(const char *key)
{
    return strncmp(key, REQUEST_KEY_PREFIX, strlen(REQUEST_KEY_PREFIX)) == 0;
}
/* Whether it says what a token's devices are in the place of: then `key` + this is the key of the
 * token that the kubelet sent, and its value that token's. 0: no. */
static inline size_t request_is_asked_key(const char *key)
{
    size_t len = strlen(TOKEN_ASKED_PREFIX);

    return strncmp(key, TOKEN_ASKED_PREFIX, len) == 0 && request_is_token_key(key + len) ? len : 0;
}
/* Whether it is one that only the shim and the kubelet write. */
bool request_is_own_key(const char *key);
/* The value of the annotation by which its pod asks for the container, borrowed; NULL: there is
 * none. That of tolerations (toleration.h) is none, whatever the container is called. */
const char *request_annotation_of(const struct devicemgr_annotation *annotations, size_t len,
                                  const char *container);

/* Both return 0, or -1 with what is wrong and where added to `error`. A resource named by a token
 * already is skipped by the second: the token wins. So add tokens first. */
int request_add_token(struct request *request, const char *key, const char *value,
                      struct text *error) __attribute__((warn_unused_result));
int request_add_annotation(struct request *request, const char *value, struct text *error)
    __attribute__((warn_unused_result));
/* A device by a claim, beside others of the resource; as the two above. */
int request_add_claimed(struct request *request, const char *resource, const char *id,
                        const char *claim_uid, struct text *error)
    __attribute__((warn_unused_result));
void request_sort(struct request *request);

/* The token (cri-proto/token.h) of an allocation; never NULL, the caller frees both. */
char *request_token_key(const char *resource);
char *request_asked_key(const char *resource);
char *request_token_value(const char *resource, const struct ids *ids);

#endif
