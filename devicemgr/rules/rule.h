/*
 * What a rule includes, after all else: the state, to be read.
 *
 * A rule is a function of a const state. It answers, with a value; whoever asked acts on that. The
 * compiler sees to it: what takes a state, a table or a queue to change it cannot be given a const
 * one, and what is found in a const table is const. What stands in a list there is not, in C: so
 * what takes a thing to change it is named below, and may not be named by a rule.
 * (tests/integration/test_structure.py sees to both.)
 */
#ifndef DEVICEMGR_RULES_RULE_H
#define DEVICEMGR_RULES_RULE_H

#include "devicemgr/books/state.h"
#include "devicemgr/rules/look.h"

#ifndef __clang__
#pragma GCC diagnostic error "-Wdiscarded-qualifiers"
#endif

/* clang-format off */
#pragma GCC poison allocation_carry allocation_confirm allocation_conflict_once
#pragma GCC poison allocation_drop_lives allocation_forget_before allocation_put_in allocation_queue
#pragma GCC poison allocation_replace allocation_revert allocation_set_answered allocation_set_asked
#pragma GCC poison allocation_set_changed allocation_set_claimed allocation_set_create
#pragma GCC poison allocation_set_ended allocation_set_epoch allocation_set_exited
#pragma GCC poison allocation_set_found allocation_set_fresh allocation_set_idle
#pragma GCC poison allocation_set_known allocation_set_live allocation_set_own_choice
#pragma GCC poison allocation_set_replaced allocation_set_restored allocation_set_said_to_run
#pragma GCC poison allocation_set_sandbox_closed allocation_set_sandbox_ended allocation_set_shown
#pragma GCC poison allocation_set_stale allocation_set_tentative allocation_set_token
#pragma GCC poison allocation_set_unanswered allocation_set_unknown allocation_take_out
#pragma GCC poison allocations_remove
#pragma GCC poison claim_add_former claim_add_user claim_anew claim_carry claim_committed
#pragma GCC poison claim_drop_user claim_forget_allocation claim_note_answered claim_note_asked
#pragma GCC poison claim_note_lost claim_set_allocation claim_set_alone claim_set_doubted
#pragma GCC poison claim_set_former claim_set_lapsed claim_set_local claim_set_moved
#pragma GCC poison claim_set_prepared claim_set_restored claim_set_state claim_set_unstored
#pragma GCC poison claim_tell_held_once
#pragma GCC poison claims_remove claims_renew claims_set_response
#pragma GCC poison devices_fini devices_set_since devices_update
#pragma GCC poison driver_set_moved driver_set_wiped
#pragma GCC poison drivers_add_elsewhere drivers_add_instance drivers_remove drivers_set_why
#pragma GCC poison end_evict_cancel end_evict_order end_stop_sooner
#pragma GCC poison ending_ask ending_drop_ask ending_set_due ending_set_left ending_set_pod_grace
#pragma GCC poison ending_set_restored ending_set_seen ending_set_sidecars ending_set_state
#pragma GCC poison ending_set_static endings_remove
#pragma GCC poison endpoint_dial endpoint_fini endpoint_forget_registration endpoint_move
#pragma GCC poison endpoint_put_off endpoint_restore endpoint_set_disconnected endpoint_set_options
#pragma GCC poison endpoint_set_registration endpoint_set_state endpoint_set_stop_stored
#pragma GCC poison endpoint_stop endpoint_take_put_off endpoint_take_put_off_registration
#pragma GCC poison endpoint_take_registration
#pragma GCC poison kubelet_note_token
#pragma GCC poison ledger_drop_allocation ledger_drop_pod ledger_outcome_unknown
#pragma GCC poison ledger_remove_allocation ledger_replace_allocation ledger_revert_allocation
#pragma GCC poison order_carry order_end
#pragma GCC poison ordered_committed
#pragma GCC poison orders_confirm orders_remove orders_revert
#pragma GCC poison plugin_answer plugin_answer_all plugin_answer_failed plugin_dial plugin_hang_up
#pragma GCC poison plugin_log_list plugin_remove
#pragma GCC poison pod_ignore_once pod_note_token pod_set_boot pod_set_remembers pod_set_removed
#pragma GCC poison pod_set_static pod_set_tolerations
#pragma GCC poison pods_ensure_sandbox pods_remove pods_remove_sandbox
#pragma GCC poison record_restore_resource record_restore_shutdown
#pragma GCC poison registration_dial_waiting
#pragma GCC poison resource_list resource_planting_once resource_set_builtin resource_set_generation
#pragma GCC poison resource_unread_once
#pragma GCC poison resources_add resources_edit resources_fini resources_mutable resources_remove
#pragma GCC poison sandbox_set_doubted sandbox_set_epoch sandbox_set_open sandbox_set_ran
#pragma GCC poison sandbox_set_ready sandbox_set_remade_by sandbox_set_stopped sandbox_set_stopping
#pragma GCC poison shutdown_add_pod shutdown_begin shutdown_end shutdown_fini
#pragma GCC poison shutdown_set_by_kubelet shutdown_set_group shutdown_set_groups shutdown_set_known
#pragma GCC poison shutdown_set_left shutdown_set_limit shutdown_set_over shutdown_set_restored
#pragma GCC poison shutdown_set_state shutdown_shorten
#pragma GCC poison tainted_note_pod
#pragma GCC poison task_ensure task_forget_claim task_note_local task_note_moved task_users_add
#pragma GCC poison task_users_ended task_users_listed task_users_renew_claim
/* clang-format on */

#endif
