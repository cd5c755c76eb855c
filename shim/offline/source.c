#include "shim/offline/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "devicemgr/store/store.h"
#include "shim/boot.h"
#include "shim/core/core_settings.h"
#include "shim/file.h"
#include "shim/offline/document.h"

/* The first bytes of every database of SQLite's (https://www.sqlite.org/fileformat.html). */
static const char DATABASE[] = "SQLite format 3";

/* ---- the database ---- */

static void on_row(void *user, const struct devicemgr_record *record, bool good)
{
    struct source *source = user;

    if (good)
        rows_add(&source->rows, record);
    else
        rows_found_add(&source->found, ROWS_FINDING_ROW,
                       "the checksum of a row (%s %s %s) does not fit", record->key[0],
                       record->key[1], record->key[2]);
}

static int read_database(const char *path, struct source *source, char *err, size_t err_bytes)
{
    struct store_found found;
    int rc;

    rc = store_look_at(path, &found, on_row, source, err, err_bytes);
    if (rc == STORE_IN_USE_ELSEWHERE)
        snprintf(err, err_bytes,
                 "%s: another process has it open; one of cri-device-shim is asked without a file",
                 path);
    if (rc < 0)
        return -1;
    source->version = found.version;
    source->whole = true;
    if (found.lost)
        rows_found_add(&source->found, ROWS_FINDING_LOST, "%s", ROWS_LOST_WORDS);
    if (found.words[0] != '\0')
        rows_found_add(&source->found, ROWS_FINDING_FILE, "%s", found.words);
    return 0;
}

/* ---- the document ---- */

static int read_document(int fd, size_t bytes, struct source *source, char *err, size_t err_bytes)
{
    struct document document;
    char *text = malloc(bytes + 1);
    size_t len;
    int rc;

    if (!text) {
        snprintf(err, err_bytes, "no memory for its %zu bytes", bytes);
        return -1;
    }
    rc = file_read(fd, text, bytes, &len);
    if (rc < 0)
        snprintf(err, err_bytes, "%s", strerror(-rc));
    else
        rc = document_parse(text, len, &document, err, err_bytes);
    free(text);
    if (rc < 0)
        return -1;
    source->document = true;
    source->version = document.version;
    source->whole = document.sound;
    source->rows = document.rows;
    return 0;
}

/* ---- either ---- */

/* 1: it is a database, and the descriptor is of no use any more. */
static int judge_file(int fd, size_t *bytes, char *err, size_t err_bytes)
{
    char head[sizeof DATABASE];
    struct stat st;
    size_t len;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        snprintf(err, err_bytes, "it is no file");
        return -1;
    }
    if (file_read(fd, head, sizeof head, &len) == 0 && len == sizeof head &&
        memcmp(head, DATABASE, sizeof DATABASE) == 0)
        return 1;
    if ((uint64_t)st.st_size > SOURCE_DOCUMENT_BYTES_MAX) {
        snprintf(err, err_bytes, "it has %lld bytes, more than the %u that are read",
                 (long long)st.st_size, SOURCE_DOCUMENT_BYTES_MAX);
        return -1;
    }
    *bytes = (size_t)st.st_size;
    return lseek(fd, 0, SEEK_SET) < 0 ? -1 : 0;
}

static int read_file(const char *path, struct source *source, char *err, size_t err_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
    char why[SOURCE_ERROR_BYTES_MAX] = "";
    size_t bytes = 0;

    if (fd < 0) {
        snprintf(err, err_bytes, "%s: %s", path, strerror(errno));
        return -1;
    }
    rc = judge_file(fd, &bytes, why, sizeof why);
    if (rc == 0)
        rc = read_document(fd, bytes, source, why, sizeof why);
    /* Before SQLite has it open: to close it would end SQLite's locks (fcntl(2)). */
    close(fd);
    if (rc == 1)
        return read_database(path, source, err, err_bytes);
    if (rc < 0)
        snprintf(err, err_bytes, "%s: %s", path, why);
    return rc;
}

static void check_rows(struct source *source, const struct config *config)
{
    char boot_id[BOOT_ID_BYTES_MAX];
    struct devicemgr_settings settings;
    struct devicemgr *scratch;

    boot_id_read(boot_id);
    core_settings_init(&settings, config, boot_id);
    scratch = devicemgr_new(&settings, NULL, NULL);
    core_settings_fini(&settings);
    rows_check(scratch, source->rows.v, source->rows.len, &source->found);
    devicemgr_free(scratch);
}

int source_read(const char *path, const struct config *config, struct source *out, char *err,
                size_t err_bytes)
{
    struct source source = {0};

    if (read_file(path, &source, err, err_bytes) < 0) {
        source_fini(&source);
        return -1;
    }
    check_rows(&source, config);
    *out = source;
    return 0;
}

void source_fini(struct source *source)
{
    rows_fini(&source->rows);
    rows_found_fini(&source->found);
}

bool source_is_sound(const struct source *source)
{
    return source->whole && source->found.against == 0;
}
