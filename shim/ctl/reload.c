#include "shim/ctl/commands.h"

#include <string.h>

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/must.h"

static void put_names(const struct show *show, const char *what, const char *names)
{
    fprintf(show->out, "%s: %s\n", what, names[0] ? names : "nothing");
}

/* "a, b" as a list. */
static json_t *names_of(char *names)
{
    json_t *list = must(json_array());

    for (char *rest = names, *name; (name = strsep(&rest, ","));) {
        name += strspn(name, " ");
        if (name[0])
            json_value_append(list, json_value_text(name));
    }
    return list;
}

static bool run(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__ReloadRequest request = CONTROL__V1__RELOAD_REQUEST__INIT;
    Control__V1__ReloadResponse *response;

    response = (Control__V1__ReloadResponse *)client_ask(run->client, CONTROL_RELOAD, &request.base,
                                                         &control__v1__reload_response__descriptor,
                                                         failure);
    if (!response)
        return false;
    if (run->show.format == SHOW_JSON) {
        json_t *all = must(json_object());

        json_value_set(all, "changed", names_of(response->changed));
        json_value_set(all, "needsRestart", names_of(response->needs_restart));
        show_json(&run->show, all);
    } else {
        put_names(&run->show, "changed", response->changed);
        put_names(&run->show, "needs a restart", response->needs_restart);
    }
    control__v1__reload_response__free_unpacked(response, NULL);
    return true;
}

const struct command reload_command = {
    .name = "reload",
    .arguments = "",
    .summary = "read the settings again: all that may change at once does, or nothing",
    .changes = true,
    .run = run,
};
