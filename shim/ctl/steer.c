#include "shim/ctl/commands.h"

#include <stdio.h>

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"

#define IDS_MAX 512

/* ---- changing ---- */

/* Asks for it, and says what is so then. */
static bool steer(const struct command_run *run, Control__V1__SteerRequest *request,
                  struct client_failure *failure)
{
    Control__V1__SteerResponse *response;
    json_t *all;

    request->resource = run->arguments[0];
    response =
        (Control__V1__SteerResponse *)client_ask(run->client, CONTROL_STEER, &request->base,
                                                 &control__v1__steer_response__descriptor, failure);
    if (!response && !request->dry)
        command_say_unsure(failure);
    if (!response)
        return false;
    if (run->show.format == SHOW_JSON) {
        all = must(json_object());
        json_value_set(all, "resource", json_value_text(request->resource));
        json_value_set(all, "text", json_value_text(response->text));
        show_json(&run->show, all);
    } else if (run->show.format == SHOW_NAME) {
        fprintf(run->show.out, "resource/%s\n", request->resource);
    } else {
        fprintf(run->show.out, "%s\n", response->text);
    }
    control__v1__steer_response__free_unpacked(response, NULL);
    return true;
}

/* False. */
static bool no_duration(const char *text, struct client_failure *failure)
{
    return client_fail(failure, RPC_INVALID_ARGUMENT, "\"%s\" is no duration: 90s, 15m, 2h30m",
                       text);
}

static bool of_devices(const struct command_run *run, Control__V1__SteerRequest__What what,
                       const char *reason, struct client_failure *failure)
{
    Control__V1__SteerRequest request = CONTROL__V1__STEER_REQUEST__INIT;

    request.what = what;
    request.ids = (char **)(uintptr_t)(run->arguments + 1);
    request.n_ids = run->arguments_len - 1;
    if (reason)
        request.reason = (char *)(uintptr_t)reason;
    return steer(run, &request, failure);
}

static bool run_cordon(const struct command_run *run, struct client_failure *failure)
{
    return of_devices(run, CONTROL__V1__STEER_REQUEST__WHAT__CORDON, command_given(run, "reason"),
                      failure);
}

static bool run_uncordon(const struct command_run *run, struct client_failure *failure)
{
    return of_devices(run, CONTROL__V1__STEER_REQUEST__WHAT__UNCORDON, NULL, failure);
}

static bool run_withdraw(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__SteerRequest request = CONTROL__V1__STEER_REQUEST__INIT;
    const char *reason = command_given(run, "reason");

    request.what = command_given(run, "undo") ? CONTROL__V1__STEER_REQUEST__WHAT__WITHDRAW_UNDO
                                              : CONTROL__V1__STEER_REQUEST__WHAT__WITHDRAW;
    if (reason)
        request.reason = (char *)(uintptr_t)reason;
    return steer(run, &request, failure);
}

static bool run_taint(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__SteerRequest request = CONTROL__V1__STEER_REQUEST__INIT;
    const char *reason = command_given(run, "reason"), *during = command_given(run, "for");
    char *id = (char *)(uintptr_t)run->arguments[1];

    request.what = CONTROL__V1__STEER_REQUEST__WHAT__TAINT;
    request.ids = &id;
    request.n_ids = 1;
    request.taint = (char *)(uintptr_t)run->arguments[2];
    request.dry = command_given(run, "dry-run") != NULL;
    if (reason)
        request.reason = (char *)(uintptr_t)reason;
    if (during && (!show_duration_parse(during, &request.for_ms) || request.for_ms == 0))
        return no_duration(during, failure);
    return steer(run, &request, failure);
}

static bool run_untaint(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__SteerRequest request = CONTROL__V1__STEER_REQUEST__INIT;
    char *id = (char *)(uintptr_t)run->arguments[1];

    request.what = CONTROL__V1__STEER_REQUEST__WHAT__UNTAINT;
    request.ids = &id;
    request.n_ids = 1;
    request.taint = (char *)(uintptr_t)run->arguments[2];
    return steer(run, &request, failure);
}

static bool run_extend(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__SteerRequest request = CONTROL__V1__STEER_REQUEST__INIT;

    request.what = CONTROL__V1__STEER_REQUEST__WHAT__GRACE_EXTEND;
    if (!show_duration_parse(run->arguments[1], &request.more_ms) || request.more_ms == 0)
        return no_duration(run->arguments[1], failure);
    return steer(run, &request, failure);
}

static bool run_end(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__SteerRequest request = CONTROL__V1__STEER_REQUEST__INIT;

    request.what = CONTROL__V1__STEER_REQUEST__WHAT__GRACE_END;
    return steer(run, &request, failure);
}

const struct command cordon_command = {
    .name = "cordon",
    .arguments = "RESOURCE ID...",
    .summary = "no new holders of these devices; who has one keeps it",
    .arguments_min = 2,
    .arguments_max = IDS_MAX + 1,
    .options = {{"reason", 'r', "TEXT", "quoted where a container is refused for it"}},
    .changes = true,
    .run = run_cordon,
};

const struct command uncordon_command = {
    .name = "uncordon",
    .arguments = "RESOURCE ID...",
    .summary = "these devices may have new holders again",
    .arguments_min = 2,
    .arguments_max = IDS_MAX + 1,
    .changes = true,
    .run = run_uncordon,
};

const struct command taint_command = {
    .name = "taint",
    .arguments = "RESOURCE ID KEY[=VALUE]:EFFECT",
    .summary =
        "taints a device: None, NoSchedule (nobody new gets it) or NoExecute (who has it goes)",
    .arguments_min = 3,
    .arguments_max = 3,
    .options = {{"for", 'f', "DURATION", "it ends by itself then: 90s, 15m, 2h30m"},
                {"dry-run", 'd', NULL, "changes nothing, and says who would be evicted"},
                {"reason", 'r', "TEXT", "quoted where a container is refused for it"}},
    .changes = true,
    .run = run_taint,
};

const struct command untaint_command = {
    .name = "untaint",
    .arguments = "RESOURCE ID KEY[:EFFECT]",
    .summary = "takes a taint back; who is being evicted for it need not go any more",
    .arguments_min = 3,
    .arguments_max = 3,
    .changes = true,
    .run = run_untaint,
};

const struct command withdraw_command = {
    .name = "withdraw",
    .arguments = "RESOURCE",
    .summary = "no new holders of any of it; the kubelet is offered it no more",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = {{"reason", 'r', "TEXT", "quoted where a container is refused for it"},
                {"undo", 'u', NULL, "it may be used again"}},
    .changes = true,
    .run = run_withdraw,
};

const struct command grace_extend_command = {
    .name = "grace extend",
    .arguments = "RESOURCE DURATION",
    .summary = "the stop grace period under way ends so much later",
    .arguments_min = 2,
    .arguments_max = 2,
    .changes = true,
    .run = run_extend,
};

const struct command grace_end_command = {
    .name = "grace end",
    .arguments = "RESOURCE",
    .summary = "the stop grace period under way ends now",
    .arguments_min = 1,
    .arguments_max = 1,
    .changes = true,
    .run = run_end,
};
