/*
 * How often each interesting situation was reached over all seeds: a world that never gets there
 * proves nothing about it.
 */
#ifndef TESTS_SIM_COUNT_H
#define TESTS_SIM_COUNT_H

#include <stddef.h>
#include <stdint.h>

/* So many seeds reach all of them: from then on one that was not reached is a failure. */
#define COUNT_SEEDS_MIN 2000

#define COUNTS(X)                                                                                  \
    X(FORWARDED, "creates forwarded")                                                              \
    X(RESUMED, "starts that go on with creates under way")                                         \
    X(INVALID_ARGUMENT, "refused INVALID_ARGUMENT")                                                \
    X(DEADLINE_EXCEEDED, "refused DEADLINE_EXCEEDED")                                              \
    X(RESOURCE_EXHAUSTED, "refused RESOURCE_EXHAUSTED")                                            \
    X(FAILED_PRECONDITION, "refused FAILED_PRECONDITION")                                          \
    X(ABORTED, "refused ABORTED")                                                                  \
    X(UNAVAILABLE, "refused UNAVAILABLE")                                                          \
    X(HOLD_WOKEN, "holds that ended well")                                                         \
    X(COMMIT_FAILED, "commits that failed")                                                        \
    X(COMMIT_CRASH, "ends of the shim while a commit was under way")                               \
    X(ROWS_LOST, "starts after rows were lost")                                                    \
    X(CALL_FAILED, "calls on plugins that failed")                                                 \
    X(CALL_LATE, "calls on plugins that were not answered in time")                                \
    X(UNHEARD, "creates given up while the runtime had them")                                      \
    X(HOLD_TIMEOUT, "holds that ended with their time")                                            \
    X(HOLD_DEADLINE, "holds that ended with the client's deadline")                                \
    X(HOLD_DRAINED, "holds that ended with the shim")                                              \
    X(PREFERRED, "choices by a preference")                                                        \
    X(ONE_NODE, "choices from one NUMA node of several devices")                                   \
    X(GRACE_GOES_ON, "events in a grace period that began before the shim")                        \
    X(STARTS, "starts of the shim")                                                                \
    X(REBOOTS, "reboots")                                                                          \
    X(DRAINS, "ends of the shim that it was told of before")                                       \
    X(NEVER_STARTED, "containers that were created only when their sandbox ended, and are listed") \
    X(ORPHANS, "sandboxes not ready whose containers run")                                         \
    X(FLICKERS, "sandboxes listed as not ready, and again as ready")                               \
    X(REMADE_OVER_RESTART, "starts of the shim before a new sandbox in place of a dead one")       \
    X(BESIDE_REMADE, "times a device was kept for a pod that waits for its new sandbox")           \
    X(TOLD_OF_GONE, "entries of the kubelet's checkpoint whose pod is gone")                       \
    X(NEVER_CAME, "ends of the time for pods that only the kubelet's checkpoint named")            \
    X(BESIDE_PROMISED, "choices beside what the kubelet gave to others")                           \
    X(VANISHED, "devices that were gone for good")                                                 \
    X(STRANDED, "pods whose device was, and that were replaced")                                   \
    X(FORGOTTEN, "reboots after which the runtime knows no sandbox")                               \
    X(CAME_BACK, "pods that came back after one")                                                  \
    X(LEFT_OUT, "preferences that leave out what containers run with")                             \
    X(TOKEN_GONE, "refusals of a container that had a token, and has none")                        \
    X(CHANGED, "refusals of a changed request")                                                    \
    X(MOVED_OVER, "plugins moved over from the kubelet")                                           \
    X(MOVED_BACK, "plugins moved back")                                                            \
    X(TWINS, "containers made beside one of their name that runs")                                 \
    X(TWIN_REPLACED, "one of two without a token that ended, and their pod was deleted")           \
    X(BARE_KNOWN, "containers without a token of which the shim must know")                        \
    X(BARE_GUARDED, "refusals for what such a container runs with")                                \
    X(RELOADS, "other settings of a shim that ran")                                                \
    X(RELOADS_HELD, "those while a create was held")                                               \
    X(ASKED_WAITS, "answers to why a container waits")                                             \
    X(ASKED_REFUSED, "answers to why one was refused")                                             \
    X(ASKED_HAS, "answers to why one has what it has")                                             \
    X(LISTED_RESOURCES, "resources read in a list, with their devices")                            \
    X(LISTED_HOLDS, "containers listed as having devices")                                         \
    X(LISTED_WAITS, "containers listed as waiting")                                                \
    X(LISTED_PROMISED, "containers listed that only the kubelet knows of")                         \
    X(LISTED_REFUSED, "containers listed as refused")                                              \
    X(CORDONED, "devices cordoned")                                                                \
    X(UNCORDONED, "devices uncordoned")                                                            \
    X(WITHDRAWN, "resources withdrawn")                                                            \
    X(EXTENDED, "grace periods lengthened")                                                        \
    X(ENDED, "grace periods ended")                                                                \
    X(STEER_REFUSED, "refusals of what an operator asks for")                                      \
    X(SET_RESTORED, "starts with what an operator has set")                                        \
    X(KEPT_FROM, "refusals of what is cordoned or withdrawn")                                      \
    X(KEPT_BY, "creates of who has what is cordoned or withdrawn")                                 \
    X(RELEASED, "pods whose devices an operator has released")                                     \
    X(RELEASE_REFUSED, "refusals to release those of a pod that is there")                         \
    X(HASTE, "creates given up just before it is said who has their devices")                      \
    X(DRA_PREPARES, "calls of drivers to prepare a claim")                                         \
    X(DRA_UNPREPARES, "calls of drivers to unprepare one")                                         \
    X(DRA_OWED, "claims whose unprepare was put off")                                              \
    X(DRA_CACHED, "claims that were prepared without their driver")                                \
    X(DRA_FAILED, "claims that a driver refused")                                                  \
    X(DRA_REFUSED, "claims that were refused for want of their driver")                            \
    X(DRA_CANCELLED, "calls for a claim that the kubelet gave up")                                 \
    X(DRA_HUNG, "calls of drivers that were not answered in time")                                 \
    X(DRA_CREATES, "containers asked for with claims")                                             \
    X(DRA_STORED_FIRST, "those that passed once that was stored")                                  \
    X(DRA_USED, "refusals to unprepare what a container may run with")                             \
    X(DRA_API_AWAY, "times the API server went or came back")                                      \
    X(DRA_WIPED, "times the slices of a driver were wiped")                                        \
    X(DRA_WIPE_REFUSED, "times that was refused, or nobody was there for it")                      \
    X(DRA_WIPE_CANCELLED, "times it was taken back, as the driver was")                            \
    X(HOME_MOVED, "drivers that moved to the kubelet")                                             \
    X(HOME_BACK, "those that came back")                                                           \
    X(HOME_BOTH, "drivers at both places at once")                                                 \
    X(HOME_MOVED_RESTORED, "starts that know that one has moved")                                  \
    X(HOME_CALLED_THERE, "calls on one with the kubelet")                                          \
    X(HOME_DIRECT_PREPARES, "claims that the kubelet itself had prepared")                         \
    X(HOME_DIRECT_UNPREPARES, "claims that it had unprepared")                                     \
    X(HOME_PREPARES, "claims beside that prepared")                                                \
    X(HOME_UNPREPARES, "claims beside that unprepared")                                            \
    X(HOME_CLAIM_REFUSED, "that were refused")                                                     \
    X(HOME_OWED, "unprepares beside that put off")                                                 \
    X(HOME_OWED_UNANSWERED, "those of what the driver never told of")                              \
    X(HOME_UNANSWERED, "prepares that were done and not answered")                                 \
    X(HOME_UNANSWERED_UNPREPARE, "unprepares of which that is so")                                 \
    X(HOME_SETTLED, "claims unprepared where the kubelet's books have them not")                   \
    X(HOME_SETTLED_BACK, "those whose driver was back")                                            \
    X(HOME_SETTLE_USED, "claims left alone where they have")                                       \
    X(HOME_KEPT_USED, "looks at what containers run with of a driver that has moved")              \
    X(HOME_FREE, "creates with a device that nobody else has")                                     \
    X(HOME_SHARED, "those with one that is shared, or only looked at")                             \
    X(HOME_OWN, "those of a pod that has it already")                                              \
    X(HOME_UNKNOWN, "those with another's, where the cluster has not said all")                    \
    X(HOME_AMBIGUOUS, "those where the driver's names do not tell")                                \
    X(HOME_NAMED_BEFORE, "claims of which a create names what they had before, too")               \
    X(HOME_PART_REFUSED, "creates refused for a part of what others have too much of")             \
    X(HOME_PART_UNKNOWN, "those that pass, as the cluster has not said all")                       \
    X(HOME_PART_BESIDE, "creates with a part beside others, for which there is enough")            \
    X(HOME_REFUSED, "creates refused for what another pod has")                                    \
    X(HOME_STORED_FIRST, "creates that passed once it was stored who has their claims")            \
    X(HOME_ASTRAY, "unprepares asked for what is allocated no more, under its container")          \
    X(HOME_JOINED, "claims that another pod comes for while they are unprepared")                  \
    X(HOME_USED_SINCE, "those that are prepared anew, since its container came")                   \
    X(HOME_TOGETHER, "claims of which another of the request is called for")                       \
    X(HOME_ANEW, "those for whose container, of which must be known, they have to be")             \
    X(HOME_UNRESOLVED, "containers whose claim's device the runtime does not know")                \
    X(HOME_UNSTORED, "those refused as that could not be stored")                                  \
    X(HOME_KILLED, "shims killed beside drivers that move")                                        \
    X(HOME_KUBELET, "kubelets restarted beside them")                                              \
    X(HOME_COMMIT_FAILED, "commits that failed beside them")                                       \
    X(HOME_RUNS, "pods with claims that run in the end")                                           \
    X(TAINT_SET, "taints that an operator sets")                                                   \
    X(TAINT_TAKEN_BACK, "that he takes back")                                                      \
    X(TAINT_DRY, "that he only asks about")                                                        \
    X(TAINT_RELOADED, "changes of the settings that taint")                                        \
    X(TAINT_ASKED, "pods that are to go for a taint")                                              \
    X(TAINT_BY_HEALTH, "for the health of a device alone")                                         \
    X(TAINT_TOLERATED_FOR_A_TIME, "though they tolerate some")                                     \
    X(TAINT_HELD_BACK, "resources of which too much is unhealthy")                                 \
    X(TAINT_WAITS, "looks at who is due and waits for its turn")                                   \
    X(TAINT_CALLED_OFF, "pods that are not to go any more")                                        \
    X(TAINT_EVICTED, "pods evicted by the API server")                                             \
    X(TAINT_BUDGET, "times a disruption budget was used up")                                       \
    X(TAINT_FORCED, "evictions without regard to it")                                              \
    X(TAINT_STOPPED, "containers stopped for an end")                                              \
    X(TAINT_ENDED_TOO, "ends that an operator asks for beside that")                               \
    X(TAINT_REFUSED, "creates refused for a taint")                                                \
    X(TAINT_REFUSED_ENDED, "creates refused as their pod is ended")                                \
    X(TAINT_SANDBOX_REFUSED, "sandboxes refused as their pod is ended")                            \
    X(TAINT_KEPT, "creates with a device that is NoSchedule")                                      \
    X(TAINT_MADE, "creates forwarded beside taints")                                               \
    X(TAINT_LOST, "plugins that went beside taints")                                               \
    X(TAINT_COMMIT_FAILED, "commits of taints and ends that failed")                               \
    X(TAINT_KILLED, "shims killed beside taints")                                                  \
    X(TAINT_KUBELET, "kubelets restarted beside taints")                                           \
    X(TAINT_OUTDATED, "looks at a taint of an older generation of its pool")                       \
    X(TAINT_RULE_FOR_ALL, "looks at a rule for every device there is")                             \
    X(TAINT_CLAIM_ASKED, "pods that are to go for a device of a claim")                            \
    X(TAINT_EXTENDED, "those of extended resources, whom the cluster's controller does not see")   \
    X(TAINT_BY_CONTAINER, "those known to have it by their container alone")                       \
    X(TAINT_BY_RESERVATION, "those known by the claim's reservation alone")                        \
    X(TAINT_STALE, "times that holders were passed over")                                          \
    X(TAINT_LEFT, "looks at who is left to the cluster's controller")                              \
    X(TAINT_UNTOLD, "looks at who may tolerate it by a claim that was not told")                   \
    X(TAINT_KEPT_UNTOLD, "looks at who was to go before a start, for what was not told since")     \
    X(TAINT_SPARED_BY_CLAIM, "pods that run as their claim tolerates it")                          \
    X(TAINT_CLAIM_REFUSED, "creates refused for a claim's device")                                 \
    X(TAINT_CLAIM_MADE, "creates with devices of claims beside taints")                            \
    X(TAINT_SPARED, "pods of which the shim says that they need not go any more")                  \
    X(TAINT_BY_CLUSTER, "pods that the cluster's controller deletes")                              \
    X(TAINT_AGENT_GOES, "agents that went beside taints")                                          \
    X(TAINT_DOUBTED, "looks at who was to go by what such a one has told")                         \
    X(TAINT_DRIVER_AWAY, "times that the driver went beside taints")                               \
    X(TAINT_GONE, "pods that have gone in the end")                                                \
    X(TAINT_RUNS, "pods that run in the end")                                                      \
    X(DOWN_BEGUN, "shutdowns of the machine that the shim was told of")                            \
    X(DOWN_ANOTHER, "others, told of before the first was over")                                   \
    X(DOWN_CANCELLED, "that were cancelled")                                                       \
    X(DOWN_SWITCHED_OFF, "that the settings switched off")                                         \
    X(DOWN_GIVEN_UP, "that were given up")                                                         \
    X(DOWN_BOOTED, "machines booted anew")                                                         \
    X(DOWN_RESTORED, "starts of the shim in the middle of one")                                    \
    X(DOWN_KILLED, "shims killed beside shutdowns")                                                \
    X(DOWN_COMMIT_FAILED, "commits that failed beside them")                                       \
    X(DOWN_UNKNOWN, "shutdowns without the cluster's priorities")                                  \
    X(DOWN_BY_KUBELET, "that a kubelet does itself")                                               \
    X(DOWN_LEFT, "that it has left in the middle")                                                 \
    X(DOWN_SHORTENED, "whose times were shortened")                                                \
    X(DOWN_UNLISTED, "that were over before the runtime had listed")                               \
    X(DOWN_LATE, "that had no time left")                                                          \
    X(DOWN_OVER, "that came to their end")                                                         \
    X(DOWN_GROUP_OVER, "groups whose pods were over")                                              \
    X(DOWN_GROUP_LATE, "groups whose time was over")                                               \
    X(DOWN_ASKED, "pods that are to end in one")                                                   \
    X(DOWN_ASKED_AGAIN, "those that were to in one before, and have less time")                    \
    X(DOWN_ENDED_TOO, "ends that an operator asks for beside that")                                \
    X(DOWN_STOPPED, "containers stopped for it")                                                   \
    X(DOWN_HOLDERS, "those of pods with devices")                                                  \
    X(DOWN_STOP_FAILED, "stops that failed")                                                       \
    X(DOWN_BOXES, "sandboxes stopped behind their containers")                                     \
    X(DOWN_GOES_ON, "ends that went on after it was cancelled")                                    \
    X(DOWN_CAME_LATE, "sandboxes that ran after it began")                                         \
    X(DOWN_MADE_LATE, "containers that did")                                                       \
    X(DOWN_REFUSED, "creates refused as the machine goes down")                                    \
    X(DOWN_REFUSED_ENDED, "those refused as their pod was ended")                                  \
    X(DOWN_SANDBOX_REFUSED, "sandboxes refused")                                                   \
    X(DOWN_MADE, "containers and sandboxes made beside it")                                        \
    X(DOWN_TAINTED, "devices tainted beside it")                                                   \
    X(DOWN_UNTAINTED, "and not any more")                                                          \
    X(DOWN_EVICTED, "pods evicted beside it")                                                      \
    X(DOWN_EVICTED_IN_ONE, "those while the machine goes down")                                    \
    X(DOWN_SPARED, "those that need not go any more")                                              \
    X(DOWN_STOPPED_FOR_BOTH, "containers stopped for both")                                        \
    X(DOWN_REFUSED_TAINTED, "creates refused for a taint beside it")                               \
    X(DOWN_DRAINED, "shims told to end beside shutdowns")                                          \
    X(DOWN_DRAINED_IN_ONE, "those in the middle of one")                                           \
    X(DOWN_RUNS, "pods that run after it")                                                         \
    X(LIFT_MOVED_OVER, "resources that are published from a start on")                             \
    X(LIFT_MOVED_BACK, "that are not any more")                                                    \
    X(LIFT_CAME, "devices that came beside claims")                                                \
    X(LIFT_WENT, "and went")                                                                       \
    X(LIFT_PLUGIN_UPGRADED, "plugins that came back with other options")                           \
    X(LIFT_SLICES_MADE, "slices made")                                                             \
    X(LIFT_SLICES_CHANGED, "slices changed by themselves")                                         \
    X(LIFT_GENERATIONS, "slices of another generation of their pool")                              \
    X(LIFT_ORDER_AGAIN, "orders to publish that were tried again")                                 \
    X(LIFT_WIPED, "times a kubelet that started deleted all slices")                               \
    X(LIFT_AGENT_AWAY, "agents that went")                                                         \
    X(LIFT_HELD, "looks at a device that a pod has from before")                                   \
    X(LIFT_UNHEALTHY, "at one that is published as unhealthy")                                     \
    X(LIFT_AWAY, "at one whose plugin is away")                                                    \
    X(LIFT_ALLOCATED, "claims that the scheduler allocated by what is published")                  \
    X(LIFT_EXTENDED, "those of extended resources")                                                \
    X(LIFT_GIVEN_ON, "devices taken back by force and given on")                                   \
    X(LIFT_PODS, "pods with such claims")                                                          \
    X(LIFT_PODS_BEFORE, "pods that the kubelet gave devices to")                                   \
    X(LIFT_PREPARED, "claims of published devices prepared")                                       \
    X(LIFT_UNPREPARED, "and unprepared")                                                           \
    X(LIFT_CLAIM_REFUSED, "that were refused")                                                     \
    X(LIFT_MADE, "containers made with such claims")                                               \
    X(LIFT_MADE_BEFORE, "and with what the kubelet gave")                                          \
    X(LIFT_BESIDE, "creates by a claim beside who has that from before, or the other way round")   \
    X(LIFT_BESIDE_CLAIM, "creates by a claim whose device another one's container has")            \
    X(LIFT_REFUSED, "creates of both refused")                                                     \
    X(LIFT_REFUSED_CLAIM, "those for what another claim's container has")                          \
    X(LIFT_KILLED, "shims killed beside published resources")                                      \
    X(LIFT_LOST, "checkpoints lost beside them")                                                   \
    X(LIFT_COMMIT_FAILED, "commits that failed beside them")                                       \
    X(LIFT_KUBELET, "kubelets restarted beside them")                                              \
    X(LIFT_RUNTIME, "runtimes restarted beside them")                                              \
    X(LIFT_BOOTED, "nodes booted beside them")                                                     \
    X(LIFT_PARTED, "pods whose device was given to two, each by a right of its own")               \
    X(LIFT_PUBLISHED, "resources that are published in the end")                                   \
    X(LIFT_RUNS, "pods with such claims that run in the end")                                      \
    X(LIFT_RUNS_BEFORE, "pods that run with what the kubelet gave")                                \
    X(REPLACE_TOLD, "containers made with others than the kubelet gave")                           \
    X(REPLACE_CHOSEN, "containers made with others than were chosen before")                       \
    X(REPLACE_SOME, "of which some stayed")                                                        \
    X(REPLACE_AGAIN, "of which others were lost before")                                           \
    X(REPLACE_BEHIND_INIT, "made behind an init container")                                        \
    X(REPLACE_BACK, "made as before though what was lost is back")                                 \
    X(REPLACE_TWO, "made with others, since another's has what the kubelet gave")                  \
    X(REPLACE_WAITED, "refused while the kubelet lets go")                                         \
    X(REPLACE_NO_OTHER, "refused since no other is free")                                          \
    X(REPLACE_KILLED, "shims killed beside them")                                                  \
    X(REPLACE_KILLED_BETWEEN, "those while the kubelet lets go")                                   \
    X(REPLACE_LOST, "checkpoints lost beside lost devices")                                        \
    X(REPLACE_KUBELET, "kubelets restarted beside lost devices")                                   \
    X(REPLACE_BY_CDI, "containers made with CDI devices alone")                                    \
    X(REPLACE_CDI_UNREAD, "refused since the runtime does not read those")                         \
    X(REPLACE_CDI_UNHEARD, "refused since the runtime has not said whether it does")               \
    X(REPLACE_RUNS, "pods that run with others in the end")

enum count {
#define X(name, words) COUNT_##name,
    COUNTS(X)
#undef X
        COUNTS_LEN
};

void count_add(enum count count);
/* The table, a line each. */
void counts_print(void);
/* How many are 0. */
size_t counts_missing(void);

#endif
