#include "shim/answers/answers.h"

#include "shim/json_value.h"
#include "shim/must.h"

static json_t *device_of(const Control__V1__ClaimDevice *device)
{
    json_t *one = must(json_object());

    json_value_set(one, "pool", json_value_text(device->pool));
    json_value_set(one, "name", json_value_text(device->name));
    json_value_set(one, "shareId", json_value_text_or_null(device->share_id));
    json_value_set(one, "adminAccess", json_boolean(device->admin_access));
    json_value_set(one, "cdi", json_value_texts(device->cdi_ids, device->n_cdi_ids));
    json_value_set(one, "health", answer_health(device->health));
    return one;
}

static json_t *use_of(const Control__V1__ClaimUse *use)
{
    json_t *one = must(json_object());

    json_value_set(one, "pod", json_value_text(use->pod));
    json_value_set(one, "uid", json_value_text_or_null(use->pod_uid));
    json_value_set(one, "container", json_value_text(use->container));
    return one;
}

json_t *answer_claim(const Control__V1__Claim *row)
{
    json_t *one = must(json_object()), *devices = must(json_array()), *users = must(json_array());

    for (size_t i = 0; i < row->n_devices; i++)
        json_value_append(devices, device_of(row->devices[i]));
    for (size_t i = 0; i < row->n_users; i++)
        json_value_append(users, use_of(row->users[i]));
    json_value_set(one, "namespace", json_value_text_or_null(row->namespace_));
    json_value_set(one, "name", json_value_text_or_null(row->name));
    json_value_set(one, "uid", json_value_text(row->uid));
    json_value_set(one, "driver", json_value_text(row->driver));
    json_value_set(one, "state", json_value_text(row->state));
    json_value_set(one, "since", answer_ago(row->since_ms));
    json_value_set(one, "stored", json_boolean(row->stored));
    json_value_set(one, "preparedSince",
                   row->prepared ? answer_ago(row->prepared_ms) : json_null());
    json_value_set(one, "local", json_boolean(row->local));
    json_value_set(one, "waits", json_value_number(row->asks));
    json_value_set(one, "devices", devices);
    json_value_set(one, "usedBy", users);
    json_value_set(one, "usedByTotal", json_value_number(row->users_total));
    return one;
}
