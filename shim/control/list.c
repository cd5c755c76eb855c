#include "shim/control/list.h"

#include <stdlib.h>
#include <string.h>

#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list_orders.h"
#include "shim/control/told_id.h"
#include "shim/must.h"

struct list_block {
    struct list_block *next;
    max_align_t bytes[];
};

void list_fini(struct list *list)
{
    struct list_block *block;

    while ((block = list->blocks)) {
        list->blocks = block->next;
        free(block);
    }
}

void *list_alloc(struct list *list, size_t len, size_t bytes)
{
    struct list_block *block = must(calloc(1, sizeof *block + len * bytes));

    block->next = list->blocks;
    list->blocks = block;
    return block->bytes;
}

void *list_begin(struct list *list, const Control__V1__ListRequest *request, size_t key_parts,
                 size_t rows_max, const ProtobufCMessageDescriptor *response)
{
    ProtobufCMessage *message;

    if (request->rows > 0 && request->rows < rows_max)
        rows_max = request->rows;
    *list = (struct list){.request = request, .rows_max = rows_max};
    if (request->n_after != 0 && request->n_after != key_parts)
        return NULL;
    if (request->n_after > 0)
        list->which.after = (const char *const *)request->after;
    if (request->resource[0] != '\0')
        list->which.resource = request->resource;
    if (request->pod[0] != '\0')
        list->which.pod = request->pod;
    if (request->pod_namespace[0] != '\0')
        list->which.pod_namespace = request->pod_namespace;
    if (request->driver[0] != '\0')
        list->which.driver = request->driver;
    message = list_alloc(list, 1, response->sizeof_message);
    protobuf_c_message_init(response, message);
    list->response = message;
    return message;
}

/* Protobuf-c's texts are not const; the messages here are only packed. */
char *list_text(struct list *list, const char *text)
{
    list->bytes += strlen(text);
    return (char *)(uintptr_t)text;
}

char *list_id(struct list *list, const char *id)
{
    char *told;

    if (!told_id_is_cut(id))
        return list_text(list, id);
    told = list_alloc(list, 1, TOLD_ID_BYTES_MAX);
    told_id_cut(id, told);
    return list_text(list, told);
}

static bool is_told(void *user, const char *id)
{
    return told_id_is_of(user, id);
}

bool list_find_id(const struct devicemgr *core, const char *resource, const char **id)
{
    if (told_id_is_cut(*id))
        *id = devicemgr_device_find(core, resource, is_told, (char *)(uintptr_t)*id);
    return *id;
}

Control__V1__Cordon *list_cordon(struct list *list, const char *reason, uint64_t at_s)
{
    Control__V1__Cordon *cordon;

    if (!reason)
        return NULL;
    cordon = list_alloc(list, 1, sizeof *cordon);
    control__v1__cordon__init(cordon);
    cordon->reason = list_text(list, reason);
    cordon->since_ms = order_ago_ms(at_s);
    return cordon;
}

/* A word that is old says nothing of now. */
static const char *health_state(const struct health_word *word,
                                const DraHealth__V1alpha1__DeviceHealth *health)
{
    if (!health_word_is_fresh(word, boot_now_ms()))
        return "unknown";
    if (health->health == DRA_HEALTH__V1ALPHA1__HEALTH_STATUS__HEALTHY)
        return "healthy";
    return health->health == DRA_HEALTH__V1ALPHA1__HEALTH_STATUS__UNHEALTHY ? "unhealthy"
                                                                            : "unknown";
}

static char *copy(struct list *list, const char *text)
{
    size_t bytes = strlen(text) + 1;

    return list_text(list, memcpy(list_alloc(list, 1, bytes), text, bytes));
}

Control__V1__DeviceHealth *list_health(struct list *list, const struct list_from *from,
                                       const char *driver, const char *pool, const char *device)
{
    const struct health_word *word =
        from->health ? health_words_find(from->health, driver, pool, device) : NULL;
    DraHealth__V1alpha1__DeviceHealth *said =
        word ? dra_health__v1alpha1__device_health__unpack(NULL, word->len, word->bytes) : NULL;
    Control__V1__DeviceHealth *health;

    if (!said)
        return NULL;
    health = list_alloc(list, 1, sizeof *health);
    control__v1__device_health__init(health);
    health->state = list_text(list, health_state(word, said));
    health->message = copy(list, said->message);
    health->said_ms = boot_now_ms() - word->said_ms;
    dra_health__v1alpha1__device_health__free_unpacked(said, NULL);
    return health;
}

void list_add(struct list *list, void *row, void ***rows, size_t *len)
{
    if (*len == 0)
        *rows = list_alloc(list, list->rows_max, sizeof **rows);
    (*rows)[(*len)++] = row;
    list->rows++;
    list->bytes += CONTROL_ROW_BYTES;
}

bool list_goes_on(struct list *list, const char *const *key, size_t key_parts, char ***next,
                  size_t *next_len)
{
    if (list->rows < list->rows_max && list->bytes < CONTROL_PAGE_BYTES_MAX)
        return true;
    *next = list_alloc(list, key_parts, sizeof **next);
    for (size_t i = 0; i < key_parts; i++)
        (*next)[i] = list_text(list, key[i]);
    *next_len = key_parts;
    return false;
}
