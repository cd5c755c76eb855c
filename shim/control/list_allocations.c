/*
 * The list of allocations, as messages. One with more ids than a page has room for goes on in the
 * next: the place is then its own key, and how many of its ids were told.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"

#define PLACE_PARTS (DEVICEMGR_ALLOCATION_KEY + 1)
#define NUMBER_BYTES 24

struct allocations {
    struct list *list;
    Control__V1__AllocationsResponse *response;
    size_t told; /* of the ids of one row, by the page before */
};

/* How many ids of this row the page before has told. */
static size_t told_before(const struct allocations *allocations,
                          const struct devicemgr_allocation *is)
{
    char *const *after = allocations->list->request->after;

    if (allocations->told == 0 || strcmp(after[2], is->pod_uid) != 0 ||
        strcmp(after[3], is->container) != 0 || strcmp(after[4], is->resource) != 0)
        return 0;
    return allocations->told < is->ids_len ? allocations->told : is->ids_len;
}

static void add_waits(struct list *list, Control__V1__Allocation *row,
                      const struct devicemgr_allocation *is)
{
    const struct {
        bool so;
        const char *word;
    } waits[] = {{is->waits_store, "store"},
                 {is->waits_create, "create"},
                 {is->waits_check, "check"},
                 {is->waits_list, "list"}};
    size_t len = sizeof waits / sizeof *waits;

    row->waits = list_alloc(list, len, sizeof *row->waits);
    for (size_t i = 0; i < len; i++) {
        if (waits[i].so)
            row->waits[row->n_waits++] = list_text(list, waits[i].word);
    }
}

/* The first ones, for people: who counts them has `ids`, which are as many. */
#define ASKED_MAX 64

static void add_asked(struct list *list, Control__V1__Allocation *row,
                      const struct devicemgr_allocation *is)
{
    size_t len = is->asked_len < ASKED_MAX ? is->asked_len : ASKED_MAX;

    row->asked = list_alloc(list, len, sizeof *row->asked);
    while (row->n_asked < len) {
        row->asked[row->n_asked] = list_id(list, is->asked[row->n_asked]);
        row->n_asked++;
        list->bytes += 4; /* its tag and length */
    }
}

/* As many as there is room for, one at least if there are, from `told` on. How many are told
 * then. */
static size_t add_ids(struct list *list, Control__V1__Allocation *row,
                      const struct devicemgr_allocation *is, size_t told)
{
    row->ids_total = is->ids_len;
    row->ids = list_alloc(list, is->ids_len - told, sizeof *row->ids);
    while (told < is->ids_len && (row->n_ids == 0 || list->bytes < CONTROL_PAGE_BYTES_MAX)) {
        row->ids[row->n_ids++] = list_id(list, is->ids[told++]);
        list->bytes += 4; /* its tag and length */
    }
    return told;
}

static bool on_allocation(void *user, const struct devicemgr_allocation *is)
{
    struct allocations *allocations = user;
    Control__V1__AllocationsResponse *response = allocations->response;
    struct list *list = allocations->list;
    Control__V1__Allocation *row = list_alloc(list, 1, sizeof *row);
    char *number = list_alloc(list, 1, NUMBER_BYTES);
    size_t told = told_before(allocations, is);
    const char *const place[PLACE_PARTS] = {is->pod_namespace, is->pod_name, is->pod_uid,
                                            is->container,     is->resource, number};

    control__v1__allocation__init(row);
    row->pod_uid = list_text(list, is->pod_uid);
    row->pod_namespace = list_text(list, is->pod_namespace);
    row->pod_name = list_text(list, is->pod_name);
    row->container = list_text(list, is->container);
    row->resource = list_text(list, is->resource);
    row->state = list_text(list, is->state);
    row->since_ms = is->since_ms_ago;
    row->chosen_here = is->own_choice;
    row->claimed = is->claimed;
    row->stored = is->stored;
    row->cached = is->cached;
    add_asked(list, row, is);
    add_waits(list, row, is);
    told = add_ids(list, row, is, told);
    if (told < is->ids_len)
        snprintf(number, NUMBER_BYTES, "%zu", told);
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
    return list_goes_on(list, place, PLACE_PARTS, &response->next, &response->n_next);
}

bool list_allocations(struct list *list, const struct list_from *from,
                      const Control__V1__ListRequest *request)
{
    struct allocations allocations = {.list = list};

    allocations.response = list_begin(list, request, PLACE_PARTS, CONTROL_PAGE_ROWS_MAX,
                                      &control__v1__allocations_response__descriptor);
    if (!allocations.response)
        return false;
    if (request->n_after > 0)
        allocations.told = strtoumax(request->after[DEVICEMGR_ALLOCATION_KEY], NULL, 10);
    list->which.again = allocations.told > 0;
    devicemgr_allocations(from->core, boot_now_ms(), &list->which, on_allocation, &allocations);
    return true;
}
