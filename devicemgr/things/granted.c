#include "devicemgr/things/granted.h"

#include <string.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/mem.h"

char *granted_device_id(const struct granted_device *device)
{
    char *id = mem_alloc(strlen(device->pool) + strlen(device->device) + 2, 1);

    stpcpy(stpcpy(stpcpy(id, device->pool), "/"), device->device);
    return id;
}

bool granted_device_is(const struct granted_device *device, const char *id)
{
    size_t len = strlen(device->pool);

    return strncmp(id, device->pool, len) == 0 && id[len] == '/' &&
           strcmp(id + len + 1, device->device) == 0;
}

static bool is_among(const char *const *names, size_t names_len, const char *name)
{
    for (size_t i = 0; i < names_len; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

bool granted_device_named(const struct granted_device *device, const char *const *names,
                          size_t names_len)
{
    for (size_t i = 0; i < device->cdi.len; i++) {
        if (!is_among(names, names_len, device->cdi.v[i]))
            return false;
    }
    return device->cdi.len > 0;
}

static void device_fini(struct granted_device *device)
{
    free(device->pool);
    free(device->device);
    free(device->share_id);
    ids_fini(&device->cdi);
    ids_fini(&device->requests);
}

void granted_fini(struct granted *granted)
{
    for (size_t i = 0; i < granted->len; i++)
        device_fini(&granted->v[i]);
    free(granted->v);
    *granted = (struct granted){0};
}

struct granted_device *granted_add(struct granted *granted, const char *pool, const char *device,
                                   const char *share_id, bool admin)
{
    struct granted_device *added;

    granted->v = mem_grow(granted->v, granted->len, sizeof *granted->v);
    added = &granted->v[granted->len++];
    *added = (struct granted_device){
        .pool = mem_strdup(pool),
        .device = mem_strdup(device),
        .share_id = share_id ? mem_strdup(share_id) : NULL,
        .admin = admin,
    };
    return added;
}

bool granted_read(struct granted *granted, const void *response, size_t response_bytes)
{
    Dra__V1__NodePrepareResourceResponse *message =
        dra__v1__node_prepare_resource_response__unpack(NULL, response_bytes, response);
    bool fits = message && message->n_devices <= CLAIM_DEVICES_MAX;

    if (fits)
        granted_fini(granted);
    for (size_t i = 0; fits && i < message->n_devices; i++) {
        const Dra__V1__Device *is = message->devices[i];
        bool shared = is->shared_case == DRA__V1__DEVICE__SHARED_SHARE_ID;
        struct granted_device *to = granted_add(granted, is->pool_name, is->device_name,
                                                shared ? is->share_id : NULL, false);

        ids_copy(&to->cdi, is->cdi_device_ids, is->n_cdi_device_ids);
        ids_copy(&to->requests, is->request_names, is->n_request_names);
    }
    dra__v1__node_prepare_resource_response__free_unpacked(message, NULL);
    return fits;
}

const struct granted_device *granted_find(const struct granted *granted,
                                          const struct granted_device *sought)
{
    for (size_t i = 0; i < granted->len; i++) {
        const struct granted_device *is = &granted->v[i];

        if (strcmp(is->pool, sought->pool) == 0 && strcmp(is->device, sought->device) == 0 &&
            strcmp(is->share_id ? is->share_id : "", sought->share_id ? sought->share_id : "") == 0)
            return is;
    }
    return NULL;
}

static bool has_all(const struct granted *a, const struct granted *b)
{
    for (size_t i = 0; i < b->len; i++) {
        if (!granted_find(a, &b->v[i]))
            return false;
    }
    return true;
}

static bool are_in(const struct ids *names, const struct ids *in)
{
    for (size_t i = 0; i < names->len; i++) {
        if (!ids_contain(in, names->v[i]))
            return false;
    }
    return true;
}

bool granted_named_alike(const struct granted_device *a, const struct granted_device *b)
{
    return are_in(&a->cdi, &b->cdi) && are_in(&b->cdi, &a->cdi);
}

bool granted_has_alike(const struct granted *granted, const struct granted_device *device)
{
    for (size_t i = 0; i < granted->len; i++) {
        if (granted_named_alike(&granted->v[i], device))
            return true;
    }
    return false;
}

bool granted_same(const struct granted *a, const struct granted *b)
{
    return has_all(a, b) && has_all(b, a);
}

const struct granted_device *granted_named(const struct granted *granted, const char *name)
{
    for (size_t i = 0; i < granted->len; i++) {
        if (ids_contain(&granted->v[i].cdi, name))
            return &granted->v[i];
    }
    return NULL;
}

bool granted_meant_alike(const struct granted_device *a, const struct granted_device *b)
{
    size_t i = 0;

    while (i < a->requests.len && !ids_contain(&b->requests, a->requests.v[i]))
        i++;
    return a->requests.len == 0 || b->requests.len == 0 || i < a->requests.len;
}

/* Whether it is there, by the same names. */
static bool has_as_named(const struct granted *granted, const struct granted_device *device)
{
    const struct granted just = {(struct granted_device *)(uintptr_t)device, 1};

    for (size_t i = 0; i < granted->len; i++) {
        if (granted_find(&just, &granted->v[i]) && granted_named_alike(&granted->v[i], device))
            return true;
    }
    return false;
}

void granted_lapse(struct granted *lapsed, struct granted *devices, const struct granted *now,
                   size_t most)
{
    for (size_t i = 0; i < devices->len; i++) {
        if (has_as_named(now, &devices->v[i]) || has_as_named(lapsed, &devices->v[i]))
            continue;
        if (lapsed->len == most) {
            device_fini(&lapsed->v[0]);
            memmove(lapsed->v, lapsed->v + 1, --lapsed->len * sizeof *lapsed->v);
        }
        lapsed->v = mem_grow(lapsed->v, lapsed->len, sizeof *lapsed->v);
        lapsed->v[lapsed->len++] = devices->v[i];
        devices->v[i] = (struct granted_device){0};
    }
    granted_fini(devices);
}
