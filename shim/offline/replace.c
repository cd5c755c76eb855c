#include "shim/offline/replace.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/boot.h"

static void on_report(void *user, int level, const char *text)
{
    (void)level;
    *(bool *)user = true;
    fprintf(stderr, "%s\n", text);
}

/* One that has to go. In the same commit it may come again, with another value. */
static void on_row(void *user, const struct devicemgr_record *record)
{
    struct devicemgr_record gone = *record;

    gone.value = NULL;
    gone.value_bytes = 0;
    rows_add(user, &gone);
}

static void add_all(struct rows *to, const struct rows *rows, bool whole)
{
    const char *lost = whole ? STORE_LOST_NONE : "1";
    const struct devicemgr_record loss = {.kind = DEVICEMGR_RECORD_LOSS,
                                          .key = {"rows_lost", "", ""},
                                          .value = lost,
                                          .value_bytes = strlen(lost)};

    for (size_t i = 0; i < rows->len; i++)
        rows_add(to, &rows->v[i]);
    rows_add(to, &loss);
}

static int write_rows(struct store *store, const struct rows *rows, bool whole, char *err,
                      size_t err_bytes)
{
    struct rows all = {0};
    int rc;

    store_load(store, on_row, &all);
    add_all(&all, rows, whole);
    rc = store_commit(store, all.v, all.len, err, err_bytes);
    rows_fini(&all);
    return rc < 0 ? -1 : 0;
}

int replace_rows(const struct rows *rows, bool whole, const char *state_dir,
                 char kept[STORE_ASIDE_BYTES_MAX], bool *mended, char *err, size_t err_bytes)
{
    char boot_id[BOOT_ID_BYTES_MAX];
    bool told = false;
    const struct store_options options = {
        .dir = state_dir, .boot_id = boot_id, .report = on_report, .user = &told};
    struct store *store;
    int rc;

    boot_id_read(boot_id);
    if (store_open(&options, &store, err, err_bytes) < 0)
        return -1;
    rc = store_copy_aside(store, kept, err, err_bytes);
    *mended = told && *kept; /* of a file that was set aside there is nothing to copy */
    if (rc == 0)
        rc = write_rows(store, rows, whole, err, err_bytes);
    store_close(store);
    if (rc < 0 && *kept)
        unlink(kept); /* what it is a copy of is still there */
    return rc;
}
