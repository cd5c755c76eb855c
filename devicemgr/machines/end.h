/*
 * The one authority over ending pods: all that want one to end (an operator, eviction for a taint,
 * the node's shutdown) ask here, and each is told once. things/ending.h has the picture.
 *
 * *Where there is a cluster* (settings.cluster) the API server is asked to evict the pod, as long
 * as it takes, and the kubelet ends it. *Here*, without one, for static pods, and for who insists,
 * each of its containers is stopped through the runtime with the grace that is left, and nothing of
 * the pod is made any more until the last who asked for it takes that back. Nothing is ever
 * removed: with the containers their exit codes would go, and the kubelet would start even a pod
 * anew that is never to be restarted (pkg/kubelet/kuberuntime/kuberuntime_manager.go).
 *
 * Who asks for the same pod later makes the grace shorter, or not: a container that is being
 * stopped is told so anew when it is shorter, also when only the pod's own is, which its containers
 * say. (A runtime has two stops of one container go on beside each other: the first to run out
 * kills. A longer one would change nothing.)
 *
 * What is asked for is stored before anything is sent, if it can be, and what came of it before
 * anybody is told. What runs is always the runtime's own word: containers that a list shows are
 * stopped, whoever made them, and when; a stop that fails is followed by another list.
 *
 * When the machine goes down the pod's sandbox is stopped behind its containers, as the kubelet
 * does; else it stays.
 *
 * Four files: end.c, who asks and is told, and the states; it calls end_stop.c, the containers,
 * end_sandbox.c, the sandboxes, and end_evict.c, the orders to the cluster.
 */
#ifndef DEVICEMGR_MACHINES_END_H
#define DEVICEMGR_MACHINES_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/ports.h"
#include "devicemgr/things/ending.h"

struct devicemgr_container;
struct state;
struct text;

struct end_request {
    enum end_asker asker;
    uint64_t token;    /* the asker's own; the same for the same pod is the same request */
    uint64_t grace_ms; /* ENDING_POD_GRACE: the pod's own. Less than 1 s counts as that */
    bool or_less;      /* or the pod's own, if that is shorter */
    bool force_local;  /* here, without the API server */
    bool once;         /* whose end has come is asked for again without a word to anybody */
    const char *why;   /* a sentence's part: "device gpu0 has the taint k=v:NoExecute" */
    uint64_t at_s;     /* when, by a clock that is not looked at here; 0: not said */
};

/* A StopContainer that is under way, or waits for its turn. */
struct end_stop {
    uint64_t op;
    char *container_id;
    char *pod_uid;
    size_t turn;     /* it is stopped behind those of its pod that have a lower one; 0: at once */
    uint64_t due_ms; /* when it kills; 0: it waits for its turn, and was not sent yet */
    UT_hash_handle hh;
};

/* A StopPodSandbox that is under way. It is not taken back: half of it would be worse than all. */
struct end_sandbox {
    uint64_t op;
    char *sandbox_id;
    char *pod_uid;
    UT_hash_handle hh;
};

/* An operator who waits for a commit. */
struct end_waiter {
    uint64_t number;
    char *pod_uid;
    bool taken_back; /* that is what was asked for */
    uint64_t commit; /* 0: none yet */
    char *text;      /* of what was taken back */
    struct end_waiter *prev, *next;
};

struct end_counts {
    uint64_t asked;        /* requests, since the start */
    uint64_t stops;        /* StopContainer calls */
    uint64_t stops_failed; /* of them */
    uint64_t evictions;    /* orders to the cluster */
    uint64_t ended;        /* pods that came to their end */
};

struct ends {
    struct state *state;
    bool restored;                 /* all rows are in: before that nothing is sent */
    bool unreached;                /* the cluster cannot be asked */
    struct end_stop *stops;        /* by op */
    struct end_sandbox *sandboxes; /* by op */
    struct end_waiter *waiters;
    size_t waiters_len;
    struct end_counts counts;
    uint64_t listed_epoch; /* of the last list that was read */
    uint64_t pause_ms;     /* before the list that follows a failed stop; doubled each time */
    /* Of what would be stopped if it were started: how many, as listed last; before the next list,
     * doubled each time. */
    size_t created;
    uint64_t created_pause_ms;
};

void ends_fini(struct ends *ends);

/* `pod_uid` is to end. That it has is told by an event, once it is stored, unless it is cancelled
 * before; to one who asks again with the same token once more at most. Nothing is done where there
 * are too many. All is copied. */
void ends_ask(struct ends *ends, const char *pod_uid, const struct end_request *request);
/* It does not want that any more. The last one's pod may be made again, and stops under way are
 * taken back. */
void ends_cancel(struct ends *ends, const char *pod_uid, enum end_asker asker, uint64_t token);
/* Whether the pod is to be evicted still is not known any more: if the cluster is to end it, for
 * nobody else, nothing is sent for that until it is. */
void ends_doubt(struct ends *ends, const char *pod_uid);
/* The eviction that an earlier process has asked for, or that was doubted, is so still: it goes on.
 * Without effect for any other. */
void ends_confirm(struct ends *ends, const char *pod_uid);

/* ---- the operator's, answered by the port `steered` when it is durable ---- */

void ends_order(struct ends *ends, uint64_t number, const char *pod_uid,
                const struct end_request *request);
/* False: nothing is to be taken back. */
bool ends_take_back(struct ends *ends, uint64_t number, const char *pod_uid);

/* ---- events ---- */

/* All rows are in: what was begun goes on. */
void ends_restored(struct ends *ends);
/* A list of the runtime was taken. */
void ends_listed(struct ends *ends, const struct devicemgr_container *containers,
                 size_t containers_len);
/* Pods may have gone. */
void ends_look(struct ends *ends);
/* devicemgr_container_stopped(). The container that has ended by it, for the caller to free; NULL:
 * none. */
char *ends_stopped(struct ends *ends, uint64_t op, int code, const char *message)
    __attribute__((warn_unused_result));
/* devicemgr_sandbox_stop_ended(). What it was, for end_sandbox_free(); NULL: nobody waits for
 * it. */
struct end_sandbox *ends_sandbox_stopped(struct ends *ends, uint64_t op, int code,
                                         const char *message) __attribute__((warn_unused_result));
void end_sandbox_free(struct end_sandbox *stop);
/* devicemgr_cluster_reached() */
void ends_reached(struct ends *ends, bool reached);
/* devicemgr_pod_evicted() */
void ends_evicted(struct ends *ends, uint64_t order, enum devicemgr_evicted outcome);
/* A commit takes what is to be stored; it is over. */
void ends_commit_began(struct ends *ends, uint64_t commit);
void ends_committed(struct ends *ends, uint64_t commit, const char *error);
/* Orders anew whose order may be forced by now. */
void ends_tick(struct ends *ends);
uint64_t ends_next_ms(const struct ends *ends);

/* ---- between the files of it ---- */

/* The containers of pods that are STOPPING, or STOPPED, that a list shows to run: those that are
 * not being stopped already are, those of pods that have devices first. */
void end_stop_listed(struct ends *ends, const struct devicemgr_container *containers,
                     size_t containers_len);
/* The stops under way of the pod are told that they have less time, if they have. */
void end_stop_sooner(struct ends *ends, struct ending *ending);
/* Nothing is to be stopped any more. */
void end_stop_cancel(struct ends *ends, const struct ending *ending);
/* Or waits for its turn. */
bool end_stop_under_way(const struct ends *ends, const struct ending *ending);
/* Whose turn has come are stopped: something was, or time has passed. */
void end_stop_turns(struct ends *ends);
/* When one's turn comes by time alone; UINT64_MAX: no one's. */
uint64_t end_stop_next_ms(const struct ends *ends);
/* It is over; for end_stop_free(). NULL: nobody waits for it. */
struct end_stop *end_stop_take(struct ends *ends, uint64_t op);
void end_stop_free(struct end_stop *stop);

/* The sandboxes of a pod that is STOPPED for the machine's shutdown, those that are ready and not
 * being stopped. */
void end_sandbox_stop(struct ends *ends, const struct ending *ending);
/* It is over; for end_sandbox_free(). NULL: nobody waits for it. */
struct end_sandbox *end_sandbox_take(struct ends *ends, uint64_t op);

/* The order for it, unless it is under way as it is to be. */
void end_evict_order(struct ends *ends, struct ending *ending);
void end_evict_cancel(struct ends *ends, struct ending *ending);

#endif
