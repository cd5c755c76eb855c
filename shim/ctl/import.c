/*
 * cri-device-shimctl checkpoint import: the daemon's program is asked what it would do, and then to
 * do that. No daemon runs meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>

#include "shim/ctl/beside.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/consent.h"

static const char *output_of(enum show_format format)
{
    return format == SHOW_JSON   ? "--output=json"
           : format == SHOW_NAME ? "--output=name"
                                 : "--output=text";
}

static char *ask(const struct command_run *run, bool dry, enum show_format format,
                 struct client_failure *failure)
{
    const char *const more[BESIDE_ARGUMENTS_MAX] = {output_of(format), dry ? "--dry-run" : NULL};

    return beside_run(run, "import-checkpoint", run->arguments[0], more, failure);
}

/* Where nobody is asked there is no need to know what would be done. */
static bool is_wanted(const struct command_run *run, struct client_failure *failure)
{
    char *plan;
    bool wanted;

    if (command_given(run, "yes"))
        return true;
    plan = ask(run, true, SHOW_TABLE, failure);
    wanted = plan && consent_given(run, plan, "Make these the checkpoint?", failure);
    free(plan);
    return wanted;
}

static bool run_import(const struct command_run *run, struct client_failure *failure)
{
    bool dry = command_given(run, "dry-run");
    char *text = NULL;

    if (dry || is_wanted(run, failure))
        text = ask(run, dry, run->show.format, failure);
    if (!text)
        return false;
    fputs(text, run->show.out);
    free(text);
    return true;
}

const struct command checkpoint_import_command = {
    .name = "checkpoint import",
    .arguments = "FILE",
    .summary = "make what an export wrote the checkpoint, while the daemon is stopped",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = {CONSENT_YES, CONSENT_DRY_RUN, BESIDE_CONFIG},
    .changes = true,
    .run = run_import,
};
