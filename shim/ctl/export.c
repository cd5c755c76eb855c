/*
 * cri-device-shimctl checkpoint export
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/ctl/commands.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"

/* What a program that reads it asks for first. */
#define FORMAT "cri-device-shim/checkpoint/v1"

struct exported {
    json_t *all;
    json_t *resources, *allocations, *pods, *orders;
};

/* ---- one row; nothing of one that makes no sense ---- */

static json_t *device_of(const Checkpoint__V1__Device *device)
{
    json_t *one = must(json_object()), *nodes = must(json_array());

    for (size_t i = 0; i < device->n_numa_nodes; i++)
        show_append(nodes, must(json_integer(device->numa_nodes[i])));
    show_set(one, "id", show_text(device->id));
    show_set(one, "healthy", json_boolean(device->healthy));
    show_set(one, "numaNodes", nodes);
    return one;
}

static void add_resource(json_t *to, const ProtobufCBinaryData *value)
{
    Checkpoint__V1__Resource *row = checkpoint__v1__resource__unpack(NULL, value->len, value->data);
    json_t *one, *devices;

    if (!row)
        return;
    one = must(json_object());
    devices = must(json_array());
    for (size_t i = 0; i < row->n_devices; i++)
        show_append(devices, device_of(row->devices[i]));
    show_set(one, "name", show_text(row->name));
    show_set(one, "socket", show_text_or_null(row->endpoint));
    show_set(one, "preStart", json_boolean(row->pre_start_required));
    show_set(one, "preferred", json_boolean(row->get_preferred_allocation_available));
    show_set(one, "devices", devices);
    show_set(one, "away", json_boolean(row->stopped));
    show_set(one, "awayFor", show_text_or_null(row->stop_reason));
    show_append(to, one);
    checkpoint__v1__resource__free_unpacked(row, NULL);
}

static void add_allocation(json_t *to, const ProtobufCBinaryData *value)
{
    Checkpoint__V1__Allocation *row =
        checkpoint__v1__allocation__unpack(NULL, value->len, value->data);
    json_t *one;

    if (!row)
        return;
    one = must(json_object());
    show_set(one, "podUid", show_text(row->pod_uid));
    show_set(one, "container", show_text(row->container));
    show_set(one, "resource", show_text(row->resource));
    show_set(one, "ids", show_texts(row->device_ids, row->n_device_ids));
    show_set(one, "chosenBy", show_text(row->own_choice ? "shim" : "kubelet"));
    show_set(one, "optionsCached", json_boolean(row->has_options));
    show_set(one, "optionsBoot", show_text_or_null(row->boot_id));
    show_append(to, one);
    checkpoint__v1__allocation__free_unpacked(row, NULL);
}

static void add_pod(json_t *to, const ProtobufCBinaryData *value)
{
    Checkpoint__V1__Pod *row = checkpoint__v1__pod__unpack(NULL, value->len, value->data);
    json_t *one;

    if (!row)
        return;
    one = must(json_object());
    show_set(one, "uid", show_text(row->uid));
    show_set(one, "namespace", show_text_or_null(row->namespace_));
    show_set(one, "name", show_text_or_null(row->name));
    show_set(one, "sandbox", show_text_or_null(row->sandbox_id));
    show_set(one, "attempt", show_number(row->attempt));
    show_set(one, "stopped", json_boolean(row->stopped));
    show_set(one, "died", json_boolean(row->died));
    show_set(one, "remade", json_boolean(row->remade));
    show_set(one, "boot", show_text_or_null(row->boot_id));
    show_set(one, "tokens", show_texts(row->tokens, row->n_tokens));
    show_append(to, one);
    checkpoint__v1__pod__free_unpacked(row, NULL);
}

static void add_order(json_t *to, const ProtobufCBinaryData *value)
{
    Checkpoint__V1__Order *row = checkpoint__v1__order__unpack(NULL, value->len, value->data);
    json_t *one;

    if (!row)
        return;
    one = must(json_object());
    show_set(one, "kind", show_text(row->kind));
    show_set(one, "resource", show_text(row->resource));
    show_set(one, "id", show_text_or_null(row->id));
    show_set(one, "reason", show_text_or_null(row->reason));
    show_set(one, "atSeconds", show_number(row->at_s));
    show_set(one, "moreSeconds", show_seconds(row->more_ms));
    show_set(one, "over", json_boolean(row->over));
    show_append(to, one);
    checkpoint__v1__order__free_unpacked(row, NULL);
}

/* ---- all of them ---- */

static void on_message(void *user, const ProtobufCMessage *message)
{
    const Control__V1__CheckpointExportResponse *is = (const void *)message;
    struct exported *exported = user;

    if (strcmp(is->kind, "resource") == 0)
        add_resource(exported->resources, &is->value);
    else if (strcmp(is->kind, "allocation") == 0)
        add_allocation(exported->allocations, &is->value);
    else if (strcmp(is->kind, "pod") == 0)
        add_pod(exported->pods, &is->value);
    else if (strcmp(is->kind, "order") == 0)
        add_order(exported->orders, &is->value);
    if (is->kind[0] != '\0')
        return;
    show_set(exported->all, "schemaVersion", show_number(is->schema_version));
    show_set(exported->all, "sound", json_boolean(is->sound));
}

static json_t *list_in(json_t *all, const char *key)
{
    json_t *list = must(json_array());

    show_set(all, key, list);
    return list;
}

/* To a file that only its owner reads, and that was not there. */
static bool write_file(const char *path, const json_t *all, struct client_failure *failure)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0 && json_dumpfd(all, fd, JSON_INDENT(2)) == 0 && write(fd, "\n", 1) == 1 &&
        close(fd) == 0)
        return true;
    failure->code = RPC_UNKNOWN;
    snprintf(failure->words, sizeof failure->words, "%s: %s", path, strerror(errno));
    return false;
}

static bool run_export(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__CheckpointExportRequest request = CONTROL__V1__CHECKPOINT_EXPORT_REQUEST__INIT;
    const char *path = command_given(run, "file");
    struct exported exported = {.all = must(json_object())};
    bool done;

    show_set(exported.all, "format", show_text(FORMAT));
    exported.resources = list_in(exported.all, "resources");
    exported.allocations = list_in(exported.all, "allocations");
    exported.pods = list_in(exported.all, "pods");
    exported.orders = list_in(exported.all, "orders");
    done = client_listen(run->client, CONTROL_CHECKPOINT_EXPORT, &request.base,
                         &control__v1__checkpoint_export_response__descriptor, CLIENT_CALL_MS_MAX,
                         on_message, &exported, failure);
    if (done && path)
        done = write_file(path, exported.all, failure);
    if (done && path)
        fprintf(run->show.out, "%s\n", path);
    else if (done)
        show_json(&run->show, json_incref(exported.all));
    json_decref(exported.all);
    return done;
}

const struct command checkpoint_export_command = {
    .name = "checkpoint export",
    .arguments = "",
    .summary = "all that the checkpoint has but what plugins gave to containers, as JSON",
    .options = {{"file", 'f', "FILE", "into this new file"}},
    .changes = true, /* with a file */
    .run = run_export,
};
