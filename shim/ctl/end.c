#include <stdio.h>

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/ctl/commands.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"

/* False: the command line makes no sense. */
static bool read_options(const struct command_run *run, Control__V1__EndRequest *request,
                         struct client_failure *failure)
{
    const char *grace = command_given(run, "grace"), *reason = command_given(run, "reason");

    request->pod = run->arguments[0];
    request->cancel = command_given(run, "cancel") != NULL;
    request->here = command_given(run, "here") != NULL;
    request->own_grace = !grace;
    if (reason)
        request->reason = (char *)(uintptr_t)reason;
    if (request->cancel && (grace || reason || request->here))
        return client_fail(failure, RPC_INVALID_ARGUMENT,
                           "--cancel goes with none of --grace, --here, --reason");
    if (grace && (!show_duration_parse(grace, &request->grace_ms) || request->grace_ms == 0))
        return client_fail(failure, RPC_INVALID_ARGUMENT, "--grace is no duration: 10s, 2m, 1h30m");
    return true;
}

static void say(const struct command_run *run, const Control__V1__EndRequest *request,
                const Control__V1__EndResponse *response)
{
    json_t *all;

    if (run->show.format == SHOW_JSON) {
        all = must(json_object());
        json_value_set(all, "pod", json_value_text(request->pod));
        json_value_set(all, "cancelled", json_boolean(request->cancel));
        json_value_set(all, "text", json_value_text(response->text));
        show_json(&run->show, all);
    } else if (run->show.format == SHOW_NAME) {
        fprintf(run->show.out, "pod/%s\n", request->pod);
    } else {
        fprintf(run->show.out, "%s\n", response->text);
    }
}

static bool run_end(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__EndRequest request = CONTROL__V1__END_REQUEST__INIT;
    Control__V1__EndResponse *response;

    if (!read_options(run, &request, failure))
        return false;
    response = (Control__V1__EndResponse *)client_ask(
        run->client, CONTROL_END, &request.base, &control__v1__end_response__descriptor, failure);
    if (!response) {
        command_say_unsure(failure);
        return false;
    }
    say(run, &request, response);
    control__v1__end_response__free_unpacked(response, NULL);
    return true;
}

const struct command end_command = {
    .name = "end",
    .arguments = "POD",
    .summary = "end a pod, and keep it from coming back to this node's runtime",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = {{"grace", 'g', "DURATION", "how long its containers have, in place of its own"},
                {"reason", 'r', "TEXT", "quoted where something of it is refused"},
                {"here", 0, NULL, "stop its containers, though the API server can be asked"},
                {"cancel", 0, NULL, "do not; or it may come back"}},
    .changes = true,
    .run = run_end,
};
