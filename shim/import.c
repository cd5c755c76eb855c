#include "shim/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "devicemgr/kubelet_checkpoint.h"
#include "devicemgr/kubelet_rows.h"
#include "devicemgr/mem.h"
#include "devicemgr/store.h"
#include "shim/boot.h"

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

static int complain(const struct import *import, const char *what)
{
    fprintf(stderr, "%s: %s\n", import->path, what);
    return -1;
}

/* The whole file, or the bytes of one too large and one more. */
static ssize_t read_all(int fd, char *text, size_t room)
{
    size_t len = 0;
    ssize_t n = 1;

    while (len < room && n > 0) {
        n = read(fd, text + len, room - len);
        if (n < 0 && errno != EINTR)
            return -1;
        len += n > 0 ? (size_t)n : 0;
        n = n < 0 ? 1 : n;
    }
    return (ssize_t)len;
}

static int parse(struct import *import, int fd)
{
    char *text = mem_alloc((size_t)KUBELET_CHECKPOINT_BYTES_MAX + 1, 1);
    ssize_t bytes = read_all(fd, text, (size_t)KUBELET_CHECKPOINT_BYTES_MAX + 1);
    char err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX];
    int rc;

    if (bytes < 0) {
        rc = complain(import, strerror(errno));
    } else {
        rc = kubelet_checkpoint_parse(text, (size_t)bytes, &import->checkpoint, err, sizeof err);
        if (rc < 0)
            fprintf(stderr, "%s: not a good " KUBELET_CHECKPOINT_FILE ": %s\n", import->path, err);
    }
    free(text);
    return rc;
}

static int read_file(struct import *import)
{
    int fd = open(import->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
    struct stat st;

    if (fd < 0)
        return complain(import, strerror(errno));
    if (fstat(fd, &st) < 0)
        rc = complain(import, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = complain(import, "it is no file");
    else
        rc = parse(import, fd);
    close(fd);
    import->this_boot = rc == 0 && st.st_mtime >= boot_time();
    return rc;
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

/* A name may hold anything; a terminal is not to obey it. */
static void put_name(const char *name)
{
    for (; *name; name++)
        putchar((unsigned char)*name < ' ' || *name == 0x7f ? '?' : *name);
}

static void say_row(const struct kubelet_row *row, bool kept)
{
    bool allocation = row->record.kind == DEVICEMGR_RECORD_ALLOCATION;
    const char *const *key = row->record.key;

    if (allocation) {
        printf("pod ");
        put_name(key[0]);
        printf(", container ");
        put_name(key[1]);
        printf(": ");
    } else {
        printf("resource ");
    }
    put_name(allocation ? key[2] : key[0]);
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

    HASH_ITER(hh, import->keys, key, next)
    {
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
