/*
 * cri-device-shimctl checkpoint export
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/checkpoint_json.h"
#include "shim/ctl/beside.h"
#include "shim/ctl/commands.h"
#include "shim/file.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"

/* ---- what the daemon sends ---- */

static bool on_message(void *user, const ProtobufCMessage *message)
{
    const Control__V1__CheckpointExportResponse *is = (const void *)message;
    json_t *document = user;

    if (is->kind[0] != '\0')
        checkpoint_json_add(document, is->kind, is->value.data, is->value.len);
    else
        checkpoint_json_set_head(document, is->schema_version, is->sound);
    return true;
}

static json_t *ask(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__CheckpointExportRequest request = CONTROL__V1__CHECKPOINT_EXPORT_REQUEST__INIT;
    json_t *document = checkpoint_json_new();

    if (client_listen(run->client, CONTROL_CHECKPOINT_EXPORT, &request.base,
                      &control__v1__checkpoint_export_response__descriptor, CLIENT_CALL_MS_MAX,
                      on_message, document, failure))
        return document;
    json_decref(document);
    return NULL;
}

/* Of a checkpoint that no daemon has open. */
static json_t *read_file(const struct command_run *run, const char *file,
                         struct client_failure *failure)
{
    static const char *const NONE[BESIDE_ARGUMENTS_MAX] = {NULL};

    return beside_ask(run, "export-checkpoint", file, NONE, failure);
}

/* ---- the command ---- */

/* 0 or a negative errno, with which a part of it may be written. */
static int write_document(int fd, const json_t *all)
{
    char *text = must(json_dumps(all, JSON_INDENT(2)));
    int err = file_write(fd, text, strlen(text));

    free(text);
    return err ? err : file_write(fd, "\n", 1);
}

/* To a file that only its owner reads, and that was not there; nor is it after a failure. */
static bool write_file(const char *path, const json_t *all, struct client_failure *failure)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int err = fd < 0 ? -errno : write_document(fd, all);

    if (fd >= 0 && close(fd) < 0 && !err)
        err = -errno;
    if (!err)
        return true;
    if (fd >= 0)
        unlink(path);
    return client_fail(failure, RPC_UNKNOWN, "%s: %s", path, strerror(-err));
}

static bool run_export(const struct command_run *run, struct client_failure *failure)
{
    const char *path = command_given(run, "file"), *from = command_given(run, "from");
    json_t *document;
    bool done;

    if (!beside_judge_config(run, from, failure))
        return false;
    document = from ? read_file(run, from, failure) : ask(run, failure);
    done = document && (!path || write_file(path, document, failure));
    if (done && path)
        fprintf(run->show.out, "%s\n", path);
    else if (done)
        show_json(&run->show, json_incref(document));
    json_decref(document);
    return done;
}

const struct command checkpoint_export_command = {
    .name = "checkpoint export",
    .arguments = "",
    .summary = "all that the checkpoint has but what plugins gave to containers, as JSON",
    .options = {{"file", 'f', "FILE", "into this new file"},
                {"from", '\0', "FILE", "of a stopped daemon's checkpoint"},
                BESIDE_CONFIG},
    .changes = true, /* with a file */
    .run = run_export,
};
