/*
 * What one allocation's commit costs with few and with many allocations in the checkpoint: it must
 * not grow with them, as the kubelet's whole-file writes do.
 *
 *   store_bench [DIRECTORY]   an existing one on the disk to be measured; default: TMPDIR or /tmp
 *
 * Each row of the table: a store with that many allocations, all with runtime options, then commits
 * of one allocation and its pod, as a create makes them; half of them put a new row, half replace
 * one. "alone" is the same without the disk's part (synchronous = FULL waits for the disk): on
 * /dev/shm. Times in microseconds.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/store/store.h"

#define COMMITS 500
/* Rows of one commit while the store is filled. */
#define FILL_BATCH 500
/* Envs, a mount and two nodes of one GPU container. */
#define OPTIONS_BYTES 400
#define RECORDS_MAX (2 * FILL_BATCH)

#define SIZES_LEN 3

static const size_t SIZES[SIZES_LEN] = {10, 1000, 20000};

struct batch {
    struct devicemgr_record records[RECORDS_MAX];
    char keys[RECORDS_MAX][3][40];
    uint8_t values[RECORDS_MAX][1024];
    size_t len;
};

static void die(const char *what)
{
    fprintf(stderr, "store_bench: %s\n", what);
    exit(EXIT_FAILURE);
}

static void on_report(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    die(text);
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- rows ---- */

static void add(struct batch *batch, enum devicemgr_record_kind kind,
                const ProtobufCMessage *message)
{
    size_t bytes = protobuf_c_message_get_packed_size(message);
    size_t i = batch->len++;

    if (bytes > sizeof batch->values[i])
        die("a row is larger than expected");
    protobuf_c_message_pack(message, batch->values[i]);
    batch->records[i] = (struct devicemgr_record){
        .kind = kind,
        .key = {batch->keys[i][0], batch->keys[i][1], batch->keys[i][2]},
        .value = batch->values[i],
        .value_bytes = bytes,
    };
}

static void add_allocation(struct batch *batch, unsigned number)
{
    Checkpoint__V1__Allocation row = CHECKPOINT__V1__ALLOCATION__INIT;
    static uint8_t options[OPTIONS_BYTES];
    char(*keys)[40] = batch->keys[batch->len];
    char id[40], *ids[] = {id};

    snprintf(keys[0], sizeof keys[0], "%08x-1111-2222-3333-444444444444", number);
    snprintf(keys[1], sizeof keys[1], "main");
    snprintf(keys[2], sizeof keys[2], "vendor.example/gpu");
    snprintf(id, sizeof id, "GPU-%08x-aaaa-bbbb-cccc", number);
    row.pod_uid = keys[0];
    row.container = keys[1];
    row.resource = keys[2];
    row.device_ids = ids;
    row.n_device_ids = 1;
    row.has_options = true;
    row.options.data = options;
    row.options.len = sizeof options;
    row.boot_id = (char *)"01234567-89ab-cdef-0123-456789abcdef";
    add(batch, DEVICEMGR_RECORD_ALLOCATION, &row.base);
}

static void add_pod(struct batch *batch, unsigned number)
{
    Checkpoint__V1__Pod row = CHECKPOINT__V1__POD__INIT;
    char(*keys)[40] = batch->keys[batch->len];

    snprintf(keys[0], sizeof keys[0], "%08x-1111-2222-3333-444444444444", number);
    keys[1][0] = keys[2][0] = '\0';
    row.uid = keys[0];
    row.namespace_ = (char *)"default";
    row.name = (char *)"a-pod-of-a-deployment-5d4f8c7b9-x2x4z";
    row.sandbox_id = (char *)"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    add(batch, DEVICEMGR_RECORD_POD, &row.base);
}

static void commit(struct store *store, struct batch *batch)
{
    char err[STORE_ERROR_BYTES_MAX];

    if (store_commit(store, batch->records, batch->len, err, sizeof err) < 0)
        die(err);
    batch->len = 0;
}

/* ---- one measurement ---- */

static void fill(struct store *store, struct batch *batch, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        add_allocation(batch, (unsigned)i);
        add_pod(batch, (unsigned)i);
        if (batch->len == RECORDS_MAX || i + 1 == size)
            commit(store, batch);
    }
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* A store in a directory of its own. */
struct subject {
    char dir[512];
    size_t size;
    struct store_options options;
    struct store *store;
    double times_us[COMMITS];
};

static void subject_init(struct subject *subject, struct batch *batch, const char *parent,
                         size_t size)
{
    char err[STORE_ERROR_BYTES_MAX];

    if (snprintf(subject->dir, sizeof subject->dir, "%s/store-bench-XXXXXX", parent) >=
        (int)sizeof subject->dir)
        die("the directory's path is too long");
    if (!mkdtemp(subject->dir))
        die(strerror(errno));
    subject->size = size;
    subject->options =
        (struct store_options){.dir = subject->dir, .boot_id = "boot", .report = on_report};
    if (store_open(&subject->options, &subject->store, err, sizeof err) < 0)
        die(err);
    fill(subject->store, batch, size);
}

static void subject_fini(struct subject *subject)
{
    static const char *const FILES[] = {STORE_FILE, STORE_FILE "-wal", STORE_FILE "-shm"};
    char path[600];

    store_close(subject->store);
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", subject->dir, FILES[i]);
        unlink(path);
    }
    rmdir(subject->dir);
}

static void measure_one(struct subject *subject, struct batch *batch, size_t i)
{
    /* By a stride that is prime to every size: the rows lie all over the tree. */
    unsigned number = (unsigned)(i % 2 ? i * 7919 % subject->size : 0x80000000u + i * 7919);
    double begin_us = now_us();

    add_allocation(batch, number);
    add_pod(batch, number);
    commit(subject->store, batch);
    subject->times_us[i] = now_us() - begin_us;
}

/* In turns: whatever else the disk does then meets all of them alike. */
static void measure(const char *parent, struct subject subjects[SIZES_LEN])
{
    static struct batch batch;

    for (size_t n = 0; n < SIZES_LEN; n++)
        subject_init(&subjects[n], &batch, parent, SIZES[n]);
    for (size_t i = 0; i < COMMITS; i++) {
        for (size_t n = 0; n < SIZES_LEN; n++)
            measure_one(&subjects[n], &batch, i);
    }
    for (size_t n = 0; n < SIZES_LEN; n++) {
        subject_fini(&subjects[n]);
        qsort(subjects[n].times_us, COMMITS, sizeof(double), compare);
    }
}

int main(int argc, char **argv)
{
    static struct subject on_disk[SIZES_LEN], alone[SIZES_LEN];
    const char *tmp = getenv("TMPDIR");
    const char *disk = argc > 1 ? argv[1] : tmp ? tmp : "/tmp";

    measure(disk, on_disk);
    measure("/dev/shm", alone);
    printf("one allocation's commit, %d times, in %s; us\n\n", COMMITS, disk);
    printf("allocations   median      p90      p99      max   alone: median      p99\n");
    for (size_t n = 0; n < SIZES_LEN; n++) {
        const double *us = on_disk[n].times_us;

        printf("%11zu %8.0f %8.0f %8.0f %8.0f %15.0f %8.0f\n", SIZES[n], us[COMMITS / 2],
               us[COMMITS * 9 / 10], us[COMMITS * 99 / 100], us[COMMITS - 1],
               alone[n].times_us[COMMITS / 2], alone[n].times_us[COMMITS * 99 / 100]);
    }
    return EXIT_SUCCESS;
}
