#include "shim/offline/offline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "devicemgr/store/store.h"
#include "shim/checkpoint_report.h"
#include "shim/json_value.h"
#include "shim/must.h"
#include "shim/offline/replace.h"
#include "shim/offline/say.h"
#include "shim/offline/source.h"

#define STOP_IT "stop it first: systemctl stop cri-device-shim.socket cri-device-shim.service"

/* What is there already. */
struct present {
    bool there;
    bool readable;
    size_t counts[ROWS_KINDS];
    size_t rows;
    char why[STORE_ERROR_BYTES_MAX]; /* it cannot be read */
};

struct import {
    const char *path, *state_dir;
    char into[STORE_PATH_BYTES_MAX];
    struct source source;
    struct present present;
    bool done;
    char kept[STORE_ASIDE_BYTES_MAX]; /* what was there; "": nothing, or not done */
    bool mended;                      /* before it was kept */
};

/* ---- whether it may be ---- */

static bool is_served(const char *socket_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bool served;
    int fd;

    if (strlen(socket_path) == 0 || strlen(socket_path) >= sizeof address.sun_path)
        return false;
    strcpy(address.sun_path, socket_path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    /* EAGAIN: it does not come to accept those that wait already (unix(7)). */
    served = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN;
    close(fd);
    return served;
}

static void on_row(void *user, const struct devicemgr_record *record, bool good)
{
    struct present *present = user;

    (void)good; /* it is kept as well */
    present->rows++;
    present->counts[record->kind]++;
}

/* -1, and it is said: a daemon has it. */
static int look_at_present(struct import *import)
{
    struct present *present = &import->present;
    struct store_found found;
    int rc;

    present->there = access(import->into, F_OK) == 0;
    if (!present->there)
        return 0;
    rc = store_look_at(import->into, &found, on_row, present, present->why, sizeof present->why);
    if (rc == STORE_IN_USE_ELSEWHERE)
        return say_failure("%s; if that is cri-device-shim, " STOP_IT, present->why);
    present->readable = rc == 0;
    return 0;
}

static int judge_source(const struct import *import)
{
    const struct rows_found *found = &import->source.found;

    for (size_t i = 0; i < found->len; i++) {
        if (found->v[i].kind != ROWS_FINDING_DEVICE && found->v[i].kind != ROWS_FINDING_LOST)
            return say_failure("%s: nothing is imported: %s (%zu findings in all: "
                               "cri-device-shimctl checkpoint verify --file)",
                               import->path, found->v[i].text, found->against);
    }
    return 0;
}

/* ---- what is said ---- */

static void put_counts(const size_t counts[ROWS_KINDS])
{
    const struct checkpoint_report report = {.resources = counts[DEVICEMGR_RECORD_RESOURCE],
                                             .allocations = counts[DEVICEMGR_RECORD_ALLOCATION],
                                             .pods = counts[DEVICEMGR_RECORD_POD],
                                             .orders = counts[DEVICEMGR_RECORD_ORDER],
                                             .drivers = counts[DEVICEMGR_RECORD_DRIVER],
                                             .claims = counts[DEVICEMGR_RECORD_CLAIM],
                                             .endings = counts[DEVICEMGR_RECORD_ENDING]};

    checkpoint_report_put_counts(stdout, &report);
}

static void put_source(const struct import *import, const struct checkpoint_report *report)
{
    const struct source *source = &import->source;

    checkpoint_report_put_text(stdout, import->path);
    printf(": schema version %d; ", source->version);
    put_counts(source->rows.counts);
    putchar('\n');
    if (!source->whole)
        puts("The checkpoint it was taken from was damaged: rows are missing.");
    if (source->document)
        puts("What plugins gave to containers is not in it: they are asked again when one is made "
             "anew.");
    checkpoint_report_put_findings(stdout, report);
}

static void put_present(const struct import *import)
{
    const struct present *present = &import->present;

    checkpoint_report_put_text(stdout, import->into);
    if (!present->there) {
        puts(import->done ? " was not there" : " is not there yet");
    } else if (!present->readable) {
        printf(" cannot be read (");
        checkpoint_report_put_text(stdout, present->why);
        puts(import->done ? "): it was set aside" : "): if it is damaged it is set aside");
    } else {
        printf(" has ");
        put_counts(present->counts);
        puts(present->rows > 0 ? ", which are kept aside and replaced" : "");
    }
}

static void put_done(const struct import *import)
{
    const char *kept = import->kept;

    printf("imported into %s", import->into);
    if (*kept)
        printf("; what was there%s is kept as %s",
               import->mended ? ", without what was damaged," : "", kept);
    putchar('\n');
}

static json_t *counts_of(const struct present *present)
{
    static const char *const NAMES[] = {
        [DEVICEMGR_RECORD_RESOURCE] = "resources", [DEVICEMGR_RECORD_ALLOCATION] = "allocations",
        [DEVICEMGR_RECORD_POD] = "pods",           [DEVICEMGR_RECORD_ORDER] = "orders",
        [DEVICEMGR_RECORD_DRIVER] = "drivers",     [DEVICEMGR_RECORD_CLAIM] = "claims",
        [DEVICEMGR_RECORD_ENDING] = "endings"};
    json_t *counts = must(json_object());

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        json_value_set(counts, NAMES[i], json_value_number(present->counts[i]));
    return counts;
}

static json_t *json_of(const struct import *import, const struct checkpoint_report *report)
{
    const struct present *present = &import->present;
    json_t *all = checkpoint_report_json(report);

    json_value_set(all, "into", json_value_text(import->into));
    json_value_set(all, "replaces",
                   present->there && present->readable ? counts_of(present) : json_null());
    json_value_set(all, "imported", json_boolean(import->done));
    json_value_set(all, "kept", *import->kept ? json_value_text(import->kept) : json_null());
    return all;
}

static int say(const struct import *import, enum offline_output output)
{
    struct checkpoint_finding findings[ROWS_FINDINGS_MAX];
    const struct checkpoint_report report = say_report(&import->source, import->path, findings);

    if (output == OFFLINE_JSON)
        return say_json(json_of(import, &report));
    if (output == OFFLINE_NAME) {
        printf("checkpoint/%s\n", import->done ? "imported" : "unchanged");
    } else {
        put_source(import, &report);
        put_present(import);
        if (import->done)
            put_done(import);
    }
    return say_flush();
}

/* ---- the command ---- */

static int replace(struct import *import)
{
    char err[REPLACE_ERROR_BYTES_MAX];

    if (replace_rows(&import->source.rows, source_is_sound(&import->source), import->state_dir,
                     import->kept, &import->mended, err, sizeof err) < 0)
        return say_failure("nothing was imported: %s", err);
    import->done = true;
    return 0;
}

static int carry_out(struct import *import, const struct config *config, bool dry,
                     enum offline_output output)
{
    if (judge_source(import) < 0)
        return -1;
    if (is_served(config->control_socket))
        return say_failure("cri-device-shim runs, and answers at %s; " STOP_IT,
                           config->control_socket);
    if (look_at_present(import) < 0)
        return -1;
    if (!dry && replace(import) < 0)
        return -1;
    if (say(import, output) == 0)
        return 0;
    return import->done
               ? say_failure("it was imported all the same into %s%s%s", import->into,
                             *import->kept ? "; what was there is kept as " : "", import->kept)
               : -1;
}

int offline_import(const char *path, const struct config *config, bool dry,
                   enum offline_output output)
{
    struct import import = {.path = path, .state_dir = config->state_dir};
    char err[SOURCE_ERROR_BYTES_MAX];
    int rc;

    if (store_file_path(config->state_dir, import.into) < 0)
        return say_failure("%s: %s", config->state_dir, strerror(errno));
    if (source_read(path, config, &import.source, err, sizeof err) < 0)
        return say_failure("%s", err);
    rc = carry_out(&import, config, dry, output);
    source_fini(&import.source);
    return rc;
}
