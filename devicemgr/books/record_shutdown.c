/*
 * The row of the machine's shutdown.
 */
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "cri-proto/utf8.h"
#include "devicemgr/books/dirty.h"
#include "devicemgr/books/record.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/text.h"

static void put_groups(const struct shutdown *shutdown, Checkpoint__V1__Shutdown *row)
{
    Checkpoint__V1__ShutdownGroup *groups = mem_alloc(shutdown->groups_len, sizeof *groups);

    row->groups = mem_alloc(shutdown->groups_len, sizeof *row->groups);
    for (; row->n_groups < shutdown->groups_len; row->n_groups++) {
        Checkpoint__V1__ShutdownGroup *group = &groups[row->n_groups];

        checkpoint__v1__shutdown_group__init(group);
        group->priority = shutdown->groups[row->n_groups].priority;
        group->grace_ms = shutdown->groups[row->n_groups].grace_ms;
        row->groups[row->n_groups] = group;
    }
    if (row->n_groups == 0)
        free(groups);
}

static void put_pods(const struct shutdown *shutdown, Checkpoint__V1__Shutdown *row)
{
    size_t len = HASH_COUNT(shutdown->pods);
    Checkpoint__V1__ShutdownPod *pods = mem_alloc(len, sizeof *pods);

    row->pods = mem_alloc(len, sizeof *row->pods);
    for (const struct shutdown_pod *is = shutdown->pods; is; is = is->hh.next) {
        Checkpoint__V1__ShutdownPod *pod = &pods[row->n_pods];

        checkpoint__v1__shutdown_pod__init(pod);
        pod->uid = is->uid;
        pod->group = (uint32_t)is->group;
        row->pods[row->n_pods++] = pod;
    }
    if (row->n_pods == 0)
        free(pods);
}

/* Each list is one piece of memory, with the first at its beginning. */
static void free_lists(Checkpoint__V1__Shutdown *row)
{
    if (row->n_groups > 0)
        free(row->groups[0]);
    if (row->n_pods > 0)
        free(row->pods[0]);
    free(row->groups);
    free(row->pods);
}

uint8_t *record_of_shutdown(const struct shutdown *shutdown, const char *boot_id, size_t *bytes_len)
{
    Checkpoint__V1__Shutdown row = CHECKPOINT__V1__SHUTDOWN__INIT;
    uint8_t *bytes;

    row.state = (char *)shutdown_state_name(shutdown->state);
    row.boot_id = (char *)boot_id;
    row.since_ms = shutdown->since_ms;
    row.limit_ms = shutdown->limit_ms;
    row.by_kubelet = shutdown->by_kubelet;
    row.by_priority = shutdown->by_priority;
    row.group = (uint32_t)shutdown->group;
    row.group_since_ms = shutdown->group_since_ms;
    row.over_ms = shutdown->over_ms;
    put_groups(shutdown, &row);
    put_pods(shutdown, &row);
    bytes = record_pack(&row.base, bytes_len);
    free_lists(&row);
    return bytes;
}

static bool groups_rise(const Checkpoint__V1__Shutdown *row)
{
    for (size_t i = 1; i < row->n_groups; i++) {
        if (row->groups[i - 1]->priority >= row->groups[i]->priority)
            return false;
    }
    return true;
}

static bool row_valid(const Checkpoint__V1__Shutdown *row, const struct devicemgr_record *record,
                      enum shutdown_state *state)
{
    if (strcmp(record->key[0], DIRTY_SHUTDOWN_KEY) != 0 ||
        !shutdown_state_find(row->state, state) || *state == SHUTDOWN_NONE ||
        row->n_groups > SHUTDOWN_GROUPS_MAX || !groups_rise(row) ||
        (row->n_groups > 0 ? row->group >= row->n_groups : row->group != 0) ||
        (*state == SHUTDOWN_GROUPS && row->n_groups == 0) ||
        (*state == SHUTDOWN_OVER) != (row->over_ms != 0))
        return false;
    for (size_t i = 0; i < row->n_pods; i++) {
        if (row->pods[i]->group >= row->n_groups || row->pods[i]->uid[0] == '\0' ||
            !utf8_is_text(row->pods[i]->uid))
            return false;
    }
    return true;
}

static void restore(struct shutdown *shutdown, uint64_t now_ms, enum shutdown_state state,
                    const Checkpoint__V1__Shutdown *row)
{
    struct devicemgr_shutdown_group groups[SHUTDOWN_GROUPS_MAX];

    for (size_t i = 0; i < row->n_groups; i++)
        groups[i] =
            (struct devicemgr_shutdown_group){row->groups[i]->priority, row->groups[i]->grace_ms};
    shutdown_begin(shutdown, earlier(row->since_ms, now_ms), row->limit_ms, row->by_kubelet);
    shutdown_set_groups(shutdown, groups, row->n_groups, row->by_priority);
    shutdown_set_group(shutdown, row->group, row->group_since_ms);
    for (size_t i = 0; i < row->n_pods; i++) {
        if (!shutdown_find_pod(shutdown, row->pods[i]->uid))
            shutdown_add_pod(shutdown, row->pods[i]->uid, row->pods[i]->group);
    }
    shutdown_set_restored(shutdown, state, row->over_ms);
}

int record_restore_shutdown(struct shutdown *shutdown, uint64_t now_ms, const char *boot_id,
                            const struct devicemgr_record *record)
{
    Checkpoint__V1__Shutdown *row =
        checkpoint__v1__shutdown__unpack(NULL, record->value_bytes, record->value);
    enum shutdown_state state;
    int result = -1;

    if (row && row_valid(row, record, &state) && !shutdown->stored) {
        if (same_boot(row->boot_id, boot_id))
            restore(shutdown, now_ms, state, row);
        shutdown->stored = true;
        result = 0;
    }
    checkpoint__v1__shutdown__free_unpacked(row, NULL);
    return result;
}
