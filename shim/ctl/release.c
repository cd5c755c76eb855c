/*
 * cri-device-shimctl release: the daemon is asked what would be done, and then to do that.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/consent.h"
#include "shim/ctl/list.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"

static Control__V1__ReleaseResponse *ask(const struct command_run *run, const char *pod, bool dry,
                                         struct client_failure *failure)
{
    Control__V1__ReleaseRequest request = CONTROL__V1__RELEASE_REQUEST__INIT;
    const char *reason = command_given(run, "reason");

    request.pod = (char *)(uintptr_t)pod;
    request.dry_run = dry;
    if (reason)
        request.reason = (char *)(uintptr_t)reason;
    return (Control__V1__ReleaseResponse *)client_ask(run->client, CONTROL_RELEASE, &request.base,
                                                      &control__v1__release_response__descriptor,
                                                      failure);
}

/* ---- what would be done ---- */

static void put_row(const struct show *show, const Control__V1__Allocation *row)
{
    char *pod = list_pod_name(row->pod_namespace, row->pod_name, row->pod_uid);

    fputs("pod ", show->out);
    show_put(show, pod);
    fputs(" (uid ", show->out);
    show_put(show, row->pod_uid);
    fputs("), container ", show->out);
    show_put(show, row->container);
    fputs(": ", show->out);
    show_put(show, row->resource);
    for (size_t i = 0; i < row->n_ids; i++) {
        fputs(i > 0 ? "," : " ", show->out);
        show_put(show, row->ids[i]);
    }
    if (row->ids_total > row->n_ids)
        fprintf(show->out, " and %" PRIu64 " more", row->ids_total - row->n_ids);
    fprintf(show->out, " (%s)\n", row->state);
    free(pod);
}

static void put_plan(const struct show *show, const Control__V1__ReleaseResponse *plan)
{
    for (size_t i = 0; i < plan->n_rows; i++)
        put_row(show, plan->rows[i]);
    if (plan->more)
        fputs("and more\n", show->out);
    if (plan->refused[0]) {
        fputs("cannot be released: ", show->out);
        show_put(show, plan->refused);
        fputc('\n', show->out);
    }
    if (plan->text[0]) {
        show_put(show, plan->text);
        fputc('\n', show->out);
    }
}

/* For the caller to free. */
static char *plan_text(const Control__V1__ReleaseResponse *plan)
{
    char *text = NULL;
    size_t bytes;
    struct show show = {.out = must(open_memstream(&text, &bytes))};

    put_plan(&show, plan);
    if (fclose(show.out) != 0)
        abort(); /* out of memory */
    return text;
}

/* ---- what is said ---- */

static json_t *row_of(const Control__V1__Allocation *row)
{
    json_t *one = must(json_object());

    json_value_set(one, "namespace", json_value_text_or_null(row->pod_namespace));
    json_value_set(one, "pod", json_value_text_or_null(row->pod_name));
    json_value_set(one, "uid", json_value_text(row->pod_uid));
    json_value_set(one, "container", json_value_text(row->container));
    json_value_set(one, "resource", json_value_text(row->resource));
    json_value_set(one, "ids", json_value_texts(row->ids, row->n_ids));
    json_value_set(one, "idsTotal", json_value_number(row->ids_total));
    json_value_set(one, "state", json_value_text(row->state));
    return one;
}

/* `done` NULL: nothing was. */
static void show_it(const struct show *show, const Control__V1__ReleaseResponse *plan,
                    const Control__V1__ReleaseResponse *done)
{
    json_t *all = must(json_object()), *rows = must(json_array());

    for (size_t i = 0; i < plan->n_rows; i++)
        json_value_append(rows, row_of(plan->rows[i]));
    json_value_set(all, "allocations", rows);
    json_value_set(all, "more", json_boolean(plan->more));
    json_value_set(all, "refused", json_value_text_or_null(plan->refused));
    json_value_set(all, "remark", json_value_text_or_null(plan->text));
    json_value_set(all, "released", done ? json_value_text(done->text) : json_null());
    show_json(show, all);
}

static void tell(const struct show *show, const Control__V1__ReleaseResponse *plan,
                 const Control__V1__ReleaseResponse *done)
{
    const Control__V1__Allocation *row = plan->rows[0];
    char *pod = list_pod_name(row->pod_namespace, row->pod_name, row->pod_uid);

    if (show->format == SHOW_JSON)
        show_it(show, plan, done);
    else if (show->format == SHOW_NAME)
        fprintf(show->out, "pod/%s\n", pod);
    else if (done)
        fprintf(show->out, "%s: %s\n", pod, done->text);
    else
        put_plan(show, plan);
    free(pod);
}

/* ---- the command ---- */

static bool carry_out(const struct command_run *run, const Control__V1__ReleaseResponse *plan,
                      struct client_failure *failure)
{
    Control__V1__ReleaseResponse *done;
    char *text;
    bool yes;

    if (plan->n_rows == 0 && !plan->refused[0]) /* else what it has may not be known */
        return client_fail(failure, RPC_NOT_FOUND, "the pod has no devices any more");
    if (plan->n_rows > 0 && command_given(run, "dry-run")) {
        tell(&run->show, plan, NULL);
        return true;
    }
    if (plan->refused[0])
        return client_fail(failure, RPC_FAILED_PRECONDITION, "%s", plan->refused);
    text = plan_text(plan);
    yes = consent_given(run, text, "Take these from the pod?", failure);
    free(text);
    if (!yes)
        return false;
    done = ask(run, plan->rows[0]->pod_uid, false, failure);
    if (!done) {
        command_say_unsure(failure);
        return false;
    }
    tell(&run->show, plan, done);
    control__v1__release_response__free_unpacked(done, NULL);
    return true;
}

static bool run_release(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__ReleaseResponse *plan = ask(run, run->arguments[0], true, failure);
    bool done;

    if (!plan)
        return false;
    done = carry_out(run, plan, failure);
    control__v1__release_response__free_unpacked(plan, NULL);
    return done;
}

const struct command release_command = {
    .name = "release",
    .arguments = "POD",
    .summary = "take all devices from a pod that should not have them any more",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = {CONSENT_YES,
                CONSENT_DRY_RUN,
                {"reason", 'r', "TEXT", "told with the event of what was taken"}},
    .changes = true,
    .run = run_release,
};
