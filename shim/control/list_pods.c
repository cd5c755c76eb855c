/*
 * The list of pods, as messages.
 */
#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"

struct pods {
    struct list *list;
    Control__V1__PodsResponse *response;
};

static void add_container(struct list *list, Control__V1__Pod *pod,
                          const struct devicemgr_pod_container *is)
{
    Control__V1__PodContainer *container = list_alloc(list, 1, sizeof *container);

    control__v1__pod_container__init(container);
    container->name = list_text(list, is->name);
    container->devices = is->devices;
    container->state = list_text(list, is->state);
    container->waits = is->waits;
    container->waited_ms = is->waited_ms;
    container->refused_word = list_text(list, is->refused_word ? is->refused_word : "");
    container->refused_times = is->refused_times;
    container->refused_ms = is->refused_ms_ago;
    pod->containers[pod->n_containers++] = container;
    list->bytes += CONTROL_ROW_BYTES;
}

static bool on_pod(void *user, const struct devicemgr_pod *is)
{
    struct pods *pods = user;
    Control__V1__PodsResponse *response = pods->response;
    struct list *list = pods->list;
    Control__V1__Pod *row = list_alloc(list, 1, sizeof *row);
    const char *const key[] = {is->pod_namespace, is->name, is->uid};
    size_t len = is->containers_len < CONTROL_POD_CONTAINERS_MAX ? is->containers_len
                                                                 : CONTROL_POD_CONTAINERS_MAX;

    control__v1__pod__init(row);
    row->uid = list_text(list, is->uid);
    row->pod_namespace = list_text(list, is->pod_namespace);
    row->name = list_text(list, is->name);
    row->sandbox = list_text(list, is->sandbox);
    row->containers_total = is->containers_len;
    row->containers = list_alloc(list, len, sizeof *row->containers);
    while (row->n_containers < len)
        add_container(list, row, &is->containers[row->n_containers]);
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
    return list_goes_on(list, key, DEVICEMGR_POD_KEY, &response->next, &response->n_next);
}

bool list_pods(struct list *list, const struct list_from *from,
               const Control__V1__ListRequest *request)
{
    struct pods pods = {.list = list};

    pods.response = list_begin(list, request, DEVICEMGR_POD_KEY, CONTROL_PAGE_ROWS_MAX,
                               &control__v1__pods_response__descriptor);
    if (pods.response)
        devicemgr_pods(from->core, boot_now_ms(), &list->which, on_pod, &pods);
    return pods.response;
}
