#include "shim/ctl/commands.h"

const struct command *const commands[] = {
    &status_command,  &why_command, &events_command, &reload_command, &log_level_command,
    &support_command, NULL,
};
