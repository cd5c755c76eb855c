/*
 * What the device manager promises in numbers: how long it waits, keeps and remembers, and the gRPC
 * codes of its refusals. Written down here once more: a judge that took them from what it judges
 * would follow whatever became of them there.
 */
#ifndef TESTS_SIM_PROMISE_H
#define TESTS_SIM_PROMISE_H

/* Status codes and their use in gRPC. */
enum {
    CODE_UNKNOWN = 2,
    CODE_INVALID_ARGUMENT = 3,
    CODE_DEADLINE_EXCEEDED = 4,
    CODE_NOT_FOUND = 5,
    CODE_RESOURCE_EXHAUSTED = 8,
    CODE_FAILED_PRECONDITION = 9,
    CODE_ABORTED = 10,
    CODE_UNAVAILABLE = 14,
};

/* The words of a refusal: half of what gRPC status texts may have. */
#define TEXT_BYTES_MAX 512
/* A create is held no longer, whatever is configured, and decided so long before its deadline. */
#define HOLD_MS_MAX 60000
#define DEADLINE_MARGIN_MS 200
/* A call whose outcome nobody heard may take effect so much later. */
#define OUTCOME_MS 4000
/* That a container runs, said when nobody waits any more, counts so long. */
#define LATE_ANSWER_MS 30000
/* Whether it does is asked again so long after it was not answered. */
#define CHECK_AGAIN_MS 1000
/* A plugin may think so long about a preference. */
#define PREFER_TIMEOUT_MS 500
/* A plugin that is connected counts as stopped after so long without a list. */
#define FIRST_LIST_MS 30000
/* An operator who releases a pod waits so long for the runtime. */
#define RELEASE_LIST_MS 5000
/* What could not be stored is tried again after so long. */
#define COMMIT_RETRY_MS_MAX 30000
/* That a sandbox was stopped is stored within so long, and a commit's time. */
#define STOPPED_STORE_MS 10000
/* A pod that only the kubelet's checkpoint names may come so long; after a reboot, of which the
 * runtime knows nothing, so long if the file still names it. */
#define POD_COMES_MS 300000
#define POD_RETURNS_MS 3600000
/* A driver is waited for so long. */
#define CLAIM_HOLD_MS 40000
/* At which its driver has ended so often, one time after the other, it is refused. */
#define CLAIM_LOST_MAX 3
/* A container that was asked for with a claim may come so long. */
#define CLAIM_USER_COMES_MS 10000
/* The pod of a dead sandbox that was stopped may get another so long. */
#define SANDBOX_REMADE_MS 300000

#endif
