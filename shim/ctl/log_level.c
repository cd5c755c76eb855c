#include "shim/ctl/commands.h"

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/must.h"

static void show_level(const struct show *show, const Control__V1__LogLevelResponse *response)
{
    json_t *all;

    if (show->format == SHOW_JSON) {
        all = must(json_object());
        json_value_set(all, "level", json_value_text(response->level));
        json_value_set(all, "settings", json_value_text(response->settings));
        json_value_set(all, "set", json_boolean(response->set));
        show_json(show, all);
    } else if (response->set && show->format != SHOW_NAME) {
        fprintf(show->out, "%s (set; the settings say %s: --reset)\n", response->level,
                response->settings);
    } else {
        fprintf(show->out, "%s\n", response->level);
    }
}

static bool run(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__LogLevelRequest request = CONTROL__V1__LOG_LEVEL_REQUEST__INIT;
    Control__V1__LogLevelResponse *response;

    if (run->arguments_len > 0)
        request.level = run->arguments[0];
    request.reset = command_given(run, "reset") != NULL;
    response = (Control__V1__LogLevelResponse *)client_ask(
        run->client, CONTROL_LOG_LEVEL, &request.base, &control__v1__log_level_response__descriptor,
        failure);
    if (!response)
        return false;
    show_level(&run->show, response);
    control__v1__log_level_response__free_unpacked(response, NULL);
    return true;
}

const struct command log_level_command = {
    .name = "log-level",
    .arguments = "[LEVEL]",
    .summary = "the log's level, or set it: error, warning, info or debug, over restarts",
    .arguments_max = 1,
    .options = {{"reset", 0, NULL, "that of the settings again"}},
    .changes = true,
    .run = run,
};
