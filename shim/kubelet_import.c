#include "shim/kubelet_import.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/kubelet_file/kubelet_rows.h"
#include "devicemgr/store/store.h"
#include "devicemgr/things/mem.h"
#include "shim/boot.h"
#include "shim/kubelet/checkpoint_file.h"
#include "shim/printable.h"

struct key {
    char *text;
    size_t bytes;
    UT_hash_handle hh;
};

struct import {
    const char *path;
    const char *state_dir;
    char boot_id[BOOT_ID_BYTES_MAX];
    bool this_boot; /* the kubelet wrote the file in this boot */
    struct kubelet_checkpoint checkpoint;
    struct kubelet_rows rows;
    struct key *keys; /* of the rows that our checkpoint has, then of those that go into it */
    struct devicemgr_record *records; /* to be written */
    size_t records_len;
    size_t resources;
    size_t kept;
};

/* ---- the kubelet's file ---- */

static int read_file(struct import *import)
{
    char err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX];
    time_t written;
    enum kubelet_file_state state =
        checkpoint_file_read(import->path, &import->checkpoint, &written, err, sizeof err);

    if (state == KUBELET_FILE_READ) {
        import->this_boot = written >= boot_time();
        return 0;
    }
    fprintf(stderr, "%s: %s%s\n", import->path,
            state == KUBELET_FILE_DAMAGED ? "not a good " KUBELET_CHECKPOINT_FILE ": " : "", err);
    return -1;
}

/* ---- our checkpoint ---- */

static void on_report(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", text);
}

/* False: it is there already. */
static bool add_key(struct import *import, const struct devicemgr_record *record)
{
    const char kind[] = {(char)('0' + record->kind), '\0'};
    const char *parts[] = {kind, record->key[0], record->key[1], record->key[2]};
    struct key *key = mem_alloc(1, sizeof *key), *there;

    key->text = mem_key(parts, sizeof parts / sizeof parts[0], &key->bytes);
    HASH_FIND(hh, import->keys, key->text, key->bytes, there);
    if (there) {
        free(key->text);
        free(key);
        return false;
    }
    HASH_ADD_KEYPTR(hh, import->keys, key->text, key->bytes, key);
    return true;
}

static void on_row(void *user, const struct devicemgr_record *record)
{
    add_key(user, record);
}

static void say_row(const struct kubelet_row *row, bool kept)
{
    bool allocation = row->record.kind == DEVICEMGR_RECORD_ALLOCATION;
    const char *const *key = row->record.key;

    if (allocation) {
        printf("pod ");
        put_printable(stdout, key[0]);
        printf(", container ");
        put_printable(stdout, key[1]);
        printf(": ");
    } else {
        printf("resource ");
    }
    put_printable(stdout, allocation ? key[2] : key[0]);
    printf(": %zu device%s", row->devices, row->devices == 1 ? "" : "s");
    if (kept)
        printf("; there already, kept as it was");
    else if (allocation && !row->with_options)
        printf("; without options, the plugin will be asked");
    putchar('\n');
}

static void choose_rows(struct import *import)
{
    const struct kubelet_rows *rows = &import->rows;

    import->records = mem_alloc(rows->len, sizeof *import->records);
    for (size_t i = 0; i < rows->len; i++) {
        const struct kubelet_row *row = &rows->v[i];
        bool fresh = add_key(import, &row->record);

        say_row(row, !fresh);
        if (!fresh) {
            import->kept++;
            continue;
        }
        import->records[import->records_len++] = row->record;
        import->resources += row->record.kind == DEVICEMGR_RECORD_RESOURCE;
    }
}

static void say_result(const struct import *import)
{
    size_t allocations = import->records_len - import->resources;

    printf("imported %zu resource%s and %zu allocation%s into %s/" STORE_FILE, import->resources,
           import->resources == 1 ? "" : "s", allocations, allocations == 1 ? "" : "s",
           import->state_dir);
    if (import->kept)
        printf("; %zu there already, kept as they were", import->kept);
    if (import->rows.left_out)
        printf("; %zu left out, since no container could use them", import->rows.left_out);
    putchar('\n');
}

static int write_rows(struct import *import, struct store *store)
{
    char err[STORE_ERROR_BYTES_MAX];

    store_load(store, on_row, import);
    kubelet_rows_init(&import->rows, &import->checkpoint, import->this_boot ? import->boot_id : "");
    choose_rows(import);
    if (import->records_len > 0 &&
        store_commit(store, import->records, import->records_len, err, sizeof err) < 0) {
        fprintf(stderr, "nothing was imported: %s\n", err);
        return -1;
    }
    say_result(import);
    return 0;
}

static int write_checkpoint(struct import *import)
{
    const struct store_options options = {
        .dir = import->state_dir, .boot_id = import->boot_id, .report = on_report};
    char err[STORE_ERROR_BYTES_MAX];
    struct store *store;
    int rc;

    boot_id_read(import->boot_id);
    if (store_open(&options, &store, err, sizeof err) < 0) {
        fprintf(stderr, "nothing was imported: %s (cri-device-shim must not run meanwhile)\n", err);
        return -1;
    }
    rc = write_rows(import, store);
    store_close(store);
    return rc;
}

static void import_fini(struct import *import)
{
    struct key *key, *next;

    HASH_ITER(hh, import->keys, key, next) {
        HASH_DEL(import->keys, key);
        free(key->text);
        free(key);
    }
    free(import->records);
    kubelet_rows_fini(&import->rows);
    kubelet_checkpoint_fini(&import->checkpoint);
}

int import_kubelet_checkpoint(const char *path, const char *state_dir)
{
    struct import import = {.path = path, .state_dir = state_dir};
    int rc = read_file(&import);

    if (rc == 0) {
        printf("%s: checksum %u is right\n", path, import.checkpoint.checksum);
        rc = write_checkpoint(&import);
    }
    import_fini(&import);
    return rc;
}
