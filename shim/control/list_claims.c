/*
 * The list of claims, as messages.
 */
#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"

struct claims {
    struct list *list;
    const struct list_from *from;
    Control__V1__ClaimsResponse *response;
};

static Control__V1__ClaimDevice *device_of(const struct claims *claims, const char *driver,
                                           const struct devicemgr_granted *is)
{
    struct list *list = claims->list;
    Control__V1__ClaimDevice *device = list_alloc(list, 1, sizeof *device);

    control__v1__claim_device__init(device);
    device->pool = list_text(list, is->pool);
    device->name = list_text(list, is->device);
    device->share_id = list_text(list, is->share_id ? is->share_id : "");
    device->admin_access = is->admin;
    device->cdi_ids = (char **)(uintptr_t)is->cdi; /* only packed */
    device->n_cdi_ids = is->cdi_len;
    for (size_t i = 0; i < is->cdi_len; i++)
        list_text(list, is->cdi[i]);
    device->health = list_health(list, claims->from, driver, is->pool, is->device);
    list->bytes += CONTROL_ROW_BYTES;
    return device;
}

static Control__V1__ClaimUse *use_of(struct list *list, const struct devicemgr_claim_use *is)
{
    Control__V1__ClaimUse *use = list_alloc(list, 1, sizeof *use);

    control__v1__claim_use__init(use);
    use->pod = list_text(list, is->pod);
    use->pod_uid = list_text(list, is->pod_uid);
    use->container = list_text(list, is->container);
    list->bytes += CONTROL_ROW_BYTES;
    return use;
}

static void add_parts(const struct claims *claims, Control__V1__Claim *row,
                      const struct devicemgr_claim_row *is)
{
    struct list *list = claims->list;
    size_t users = is->users_len < CONTROL_HOLDERS_MAX ? is->users_len : CONTROL_HOLDERS_MAX;

    row->devices = list_alloc(list, is->devices_len, sizeof *row->devices);
    while (row->n_devices < is->devices_len) {
        row->devices[row->n_devices] = device_of(claims, is->driver, &is->devices[row->n_devices]);
        row->n_devices++;
    }
    row->users_total = is->users_len;
    row->users = list_alloc(list, users, sizeof *row->users);
    while (row->n_users < users) {
        row->users[row->n_users] = use_of(list, &is->users[row->n_users]);
        row->n_users++;
    }
}

static bool on_claim(void *user, const struct devicemgr_claim_row *is)
{
    struct claims *claims = user;
    Control__V1__ClaimsResponse *response = claims->response;
    struct list *list = claims->list;
    Control__V1__Claim *row = list_alloc(list, 1, sizeof *row);
    const char *key[DEVICEMGR_CLAIM_KEY] = {is->pod_namespace, is->name, is->uid, is->driver};

    control__v1__claim__init(row);
    row->uid = list_text(list, is->uid);
    row->namespace_ = list_text(list, is->pod_namespace);
    row->name = list_text(list, is->name);
    row->driver = list_text(list, is->driver);
    row->state = list_text(list, is->state);
    row->since_ms = is->since_ms_ago;
    row->stored = is->stored;
    row->prepared = is->prepared;
    row->prepared_ms = is->prepared ? is->prepared_ms_ago : 0;
    row->local = is->local;
    row->asks = is->asks;
    add_parts(claims, row, is);
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
    return list_goes_on(list, key, DEVICEMGR_CLAIM_KEY, &response->next, &response->n_next);
}

bool list_claims(struct list *list, const struct list_from *from,
                 const Control__V1__ListRequest *request)
{
    struct claims claims = {.list = list, .from = from};

    claims.response = list_begin(list, request, DEVICEMGR_CLAIM_KEY, CONTROL_PAGE_ROWS_MAX,
                                 &control__v1__claims_response__descriptor);
    if (claims.response)
        devicemgr_claim_rows(from->core, boot_now_ms(), &list->which, on_claim, &claims);
    return claims.response;
}
