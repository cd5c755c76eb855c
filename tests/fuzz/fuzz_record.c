/*
 * Rows of the checkpoint, as a damaged or foreign file holds them; their checksums are the store's.
 *
 * Input: a byte that says which kind, three texts that end in NUL (the key), and the row. What is
 * refused leaves nothing behind; what is taken gives a row that says the same, is taken again, and
 * is the same bytes from then on.
 */
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/books/record.h"
#include "devicemgr/things/limits.h"
#include "tests/fuzz/fuzz.h"

#define BOOT_ID "b"
#define NOW_MS 1000000

struct row {
    const uint8_t *bytes;
    size_t len;
};

/* The tables that rows go into. */
struct books {
    struct resource *resources;
    struct allocations allocations;
    struct pods pods;
    struct orders orders;
    struct drivers drivers;
    struct claims claims;
    struct endings endings;
    struct shutdown shutdown;
};

static void books_fini(struct books *books)
{
    struct resource *resource, *next;

    HASH_ITER(hh, books->resources, resource, next) {
        resources_remove(&books->resources, resource);
    }
    allocations_fini(&books->allocations);
    pods_fini(&books->pods);
    orders_fini(&books->orders);
    drivers_fini(&books->drivers);
    claims_fini(&books->claims);
    endings_fini(&books->endings);
    shutdown_fini(&books->shutdown);
}

static int restore(struct books *books, const struct devicemgr_record *record)
{
    switch (record->kind) {
    case DEVICEMGR_RECORD_RESOURCE:
        return record_restore_resource(&books->resources, NOW_MS, BOOT_ID, record);
    case DEVICEMGR_RECORD_ALLOCATION:
        return record_restore_allocation(&books->allocations, NOW_MS, record);
    case DEVICEMGR_RECORD_POD:
        return record_restore_pod(&books->pods, NOW_MS, record);
    case DEVICEMGR_RECORD_ORDER:
        return record_restore_order(&books->orders, NOW_MS, BOOT_ID, record);
    case DEVICEMGR_RECORD_DRIVER:
        return record_restore_driver(&books->drivers, NOW_MS, record);
    case DEVICEMGR_RECORD_CLAIM:
        return record_restore_claim(&books->claims, NOW_MS, BOOT_ID, record);
    case DEVICEMGR_RECORD_ENDING:
        return record_restore_ending(&books->endings, NOW_MS, BOOT_ID, record);
    case DEVICEMGR_RECORD_SHUTDOWN:
        return record_restore_shutdown(&books->shutdown, NOW_MS, BOOT_ID, record);
    case DEVICEMGR_RECORD_LOSS: /* has no bytes to understand */
        break;
    }
    return -1;
}

static struct row row_of(const struct books *books, enum devicemgr_record_kind kind)
{
    struct row row = {0};

    switch (kind) {
    case DEVICEMGR_RECORD_RESOURCE:
        row.bytes = record_of_resource(books->resources, BOOT_ID, &row.len);
        break;
    case DEVICEMGR_RECORD_ALLOCATION:
        row.bytes = record_of_allocation(books->allocations.by_key, BOOT_ID, &row.len);
        break;
    case DEVICEMGR_RECORD_POD:
        row.bytes = record_of_pod(books->pods.by_uid, NOW_MS, &row.len);
        break;
    case DEVICEMGR_RECORD_ORDER:
        row.bytes = record_of_order(books->orders.by_key, BOOT_ID, &row.len);
        break;
    case DEVICEMGR_RECORD_DRIVER:
        row.bytes = record_of_driver(books->drivers.by_name, &row.len);
        break;
    case DEVICEMGR_RECORD_CLAIM:
        row.bytes = record_of_claim(books->claims.by_key, BOOT_ID, &row.len);
        break;
    case DEVICEMGR_RECORD_ENDING:
        row.bytes = record_of_ending(books->endings.by_uid, BOOT_ID, &row.len);
        break;
    case DEVICEMGR_RECORD_SHUTDOWN:
        if (shutdown_under_way(&books->shutdown))
            row.bytes = record_of_shutdown(&books->shutdown, BOOT_ID, &row.len);
        break;
    case DEVICEMGR_RECORD_LOSS:
        break;
    }
    return row;
}

static bool books_empty(const struct books *books)
{
    return !books->resources && !books->allocations.by_key && !books->pods.by_uid &&
           !books->pods.sandboxes && !books->orders.by_key && !books->drivers.by_name &&
           !books->claims.by_key && !books->endings.by_uid && !books->shutdown.stored;
}

static void check_allocation(const struct allocation *allocation)
{
    if (!allocation)
        return;
    FUZZ_CHECK(allocation->ids.len > 0 && !ids_repeat(&allocation->ids), "%zu ids",
               allocation->ids.len);
    FUZZ_CHECK(allocation->row == ALLOCATION_DURABLE && !allocation->create &&
                   allocation->lives_len == 0,
               "restored as %d", allocation_life(allocation));
    FUZZ_CHECK(allocation_life(allocation) == ALLOCATION_UNKNOWN, "%d",
               allocation_life(allocation));
}

/* Restores the row and makes it anew; false: it was refused. */
static bool again(const struct devicemgr_record *record, struct row *out)
{
    struct books books = {0};
    bool taken = restore(&books, record) == 0;

    FUZZ_CHECK(taken != books_empty(&books), "refused, and not nothing; or taken, and nothing");
    if (taken) {
        check_allocation(books.allocations.by_key);
        *out = row_of(&books, record->kind);
        FUZZ_CHECK(restore(&books, record) < 0, "the same row twice");
    }
    books_fini(&books);
    return taken;
}

/* ---- what a row says ---- */

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Whether a node of the device is one that there can be; others count for nothing. */
static bool has_node(const Checkpoint__V1__Device *device)
{
    for (size_t i = 0; i < device->n_numa_nodes; i++)
        if (device->numa_nodes[i] >= 0 && device->numa_nodes[i] < NUMA_NODES_MAX)
            return true;
    return false;
}

static void check_resource(struct row in, struct row out)
{
    Checkpoint__V1__Resource *a = checkpoint__v1__resource__unpack(NULL, in.len, in.bytes);
    Checkpoint__V1__Resource *b = checkpoint__v1__resource__unpack(NULL, out.len, out.bytes);

    FUZZ_CHECK(same(a->name, b->name) && same(a->endpoint, b->endpoint), "%s", b->name);
    FUZZ_CHECK(a->pre_start_required == b->pre_start_required &&
                   a->get_preferred_allocation_available == b->get_preferred_allocation_available,
               "%s", b->name);
    FUZZ_CHECK(b->n_devices <= a->n_devices, "%zu devices", b->n_devices);
    for (size_t i = 0; i < b->n_devices; i++) {
        const Checkpoint__V1__Device *device = b->devices[i];
        size_t last = a->n_devices; /* the entry that counts is the last of that id */

        while (last > 0 && !same(a->devices[last - 1]->id, device->id))
            last--;
        FUZZ_CHECK(last > 0, "%s", device->id);
        FUZZ_CHECK(a->devices[last - 1]->healthy == device->healthy, "%s: health", device->id);
        FUZZ_CHECK((device->n_numa_nodes > 0) == has_node(a->devices[last - 1]), "%s: its nodes",
                   device->id);
    }
    if (b->stopped)
        FUZZ_CHECK(a->stopped && a->stopped_ms == b->stopped_ms &&
                       same(a->stopped_boot_id, BOOT_ID),
                   "stopped");
    else
        FUZZ_CHECK(!a->stopped || !same(a->stopped_boot_id, BOOT_ID) || a->stopped_ms > NOW_MS,
                   "the stop is lost");
    checkpoint__v1__resource__free_unpacked(a, NULL);
    checkpoint__v1__resource__free_unpacked(b, NULL);
}

static void check_allocation_row(struct row in, struct row out)
{
    Checkpoint__V1__Allocation *a = checkpoint__v1__allocation__unpack(NULL, in.len, in.bytes);
    Checkpoint__V1__Allocation *b = checkpoint__v1__allocation__unpack(NULL, out.len, out.bytes);

    FUZZ_CHECK(same(a->pod_uid, b->pod_uid) && same(a->container, b->container) &&
                   same(a->resource, b->resource) && same(a->boot_id, b->boot_id),
               "%s", b->pod_uid);
    FUZZ_CHECK(a->n_device_ids == b->n_device_ids && a->own_choice == b->own_choice &&
                   a->has_options == b->has_options &&
                   (b->n_asked_ids == 0 || a->n_asked_ids == b->n_asked_ids),
               "%s", b->pod_uid);
    checkpoint__v1__allocation__free_unpacked(a, NULL);
    checkpoint__v1__allocation__free_unpacked(b, NULL);
}

/* Of those that the row names each once, as far as there is room. */
static void check_tokens(const Checkpoint__V1__Pod *a, const Checkpoint__V1__Pod *b)
{
    size_t at = 0;

    for (size_t i = 0; i < a->n_tokens && at < POD_TOKENS_MAX; i++) {
        size_t first = 0;

        while (!same(a->tokens[first], a->tokens[i]))
            first++;
        if (first < i)
            continue;
        FUZZ_CHECK(at < b->n_tokens && same(a->tokens[i], b->tokens[at]), "%s", a->tokens[i]);
        at++;
    }
    FUZZ_CHECK(at == b->n_tokens, "%zu, %zu", at, b->n_tokens);
}

static void check_pod(struct row in, struct row out)
{
    Checkpoint__V1__Pod *a = checkpoint__v1__pod__unpack(NULL, in.len, in.bytes);
    Checkpoint__V1__Pod *b = checkpoint__v1__pod__unpack(NULL, out.len, out.bytes);

    FUZZ_CHECK(same(a->uid, b->uid) && same(a->namespace_, b->namespace_) &&
                   same(a->name, b->name) && same(a->sandbox_id, b->sandbox_id),
               "%s", b->uid);
    check_tokens(a, b);
    if (a->sandbox_id[0] != '\0')
        FUZZ_CHECK(a->attempt == b->attempt && a->stopped == b->stopped &&
                       (a->stopped && a->died) == b->died &&
                       (a->stopped && !a->died && a->remade) == b->remade,
                   "%s", b->sandbox_id);
    checkpoint__v1__pod__free_unpacked(a, NULL);
    checkpoint__v1__pod__free_unpacked(b, NULL);
}

static void check_order(struct row in, struct row out)
{
    Checkpoint__V1__Order *a = checkpoint__v1__order__unpack(NULL, in.len, in.bytes);
    Checkpoint__V1__Order *b = checkpoint__v1__order__unpack(NULL, out.len, out.bytes);

    FUZZ_CHECK(a && b, "an order's row is none");
    FUZZ_CHECK(strcmp(a->kind, b->kind) == 0 && strcmp(a->resource, b->resource) == 0 &&
                   strcmp(a->id, b->id) == 0 && strcmp(a->reason, b->reason) == 0 &&
                   a->at_s == b->at_s && a->more_ms == b->more_ms && a->over == b->over &&
                   (strcmp(a->kind, "taint") != 0 ||
                    (strcmp(a->value, b->value) == 0 && a->for_ms == b->for_ms)),
               "%s of %s", b->kind, b->resource);
    checkpoint__v1__order__free_unpacked(a, NULL);
    checkpoint__v1__order__free_unpacked(b, NULL);
}

static void check_driver(struct row in, struct row out)
{
    Checkpoint__V1__Driver *a = checkpoint__v1__driver__unpack(NULL, in.len, in.bytes);
    Checkpoint__V1__Driver *b = checkpoint__v1__driver__unpack(NULL, out.len, out.bytes);

    FUZZ_CHECK(strcmp(a->name, b->name) == 0 && a->n_services == b->n_services, "%s", b->name);
    for (size_t i = 0; i < a->n_services; i++)
        FUZZ_CHECK(strcmp(a->services[i], b->services[i]) == 0, "%s", b->services[i]);
    checkpoint__v1__driver__free_unpacked(a, NULL);
    checkpoint__v1__driver__free_unpacked(b, NULL);
}

static void check_claim(struct row in, struct row out)
{
    Checkpoint__V1__Claim *a = checkpoint__v1__claim__unpack(NULL, in.len, in.bytes);
    Checkpoint__V1__Claim *b = checkpoint__v1__claim__unpack(NULL, out.len, out.bytes);

    FUZZ_CHECK(strcmp(a->uid, b->uid) == 0 && strcmp(a->driver, b->driver) == 0 &&
                   strcmp(a->namespace_, b->namespace_) == 0 && strcmp(a->name, b->name) == 0 &&
                   strcmp(a->state, b->state) == 0 && a->has_response == b->has_response,
               "%s of %s", b->state, b->uid);
    FUZZ_CHECK(a->response.len == b->response.len &&
                   (a->response.len == 0 ||
                    memcmp(a->response.data, b->response.data, a->response.len) == 0),
               "%zu bytes", b->response.len);
    checkpoint__v1__claim__free_unpacked(a, NULL);
    checkpoint__v1__claim__free_unpacked(b, NULL);
}

/* Who asks twice is one who asks, with the shorter grace and the last words. */
static void check_ending(struct row in, struct row out)
{
    Checkpoint__V1__Ending *a = checkpoint__v1__ending__unpack(NULL, in.len, in.bytes);
    Checkpoint__V1__Ending *b = checkpoint__v1__ending__unpack(NULL, out.len, out.bytes);

    FUZZ_CHECK(strcmp(a->pod_uid, b->pod_uid) == 0, "%s", b->pod_uid);
    /* that nothing runs is to be seen anew */
    FUZZ_CHECK(strcmp(strcmp(a->state, "stopped") == 0 ? "stopping" : a->state, b->state) == 0,
               "%s", b->state);
    FUZZ_CHECK(b->n_asks > 0 && b->n_asks <= a->n_asks, "%zu asks of %zu", b->n_asks, a->n_asks);
    checkpoint__v1__ending__free_unpacked(a, NULL);
    checkpoint__v1__ending__free_unpacked(b, NULL);
}

/* Moments to come are none, and a pod that is named twice is one. */
static void check_shutdown(struct row in, struct row out)
{
    Checkpoint__V1__Shutdown *a = checkpoint__v1__shutdown__unpack(NULL, in.len, in.bytes);
    Checkpoint__V1__Shutdown *b = checkpoint__v1__shutdown__unpack(NULL, out.len, out.bytes);

    FUZZ_CHECK(strcmp(a->state, b->state) == 0, "%s", b->state);
    FUZZ_CHECK(a->limit_ms == b->limit_ms && a->n_groups == b->n_groups && a->group == b->group,
               "group %u of %zu", b->group, b->n_groups);
    FUZZ_CHECK(b->n_pods <= a->n_pods, "%zu pods of %zu", b->n_pods, a->n_pods);
    checkpoint__v1__shutdown__free_unpacked(a, NULL);
    checkpoint__v1__shutdown__free_unpacked(b, NULL);
}

static void check_same(enum devicemgr_record_kind kind, struct row in, struct row out)
{
    switch (kind) {
    case DEVICEMGR_RECORD_RESOURCE:
        check_resource(in, out);
        break;
    case DEVICEMGR_RECORD_ALLOCATION:
        check_allocation_row(in, out);
        break;
    case DEVICEMGR_RECORD_POD:
        check_pod(in, out);
        break;
    case DEVICEMGR_RECORD_ORDER:
        check_order(in, out);
        break;
    case DEVICEMGR_RECORD_DRIVER:
        check_driver(in, out);
        break;
    case DEVICEMGR_RECORD_CLAIM:
        check_claim(in, out);
        break;
    case DEVICEMGR_RECORD_ENDING:
        check_ending(in, out);
        break;
    case DEVICEMGR_RECORD_SHUTDOWN:
        check_shutdown(in, out);
        break;
    case DEVICEMGR_RECORD_LOSS:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    enum devicemgr_record_kind kind = fuzz_u8(&in) % DEVICEMGR_RECORD_LOSS;
    char *key[3] = {fuzz_text(&in), fuzz_text(&in), fuzz_text(&in)};
    struct devicemgr_record record = {kind, {key[0], key[1], key[2]}, in.bytes, in.len};
    struct row first, second;

    if (again(&record, &first) && first.bytes) { /* of another boot a shutdown is none */
        check_same(kind, (struct row){in.bytes, in.len}, first);
        record.value = first.bytes;
        record.value_bytes = first.len;
        FUZZ_CHECK(again(&record, &second), "what we wrote is refused");
        FUZZ_CHECK(first.len == second.len && memcmp(first.bytes, second.bytes, first.len) == 0,
                   "%zu, %zu bytes", first.len, second.len);
        free((void *)first.bytes);
        free((void *)second.bytes);
    }
    for (size_t i = 0; i < 3; i++)
        free(key[i]);
    return 0;
}
