/*
 * What becomes of allocations and pods by anybody's doing; and what must be told to whom when they
 * change.
 */
#ifndef DEVICEMGR_BOOKS_LEDGER_H
#define DEVICEMGR_BOOKS_LEDGER_H

struct allocation;
struct ids;
struct pod;
struct request;
struct state;

/* What is true of the pod, its sandboxes and its containers has changed. */
void ledger_pod_changed(struct state *state, const char *pod_uid);
/* Its row differs from it; only pods that hold something have one. */
void ledger_touch_pod(struct state *state, const struct pod *pod);
/* All rows are in: which of those of pods differ from what there is. */
void ledger_restored(struct state *state);
/* Looks at the allocations that have changed: wakes whom that concerns. */
void ledger_tell_changes(struct state *state);
/* A container of the allocation may be made in the sandbox yet, though nobody waits for it. */
void ledger_outcome_unknown(struct state *state, struct allocation *allocation,
                            const char *sandbox_id);
/* Removes an allocation from table and checkpoint. */
void ledger_drop_allocation(struct state *state, struct allocation *allocation);
/* Removes it from the table only. */
void ledger_remove_allocation(struct state *state, struct allocation *allocation);
/* allocation_replace(), allocation_revert(). What another has by then of what it had before is not
 * had again: then it is dropped. */
void ledger_replace_allocation(struct state *state, struct allocation *allocation,
                               const struct ids *ids, const struct ids *asked);
void ledger_revert_allocation(struct state *state, struct allocation *allocation);
/* It is to be stored. Who had of its devices before, and is not stored with others yet, has them no
 * more: the next commit deletes that row, or a daemon that dies then would find both. */
void ledger_forget_before(struct state *state, const struct allocation *allocation);
/* A container was made with the resources of `has` and no other: what the shim chose for those of
 * its name before it, which have ended, of a resource that is not among them is free. */
void ledger_release_leftovers(struct state *state, const char *pod_uid, const char *container,
                              const struct request *has);
/* Removes what the pod holds; it may be one that is not known. */
void ledger_drop_allocations(struct state *state, const char *pod_uid);
/* Removes a pod with all that it holds. */
void ledger_drop_pod(struct state *state, struct pod *pod);

#endif
