#include "shim/ctl/commands.h"

const struct command *const commands[] = {
    &status_command,
    &why_command,
    &events_command,
    NULL,
};
