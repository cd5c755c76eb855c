/*
 * The commands there are. Each is defined by the file of its name.
 */
#ifndef SHIM_CTL_COMMANDS_H
#define SHIM_CTL_COMMANDS_H

#include "shim/ctl/command.h"

/* In the order of --help; NULL ends them. */
extern const struct command *const commands[];

extern const struct command status_command;
extern const struct command why_command;
extern const struct command resources_command;
extern const struct command plugins_command;
extern const struct command devices_command;
extern const struct command allocations_command;
extern const struct command pods_command;
extern const struct command drivers_command;
extern const struct command claims_command;
extern const struct command events_command;
extern const struct command orders_command;
extern const struct command cordon_command;
extern const struct command taint_command;
extern const struct command untaint_command;
extern const struct command taints_command;
extern const struct command uncordon_command;
extern const struct command withdraw_command;
extern const struct command grace_extend_command;
extern const struct command grace_end_command;
extern const struct command release_command;
extern const struct command end_command;
extern const struct command endings_command;
extern const struct command deviceclass_command;
extern const struct command reload_command;
extern const struct command log_level_command;
extern const struct command checkpoint_verify_command;
extern const struct command checkpoint_export_command;
extern const struct command checkpoint_import_command;
extern const struct command support_command;
extern const struct command node_enable_command;
extern const struct command node_disable_command;

#endif
