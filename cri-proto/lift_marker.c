#include "cri-proto/lift_marker.h"

#include <stdio.h>
#include <string.h>

#define PREFIX_BYTES (sizeof LIFT_MARKER_PREFIX - 1)
#define DOMAIN_BYTES_MAX 253
#define NAME_BYTES_MAX 63
#define UID_BYTES_MAX 64
/* What the name of a CDI device may have (specs-go's ValidateDeviceName), but for ':'. */
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

bool lift_marker_is(const char *name, size_t len)
{
    return len >= PREFIX_BYTES && memcmp(name, LIFT_MARKER_PREFIX, PREFIX_BYTES) == 0;
}

static bool is_part(const char *text, size_t len, size_t most)
{
    return len > 0 && len <= most && strspn(text, LETTERS) >= len;
}

bool lift_marker_put(char out[LIFT_MARKER_BYTES_MAX], const char *pool, const char *device,
                     const char *claim_uid)
{
    const char *slash = strchr(pool, '/');
    size_t domain = slash ? (size_t)(slash - pool) : 0;

    if (!slash || !is_part(pool, domain, DOMAIN_BYTES_MAX) ||
        !is_part(slash + 1, strlen(slash + 1), NAME_BYTES_MAX) ||
        !is_part(device, strlen(device), NAME_BYTES_MAX) ||
        !is_part(claim_uid, strlen(claim_uid), UID_BYTES_MAX))
        return false;
    snprintf(out, LIFT_MARKER_BYTES_MAX, "%s%.*s:%s:%s:%s", LIFT_MARKER_PREFIX, (int)domain, pool,
             slash + 1, device, claim_uid);
    return true;
}

bool lift_marker_read(const char *name, struct lift_marker *out)
{
    const char *at = name + PREFIX_BYTES;
    const char *uid;
    size_t domain, plain, device;

    if (!lift_marker_is(name, strlen(name)))
        return false;
    domain = strcspn(at, ":");
    if (!is_part(at, domain, DOMAIN_BYTES_MAX) || at[domain] != ':')
        return false;
    plain = strcspn(at + domain + 1, ":");
    if (!is_part(at + domain + 1, plain, NAME_BYTES_MAX) || at[domain + 1 + plain] != ':')
        return false;
    device = strcspn(at + domain + 1 + plain + 1, ":");
    if (!is_part(at + domain + 1 + plain + 1, device, NAME_BYTES_MAX) ||
        at[domain + 1 + plain + 1 + device] != ':')
        return false;
    uid = at + domain + 1 + plain + 1 + device + 1;
    if (!is_part(uid, strlen(uid), UID_BYTES_MAX))
        return false;
    snprintf(out->pool, sizeof out->pool, "%.*s/%.*s", (int)domain, at, (int)plain,
             at + domain + 1);
    snprintf(out->claim_uid, sizeof out->claim_uid, "%s", uid);
    snprintf(out->device, sizeof out->device, "%.*s", (int)device, at + domain + 1 + plain + 1);
    return true;
}
