/*
 * cri-device-shimctl pods
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/answers/answers.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/list.h"

static const struct table_column COLUMNS[] = {
    {.name = "NAMESPACE"},
    {.name = "NAME"},
    {.name = "CONTAINERS", .right = true},
    {.name = "DEVICES", .right = true},
    {.name = "STATE"},
    {.name = "WAITED"},
    {.name = "REFUSED"},
    {.name = "SANDBOX", .wide = true},
    {.name = "UID", .wide = true},
};

/* ---- for people ---- */

/* What is told of a pod in one line. */
struct sum {
    uint64_t devices;
    const char *state; /* waits, refused, or that of its containers; "mixed": they differ */
    bool waits;
    uint64_t waited_ms;                       /* the longest */
    const Control__V1__PodContainer *refused; /* the last */
};

static void add(struct sum *sum, const Control__V1__PodContainer *container)
{
    sum->devices += container->devices;
    if (container->waits && container->waited_ms >= sum->waited_ms)
        sum->waited_ms = container->waited_ms;
    sum->waits = sum->waits || container->waits;
    if (container->refused_word[0] &&
        (!sum->refused || container->refused_ms < sum->refused->refused_ms))
        sum->refused = container;
    if (container->state[0] && !sum->state)
        sum->state = container->state;
    else if (container->state[0] && strcmp(container->state, sum->state) != 0)
        sum->state = "mixed";
}

static struct sum sum_of(const Control__V1__Pod *row)
{
    struct sum sum = {0};

    for (size_t i = 0; i < row->n_containers; i++)
        add(&sum, row->containers[i]);
    if (sum.waits)
        sum.state = "waits";
    else if (!sum.state)
        sum.state = "refused";
    return sum;
}

static void put_refusal(struct table *table, const Control__V1__PodContainer *container)
{
    char text[128] = "", last[SHOW_AGE_BYTES];

    if (container)
        snprintf(text, sizeof text, "%.64s (%s ago, %" PRIu64 "x)", container->refused_word,
                 show_age(container->refused_ms, last), container->refused_times);
    table_put(table, text);
}

static void put_row(struct table *table, const Control__V1__Pod *row)
{
    const struct sum sum = sum_of(row);
    char waited[SHOW_AGE_BYTES];

    table_row(table, sum.waits                           ? TABLE_WARNING
                     : strcmp(sum.state, "refused") == 0 ? TABLE_BAD
                                                         : TABLE_PLAIN);
    table_put(table, row->pod_namespace);
    table_put(table, row->name);
    table_put_number(table, row->containers_total);
    table_put_number(table, sum.devices);
    table_put(table, sum.state);
    table_put(table, sum.waits ? show_age(sum.waited_ms, waited) : "");
    put_refusal(table, sum.refused);
    table_put(table, row->sandbox);
    table_put(table, row->uid);
}

/* ---- the command ---- */

static void put_name(const struct listing *listing, const Control__V1__Pod *row)
{
    char *pod = list_pod_name(row->pod_namespace, row->name, row->uid);

    list_put_name(listing, "pod", pod, NULL);
    free(pod);
}

static void put_rows(struct listing *listing, const ProtobufCMessage *page)
{
    LIST_PUT_EACH(Control__V1__PodsResponse, listing, page, answer_pod, put_row, put_name);
}

static const struct list PODS = {
    .method = CONTROL_PODS,
    .response = &control__v1__pods_response__descriptor,
    .argument = LIST_POD,
    .columns = COLUMNS,
    .columns_len = sizeof COLUMNS / sizeof *COLUMNS,
    .put = put_rows,
    .none = "no such pod has devices, waits for any or was refused",
};

const struct command pods_command = {
    .name = "pods",
    .arguments = "[POD]",
    .summary = "the pods that have devices, wait for some or were refused",
    .arguments_max = 1,
    .options = {{"namespace", 'n', "NAMESPACE", "in this namespace"}},
    .run = list_run,
    .list = &PODS,
};
