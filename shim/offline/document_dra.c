/*
 * The rows of drivers and claims.
 */
#include <stdint.h>
#include <stdlib.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/kubelet_file/base64.h"
#include "shim/must.h"
#include "shim/offline/document_reading.h"

int document_read_driver(const struct reading *at, json_t *value)
{
    Checkpoint__V1__Driver row = CHECKPOINT__V1__DRIVER__INIT;
    const json_t *services;
    int wiped, moved, was_elsewhere;

    if (reading_unpack(at, value, "{s:s, s:o, s:b, s:b, s:b}", "name", &row.name, "services",
                       &services, "wiped", &wiped, "moved", &moved, "wasElsewhere",
                       &was_elsewhere) < 0 ||
        reading_texts_of(at, services, "services", &row.services, &row.n_services) < 0)
        return -1;
    row.wiped = wiped;
    row.moved = moved;
    row.was_elsewhere = was_elsewhere;
    reading_add_row(at, DEVICEMGR_RECORD_DRIVER, row.name, "", "", &row.base);
    free(row.services);
    return 0;
}

/* Earlier releases wrote neither podUid nor former. */
static int read_users(const struct reading *at, const json_t *list, Checkpoint__V1__Claim *row)
{
    size_t i;
    json_t *one;

    if (!json_is_array(list))
        return reading_wrong(at, "users is no list");
    row->users = must(calloc(json_array_size(list) + 1, sizeof *row->users));
    json_array_foreach(list, i, one) {
        Checkpoint__V1__ClaimUser *user = must(malloc(sizeof *user));
        const json_t *pod_uid = NULL;
        int former = 0;

        checkpoint__v1__claim_user__init(user);
        row->users[row->n_users++] = user;
        if (reading_unpack(at, one, "{s:s, s:s, s:s, s?o, s?b}", "sandbox", &user->sandbox_id,
                           "container", &user->container, "pod", &user->pod, "podUid", &pod_uid,
                           "former", &former) < 0 ||
            (pod_uid && reading_text_or_empty(at, pod_uid, "podUid", &user->pod_uid) < 0))
            return -1;
        user->former = former;
    }
    return 0;
}

/* Earlier releases wrote no requests, nor, of some, the list. */
static int read_devices(const struct reading *at, const json_t *list, const char *wrong,
                        Checkpoint__V1__ClaimDevice ***devices, size_t *len)
{
    size_t i;
    json_t *one;

    if (!list)
        return 0;
    if (!json_is_array(list))
        return reading_wrong(at, wrong);
    *devices = must(calloc(json_array_size(list) + 1, sizeof **devices));
    json_array_foreach(list, i, one) {
        Checkpoint__V1__ClaimDevice *device = must(malloc(sizeof *device));
        const json_t *share_id, *cdi, *requests = NULL;

        checkpoint__v1__claim_device__init(device);
        (*devices)[(*len)++] = device;
        if (reading_unpack(at, one, "{s:s, s:s, s:o, s:o, s?o}", "pool", &device->pool, "device",
                           &device->device, "shareId", &share_id, "cdi", &cdi, "requests",
                           &requests) < 0 ||
            reading_text_or_empty(at, share_id, "shareId", &device->share_id) < 0 ||
            reading_texts_of(at, cdi, "cdi", &device->cdi, &device->n_cdi) < 0 ||
            (requests && reading_texts_of(at, requests, "requests", &device->requests,
                                          &device->n_requests) < 0))
            return -1;
    }
    return 0;
}

static void free_devices(Checkpoint__V1__ClaimDevice **devices, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        free(devices[i]->cdi);
        free(devices[i]->requests);
        free(devices[i]);
    }
    free(devices);
}

static void free_lists(Checkpoint__V1__Claim *row)
{
    for (size_t i = 0; i < row->n_users; i++)
        free(row->users[i]);
    free(row->users);
    free_devices(row->former, row->n_former);
    free_devices(row->lapsed, row->n_lapsed);
}

/* Without a time there is no boot that it is of. */
static int read_prepared(const struct reading *at, const json_t *prepared, const json_t *boot,
                         Checkpoint__V1__Claim *row)
{
    if (reading_text_or_empty(at, boot, "preparedBoot", &row->boot_id) < 0)
        return -1;
    if (json_is_null(prepared))
        return *row->boot_id ? reading_wrong(at, "preparedBoot of one that is not prepared") : 0;
    if (!json_is_integer(prepared) || json_integer_value(prepared) <= 0)
        return reading_wrong(at, "preparedMs is no number of milliseconds");
    row->prepared_ms = (uint64_t)json_integer_value(prepared);
    return 0;
}

/* Earlier releases wrote neither unanswered, moved, alone, former nor lapsed. */
int document_read_claim(const struct reading *at, json_t *value)
{
    Checkpoint__V1__Claim row = CHECKPOINT__V1__CLAIM__INIT;
    const json_t *name_space, *name, *answer, *users, *former = NULL, *lapsed = NULL;
    const json_t *prepared, *boot;
    int sent, unanswered = 0, moved = 0, local, alone = 0, rc;
    char *text;

    if (reading_unpack(
            at, value,
            "{s:s, s:s, s:o, s:o, s:s, s:o, s:b, s?b, s?b, s:b, s?b, s:o, s?o, s?o, s:o, s:o}",
            "uid", &row.uid, "driver", &row.driver, "namespace", &name_space, "name", &name,
            "state", &row.state, "answer", &answer, "sent", &sent, "unanswered", &unanswered,
            "moved", &moved, "local", &local, "alone", &alone, "users", &users, "former", &former,
            "lapsed", &lapsed, "preparedMs", &prepared, "preparedBoot", &boot) < 0 ||
        reading_text_or_empty(at, name_space, "namespace", &row.namespace_) < 0 ||
        reading_text_or_empty(at, name, "name", &row.name) < 0 ||
        reading_text_or_empty(at, answer, "answer", &text) < 0 ||
        read_prepared(at, prepared, boot, &row) < 0)
        return -1;
    row.sent = sent;
    row.unanswered = unanswered;
    row.moved = moved;
    row.local = local;
    row.alone = alone;
    row.has_response = !json_is_null(answer);
    rc = read_users(at, users, &row);
    if (rc == 0)
        rc = read_devices(at, former, "former is no list", &row.former, &row.n_former);
    if (rc == 0)
        rc = read_devices(at, lapsed, "lapsed is no list", &row.lapsed, &row.n_lapsed);
    if (rc == 0 && base64_decode(text, &row.response.data, &row.response.len) < 0)
        rc = reading_wrong(at, "answer is no Base64");
    if (rc == 0)
        reading_add_row(at, DEVICEMGR_RECORD_CLAIM, row.uid, row.driver, "", &row.base);
    free(row.response.data);
    free_lists(&row);
    return rc;
}
