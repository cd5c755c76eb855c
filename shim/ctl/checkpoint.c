/*
 * cri-device-shimctl checkpoint verify
 */
#include <inttypes.h>

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/ctl/commands.h"
#include "shim/must.h"

static void show_all(const struct show *show, const Control__V1__CheckpointVerifyResponse *is)
{
    json_t *all = must(json_object()), *findings = must(json_array());

    for (size_t i = 0; i < is->n_findings; i++) {
        json_t *one = must(json_object());

        show_set(one, "kind", show_text(is->findings[i]->kind));
        show_set(one, "text", show_text(is->findings[i]->text));
        show_append(findings, one);
    }
    show_set(all, "file", show_text(is->path));
    show_set(all, "schemaVersion", show_number(is->schema_version));
    show_set(all, "sound", json_boolean(is->sound));
    show_set(all, "resources", show_number(is->resources));
    show_set(all, "allocations", show_number(is->allocations));
    show_set(all, "pods", show_number(is->pods));
    show_set(all, "orders", show_number(is->orders));
    show_set(all, "findings", findings);
    show_set(all, "findingsTotal", show_number(is->findings_total));
    show_json(show, all);
}

static void put_all(const struct show *show, const Control__V1__CheckpointVerifyResponse *is)
{
    show_put(show, is->path);
    fprintf(show->out,
            ": %s\nschema version %" PRIu32 "; rows: %" PRIu64 " resources, %" PRIu64
            " allocations, %" PRIu64 " pods, %" PRIu64 " orders\n",
            is->sound ? "sound" : "damaged", is->schema_version, is->resources, is->allocations,
            is->pods, is->orders);
    for (size_t i = 0; i < is->n_findings; i++) {
        fprintf(show->out, "%s: ", is->findings[i]->kind);
        show_put(show, is->findings[i]->text);
        fputc('\n', show->out);
    }
    if (is->findings_total > is->n_findings)
        fprintf(show->out, "and %" PRIu64 " more\n", is->findings_total - is->n_findings);
}

static bool run_verify(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__CheckpointVerifyRequest request = CONTROL__V1__CHECKPOINT_VERIFY_REQUEST__INIT;
    Control__V1__CheckpointVerifyResponse *is;

    is = (Control__V1__CheckpointVerifyResponse *)client_ask(
        run->client, CONTROL_CHECKPOINT_VERIFY, &request.base,
        &control__v1__checkpoint_verify_response__descriptor, failure);
    if (!is)
        return false;
    if (run->show.format == SHOW_JSON)
        show_all(&run->show, is);
    else if (run->show.format == SHOW_NAME)
        fprintf(run->show.out, "checkpoint/%s\n", is->sound ? "sound" : "damaged");
    else
        put_all(&run->show, is);
    control__v1__checkpoint_verify_response__free_unpacked(is, NULL);
    return true;
}

const struct command checkpoint_verify_command = {
    .name = "checkpoint verify",
    .arguments = "",
    .summary = "whether the checkpoint on the disk is sound, and its rows make sense",
    .run = run_verify,
};
