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
    if (!response)
        return false;
    if (run->show.format == SHOW_JSON) {
        all = must(json_object());
        show_set(all, "resource", show_text(request->resource));
        show_set(all, "text", show_text(response->text));
        show_json(&run->show, all);
    } else if (run->show.format == SHOW_NAME) {
        fprintf(run->show.out, "resource/%s\n", request->resource);
    } else {
        fprintf(run->show.out, "%s\n", response->text);
    }
    control__v1__steer_response__free_unpacked(response, NULL);
    return true;
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

static bool run_extend(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__SteerRequest request = CONTROL__V1__STEER_REQUEST__INIT;

    request.what = CONTROL__V1__STEER_REQUEST__WHAT__GRACE_EXTEND;
    if (!show_duration_parse(run->arguments[1], &request.more_ms) || request.more_ms == 0) {
        failure->code = RPC_INVALID_ARGUMENT;
        snprintf(failure->words, sizeof failure->words, "\"%s\" is no duration: 90s, 15m, 2h30m",
                 run->arguments[1]);
        return false;
    }
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

/* ---- what is set ---- */

static void show_list(const struct show *show, const Control__V1__OrdersResponse *response)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < response->n_orders; i++) {
        const Control__V1__Order *order = response->orders[i];
        json_t *one = must(json_object());

        show_set(one, "kind", show_text(order->kind));
        show_set(one, "resource", show_text(order->resource));
        show_set(one, "id", show_text_or_null(order->id));
        show_set(one, "reason", show_text_or_null(order->reason));
        show_set(one, "since", show_ago(order->since_ms));
        show_set(one, "moreSeconds", show_seconds(order->more_ms));
        show_set(one, "over", json_boolean(order->over));
        show_append(list, one);
    }
    show_json(show, list);
}

static void show_lines(const struct show *show, const Control__V1__OrdersResponse *response)
{
    char age[SHOW_AGE_BYTES];

    for (size_t i = 0; i < response->n_orders; i++) {
        const Control__V1__Order *order = response->orders[i];

        fprintf(show->out, "%s/%s%s", order->kind, order->resource, order->id[0] ? "/" : "");
        show_put(show, order->id);
        if (show->format == SHOW_NAME) {
            fputc('\n', show->out);
            continue;
        }
        fprintf(show->out, " for %s", show_age(order->since_ms, age));
        if (order->over)
            fputs(", ended", show->out);
        else if (order->more_ms > 0)
            fprintf(show->out, ", %s longer", show_age(order->more_ms, age));
        fputs(order->reason[0] ? ": " : "", show->out);
        show_put(show, order->reason);
        fputc('\n', show->out);
    }
    if (response->more)
        fputs("and more: name a resource\n", show->out);
}

static bool run_orders(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__OrdersRequest request = CONTROL__V1__ORDERS_REQUEST__INIT;
    Control__V1__OrdersResponse *response;

    if (run->arguments_len > 0)
        request.resource = run->arguments[0];
    response = (Control__V1__OrdersResponse *)client_ask(run->client, CONTROL_ORDERS, &request.base,
                                                         &control__v1__orders_response__descriptor,
                                                         failure);
    if (!response)
        return false;
    if (run->show.format == SHOW_JSON)
        show_list(&run->show, response);
    else
        show_lines(&run->show, response);
    control__v1__orders_response__free_unpacked(response, NULL);
    return true;
}

const struct command orders_command = {
    .name = "orders",
    .arguments = "[RESOURCE]",
    .summary = "what is cordoned or withdrawn, and grace periods that were changed",
    .arguments_max = 1,
    .run = run_orders,
};
