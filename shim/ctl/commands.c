#include "shim/ctl/commands.h"

/* clang-format off */
const struct command *const commands[] = {
    &status_command,
    &resources_command,
    &plugins_command,
    &devices_command,
    &allocations_command,
    &pods_command,
    &why_command,
    &events_command,
    &reload_command,
    &log_level_command,
    &support_command,
    NULL,
};
/* clang-format on */
