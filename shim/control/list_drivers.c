/*
 * The lists of DRA drivers, as messages, and of the devices that are theirs.
 */
#include <string.h>

#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"

struct drivers {
    struct list *list;
    const struct list_from *from;
    Control__V1__DriversResponse *response;
};

/* They are only packed. */
static char **texts(struct list *list, const char *const *is, size_t len)
{
    for (size_t i = 0; i < len; i++)
        list_text(list, is[i]);
    return (char **)(uintptr_t)is;
}

static void add_endpoints(struct list *list, Control__V1__Driver *row,
                          const struct devicemgr_driver_row *is)
{
    row->endpoints = list_alloc(list, is->endpoints_len, sizeof *row->endpoints);
    for (size_t i = 0; i < is->endpoints_len; i++) {
        const struct devicemgr_driver_endpoint *endpoint = &is->endpoints[i];
        Control__V1__DriverEndpoint *out = list_alloc(list, 1, sizeof *out);

        control__v1__driver_endpoint__init(out);
        out->path = list_text(list, endpoint->endpoint);
        out->connected = endpoint->connected;
        out->since_ms = endpoint->since_ms_ago;
        out->called = endpoint->called;
        out->services = texts(list, endpoint->services, endpoint->services_len);
        out->n_services = endpoint->services_len;
        row->endpoints[row->n_endpoints++] = out;
        list->bytes += CONTROL_ROW_BYTES;
    }
}

static const char *slices_word(const struct list_from *from, const struct devicemgr_driver_row *is)
{
    if (is->connected)
        return "";
    if (is->wiped)
        return "wiped";
    return from->wipes && !is->moved ? "due" : "kept";
}

static const char *kubelet_word(const struct list_from *from, const char *driver)
{
    static const char *const WORDS[] = {
        [LIST_AT_NO_KUBELET] = "", [LIST_SHOWN] = "shown", [LIST_REGISTERED] = "registered"};

    return WORDS[from->at_kubelet ? from->at_kubelet(from->user, driver) : LIST_AT_NO_KUBELET];
}

/* A word that is old says nothing of now, as in the list of devices. */
static bool is_unhealthy(const struct health_word *word)
{
    DraHealth__V1alpha1__DeviceHealth *said;
    bool unhealthy;

    if (!health_word_is_fresh(word, boot_now_ms()))
        return false;
    said = dra_health__v1alpha1__device_health__unpack(NULL, word->len, word->bytes);
    unhealthy = said && said->health == DRA_HEALTH__V1ALPHA1__HEALTH_STATUS__UNHEALTHY;
    dra_health__v1alpha1__device_health__free_unpacked(said, NULL);
    return unhealthy;
}

static void count_health(const struct list_from *from, Control__V1__Driver *row)
{
    const struct health_word *word = from->health ? health_words_after(from->health, 0) : NULL;

    for (; word; word = health_word_next(word)) {
        if (strcmp(word->driver, row->name) != 0)
            continue;
        row->health = true;
        row->unhealthy += is_unhealthy(word);
    }
}

static bool on_driver(void *user, const struct devicemgr_driver_row *is)
{
    struct drivers *drivers = user;
    Control__V1__DriversResponse *response = drivers->response;
    struct list *list = drivers->list;
    Control__V1__Driver *row = list_alloc(list, 1, sizeof *row);

    control__v1__driver__init(row);
    row->name = list_text(list, is->name);
    row->connected = is->connected;
    row->since_ms = is->since_ms_ago;
    row->why = list_text(list, is->why);
    add_endpoints(list, row, is);
    row->services = texts(list, is->services, is->services_len);
    row->n_services = is->services_len;
    row->slices = list_text(list, slices_word(drivers->from, is));
    row->claims = is->claims;
    row->prepared = is->prepared;
    row->owed = is->owed;
    row->waits = is->waits;
    row->moved = is->moved;
    row->kubelet = list_text(list, kubelet_word(drivers->from, is->name));
    count_health(drivers->from, row);
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
    return list_goes_on(list, &is->name, DEVICEMGR_DRIVER_KEY, &response->next, &response->n_next);
}

bool list_drivers(struct list *list, const struct list_from *from,
                  const Control__V1__ListRequest *request)
{
    struct drivers drivers = {.list = list, .from = from};

    drivers.response = list_begin(list, request, DEVICEMGR_DRIVER_KEY, CONTROL_PAGE_ROWS_MAX,
                                  &control__v1__drivers_response__descriptor);
    if (drivers.response)
        devicemgr_driver_rows(from->core, boot_now_ms(), &list->which, on_driver, &drivers);
    return drivers.response;
}
