#include "shim/ctl/commands.h"

/* clang-format off */
const struct command *const commands[] = {
    &status_command,
    &resources_command,
    &plugins_command,
    &devices_command,
    &allocations_command,
    &pods_command,
    &drivers_command,
    &claims_command,
    &why_command,
    &events_command,
    &orders_command,
    &cordon_command,
    &uncordon_command,
    &taint_command,
    &untaint_command,
    &taints_command,
    &withdraw_command,
    &grace_extend_command,
    &grace_end_command,
    &release_command,
    &end_command,
    &reload_command,
    &log_level_command,
    &checkpoint_verify_command,
    &checkpoint_export_command,
    &checkpoint_import_command,
    &support_command,
    NULL,
};
/* clang-format on */
