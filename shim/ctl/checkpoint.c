/*
 * cri-device-shimctl checkpoint verify
 */
#include <stdlib.h>

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/checkpoint_report.h"
#include "shim/ctl/beside.h"
#include "shim/ctl/commands.h"
#include "shim/must.h"

static void show_it(const struct show *show, const Control__V1__CheckpointVerifyResponse *is)
{
    struct checkpoint_finding *findings = must(calloc(is->n_findings + 1, sizeof *findings));
    const struct checkpoint_report report = {.path = is->path,
                                             .schema_version = is->schema_version,
                                             .sound = is->sound,
                                             .resources = is->resources,
                                             .allocations = is->allocations,
                                             .pods = is->pods,
                                             .orders = is->orders,
                                             .drivers = is->drivers,
                                             .claims = is->claims,
                                             .endings = is->endings,
                                             .findings = findings,
                                             .findings_len = is->n_findings,
                                             .findings_total = is->findings_total};

    for (size_t i = 0; i < is->n_findings; i++)
        findings[i] = (struct checkpoint_finding){is->findings[i]->kind, is->findings[i]->text};
    if (show->format == SHOW_JSON)
        show_json(show, checkpoint_report_json(&report));
    else if (show->format == SHOW_NAME)
        checkpoint_report_put_name(show->out, &report);
    else
        checkpoint_report_put(show->out, &report);
    free(findings);
}

/* One that no daemon has open. */
static bool verify_file(const struct command_run *run, const char *file,
                        struct client_failure *failure)
{
    static const char *const OUTPUTS[][BESIDE_ARGUMENTS_MAX] = {
        [SHOW_TABLE] = {NULL}, [SHOW_WIDE] = {NULL}, [SHOW_NAME] = {"--output=name"}};
    static const char *const JSON[BESIDE_ARGUMENTS_MAX] = {"--output=json"};
    char *text;

    if (run->show.format == SHOW_JSON) {
        json_t *answer = beside_ask(run, "verify-checkpoint", file, JSON, failure);

        if (answer)
            show_json(&run->show, answer);
        return answer;
    }
    text = beside_run(run, "verify-checkpoint", file, OUTPUTS[run->show.format], failure);
    if (!text)
        return false;
    fputs(text, run->show.out);
    free(text);
    return true;
}

static bool ask_daemon(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__CheckpointVerifyRequest request = CONTROL__V1__CHECKPOINT_VERIFY_REQUEST__INIT;
    Control__V1__CheckpointVerifyResponse *is;

    is = (Control__V1__CheckpointVerifyResponse *)client_ask(
        run->client, CONTROL_CHECKPOINT_VERIFY, &request.base,
        &control__v1__checkpoint_verify_response__descriptor, failure);
    if (!is)
        return false;
    show_it(&run->show, is);
    control__v1__checkpoint_verify_response__free_unpacked(is, NULL);
    return true;
}

static bool run_verify(const struct command_run *run, struct client_failure *failure)
{
    const char *file = command_given(run, "file");

    if (!beside_judge_config(run, file, failure))
        return false;
    return file ? verify_file(run, file, failure) : ask_daemon(run, failure);
}

const struct command checkpoint_verify_command = {
    .name = "checkpoint verify",
    .arguments = "",
    .summary = "whether the checkpoint on the disk is sound, and its rows make sense",
    .options = {{"file", 'f', "FILE", "a stopped daemon's checkpoint, or one that was exported"},
                BESIDE_CONFIG},
    .run = run_verify,
};
