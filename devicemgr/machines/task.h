/*
 * What is being done for a claim: the kubelet's requests to prepare and unprepare it, each in its
 * turn, and what is still owed to its driver. There is a task for each claim of which something is
 * asked, or owed.
 *
 *                    the row of it      the driver's       the row of what
 *                     is durable          answer           came of it is durable
 *   IDLE ──▶ STORING ───────────▶ CALLING ───────▶ KEEPING ───────────────────▶ IDLE
 *
 * IDLE with a claimant: that waits, for the driver, or for what is owed to it. STORING is left out
 * where the row says so already, and for a claim without one. A driver that goes leads from CALLING
 * back to IDLE: it is asked again.
 *
 * A claimant is answered when what it asked for is done (those of the same kind behind it, too),
 * refused by the driver, or after CLAIM_HOLD_MS; but not while its call is under way, which has an
 * end of its own. One at which its driver has ended CLAIM_LOST_MAX times is refused, too: it may be
 * what ends it. Who asks for a prepare while a call of it is under way has another one made: the
 * claim may have been allocated anew, and the driver have looked before that.
 *
 * What is owed has a task of its own, with or without a claimant: once its driver is back it is
 * told to unprepare it, before anything new is prepared there. It is told again for ever, less and
 * less often, and until then nothing is prepared of the same pools.
 *
 * What is asked for in one request (its batch) is called for in one devicemgr_run() where nothing
 * keeps one of its claims longer than another, so that the driver is asked for them together. For
 * what is owed, be it one of them, they wait for each other.
 *
 * A claim that a container was made with is not unprepared before the runtime has been seen to run
 * it no more: the kubelet may ask for that though another pod still uses it. One that is made while
 * its driver is at that has it prepared anew, whatever that answers, if it does; until that is done
 * the driver is asked each time that it is back.
 *
 * A runtime that cannot resolve a claim's devices has it prepared anew: by a claimant of our own,
 * behind who is there already.
 *
 * A driver that has moved to the kubelet (driver.h) is asked there for what was asked for here and
 * is not done yet, and told there what it is owed, which the kubelet takes for done. All else of it
 * is let go of, once no container runs with it: the kubelet has it in its own books, and unprepares
 * it there.
 *
 * Eight files: tasks.c, the table and who asks; task.c, which is called by it, what is done;
 * task_owed.c, task_users.c, task_moved.c, task_answer.c and task_why.c, which both call, what is
 * owed, who uses a claim, what is let go of, how requests begin and end, and what they wait for;
 * and task_find.c, which they all do.
 */
#ifndef DEVICEMGR_MACHINES_TASK_H
#define DEVICEMGR_MACHINES_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/ports.h"
#include "devicemgr/things/claim.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/words/claim.h"

struct devicemgr_claim;
struct devicemgr_container;
struct devicemgr_create;
struct devicemgr_claim_device;
struct look;
struct state;

enum task_phase {
    TASK_IDLE,
    TASK_STORING,
    TASK_CALLING,
    TASK_KEEPING,
};

enum task_kind {
    TASK_PREPARE,
    TASK_UNPREPARE,
};

/* Who asks. */
struct claimant {
    uint64_t number; /* the caller's; 0: we do, who are told by the log */
    struct devicemgr_batch batch;
    enum task_kind kind;
    uint64_t turn; /* who came later has a higher one, whatever claim it is for */
    uint64_t since_ms;
    bool called; /* a call was made for it, which has not failed it */
    struct task *task;
    struct claimant *prev, *next;         /* of the task */
    struct claimant *all_prev, *all_next; /* of all, who came first first */
    UT_hash_handle hh;
};

struct task {
    struct claim *claim;
    enum task_phase phase;
    enum task_kind kind;        /* but in IDLE: what is being done */
    enum claim_state before;    /* but in IDLE: what the claim was */
    bool owed;                  /* CALLING: it is what is owed, */
    bool settles;               /* and the kubelet may have the claim prepared by itself */
    bool settles_asked;         /* which asks for it here, too */
    uint64_t commit;            /* STORING, KEEPING: which carries it; 0: none yet */
    uint64_t call;              /* CALLING */
    uint64_t instance;          /* likewise: of whom */
    uint64_t answered_ms;       /* KEEPING: since when */
    bool anew;                  /* KEEPING: what was prepared already */
    struct claimant *claimants; /* who came first first */
    /* An unprepare waits for a list of the runtime, that shows who uses the claim: */
    bool listing, listed;
    uint64_t epoch; /* newer than this one */
    /* Of what is owed, since its driver is back: */
    bool tried;
    bool in_use;            /* then the kubelet had it in its books, */
    uint64_t looked;        /* that were looked at after this turn */
    uint64_t retry_ms;      /* not before then */
    uint64_t pause_ms;      /* the last one */
    char *failed;           /* what the driver said of it last; NULL: nothing */
    UT_hash_handle hh;      /* by claim */
    UT_hash_handle hh_call; /* by call */
};

/* Requests that were answered, since the start: by TASK_PREPARE, TASK_UNPREPARE. */
struct task_counts {
    uint64_t done[2];
    uint64_t put_off; /* unprepares, which are owed */
    uint64_t refused[2][CLAIM_REFUSAL_KINDS];
};

struct tasks {
    struct state *state;
    struct task_counts counts;
    bool restored;  /* all claims are known */
    bool doubt;     /* or perhaps not: rows were lost */
    bool owed_less; /* one that was owed has been tried: others may go on */
    bool given_up;  /* of a claim, or more */
    bool asked;     /* some ask that were not looked at yet: tasks_asked() */
    uint64_t turn;  /* the last one */
    struct task *by_claim;
    struct task *by_call;
    struct claimant *by_number;
    struct claimant *first;
};

void tasks_fini(struct tasks *tasks);

/* devicemgr_claim_prepare(), devicemgr_claim_unprepare(). Claims of one request are looked at by
 * tasks_asked(), once all are there: what keeps one of them keeps the others. */
void tasks_ask(struct tasks *tasks, enum task_kind kind, uint64_t number,
               struct devicemgr_batch batch, const char *driver,
               const struct devicemgr_claim *claim);
void tasks_asked(struct tasks *tasks);
/* devicemgr_claim_cancelled() */
void tasks_cancelled(struct tasks *tasks, uint64_t number);
/* All rows are in; `lost`: not all that there were. */
void tasks_restored(struct tasks *tasks, bool lost);
/* A container is asked for, and not refused for its claims; what the rule has found besides. */
void tasks_created(struct tasks *tasks, const struct devicemgr_create *request,
                   const struct look *look);
/* The runtime has made it, or nobody hears whether it does: the container is there from now on, or
 * comes. */
void tasks_made(struct tasks *tasks, const char *sandbox_id, const char *container);
/* devicemgr_create_refused() */
void tasks_create_refused(struct tasks *tasks, const char *words);
/* All containers in it have ended. */
void tasks_sandbox_ended(struct tasks *tasks, const char *sandbox_id);
/* The runtime has listed its containers. */
void tasks_listed(struct tasks *tasks, const struct devicemgr_container *containers, size_t len);
/* The shim is about to end. */
void tasks_drain(struct tasks *tasks);
/* What is known of slices has changed. */
void tasks_slices_changed(struct tasks *tasks);
/* Likewise of the allocation of the claims of this uid: devicemgr_claim_allocation() */
void tasks_allocation(struct tasks *tasks, const char *uid, bool allocated,
                      const struct devicemgr_claim_device *devices, size_t devices_len);
/* A driver has moved, or nobody may use some claim any more. */
void tasks_let_go(struct tasks *tasks);
/* How many requests for claims of the driver wait. */
size_t tasks_asks(const struct tasks *tasks, const char *driver);
/* A driver has come. */
void tasks_driver_came(struct tasks *tasks, const char *driver);
/* An instance's connection is over; the driver knows that already. */
void tasks_instance_lost(struct tasks *tasks, uint64_t instance);
/* devicemgr_claim_answered() */
void tasks_answered(struct tasks *tasks, uint64_t call, int code, const char *message,
                    const void *response, size_t response_bytes);
/* devicemgr_claim_in_use() */
void tasks_in_use(struct tasks *tasks, uint64_t call);
/* A commit takes what is to be stored; it is over. */
void tasks_commit_began(struct tasks *tasks);
void tasks_committed(struct tasks *tasks, uint64_t commit, const char *error);
void tasks_tick(struct tasks *tasks);
uint64_t tasks_next_ms(const struct tasks *tasks);

/* ---- task.c, for tasks.c ---- */

/* If the claim's devices are seen to be this node's alone, that is remembered. */
void task_note_local(struct tasks *tasks, struct claim *claim);
/* Does what can be done now. */
void task_advance(struct tasks *tasks, struct task *task);
/* Its call is over: with an answer; or with the connection. */
void task_answered(struct tasks *tasks, struct task *task, int code, const char *message,
                   const void *response, size_t response_bytes);
void task_unanswered(struct tasks *tasks, struct task *task);
/* Or it was not made, since the kubelet has the claim prepared. */
void task_in_use(struct tasks *tasks, struct task *task);
/* The commit that carries it is over. */
void task_committed(struct tasks *tasks, struct task *task, const char *error);

/* ---- task_why.c, for both, and who asks why ---- */

/* When it is refused, whatever it waits for; UINT64_MAX: not while its call is under way. */
uint64_t task_limit_ms(const struct tasks *tasks, const struct claimant *claimant);
/* What it waits for: what it is refused with if its time is over, unless its driver is being asked.
 * `words` may have some of it. */
struct claim_refusal task_why(const struct tasks *tasks, const struct claimant *claimant,
                              struct text *words);
/* The same of what is owed, and nobody waits for. */
struct claim_refusal task_why_owed(const struct task *task);
/* Ends those whose time is over. */
void task_expire(struct tasks *tasks, struct task *task);

/* ---- task_answer.c, for both ---- */

/* It is over; for nobody. */
void task_free(struct tasks *tasks, struct task *task);
/* Nothing is left of the claim, of which no task is. */
void task_forget_claim(struct state *state, struct claim *claim);
/* The claim's allocation changes: whoever waits for a device that it only looks at is looked at. */
void task_note_looks(struct state *state, const struct claim *claim);
/* How many requests wait for it; `task` NULL: none. */
size_t task_asks(const struct task *task);
/* The claimant's request ends; `code` 0 of an unprepare. */
void task_answer(struct state *state, const struct claimant *claimant, int code,
                 const char *message);
void task_refuse(struct tasks *tasks, uint64_t number, const struct claim_refusal *refusal);
/* What has come to pass with it, for who watches; `again`: it may be nothing new. */
void task_tell(const struct tasks *tasks, const struct task *task, enum devicemgr_event_kind kind,
               bool again);
/* NULL: there is none of that number. */
struct claimant *claimant_edit(struct tasks *tasks, uint64_t number);
/* Behind those that there are, of no batch; `number`: 0, or not there yet. */
struct claimant *claimant_add(struct tasks *tasks, struct task *task, enum task_kind kind,
                              uint64_t number);
void claimant_free(struct tasks *tasks, struct claimant *claimant);
/* Whether who came first has asked for this. */
bool task_is_asked(const struct task *task, enum task_kind kind);
/* The end of all those who have, as far as nobody before them has asked for something else: for
 * what is being done (`kind` of the task), or for the one that the name says. */
void task_refuse_all(struct tasks *tasks, struct task *task, enum claim_refusal_kind kind,
                     const char *words);
/* In the driver's own words. */
void task_fail_all(struct tasks *tasks, struct task *task, int code, const char *message);
void task_answer_prepared(struct tasks *tasks, struct task *task);
/* Only those for whom the call was made. */
void task_answer_called(struct tasks *tasks, struct task *task);
void task_answer_unprepared(struct tasks *tasks, struct task *task);

/* ---- task_users.c, for both ---- */

/* Whether somebody may use the claim, which is to be unprepared, as far as it is known; then who,
 * for people. */
bool task_users_say(const struct claim *claim, struct text *text);
bool task_users_have(const struct claim *claim);
/* Whether an unprepare has to wait for the runtime's list, or is refused by it. */
bool task_users_wait(struct tasks *tasks, struct task *task);
/* Its driver has unprepared the claim, which somebody may use: who has asked for that is refused,
 * and it is to be prepared anew. */
void task_users_keep(struct tasks *tasks, struct task *task);
/* Its driver was told to unprepare it, and may have: if nobody asks for anything, and somebody may
 * use it, it is to be prepared anew. */
void task_users_renew(struct tasks *tasks, struct task *task);
/* The same of a claim for which nothing is being done, and that it was not asked to prepare anew to
 * the end: it was away for too long, or has failed; it could not be stored; or an earlier process
 * has ended. The kubelet takes it for prepared. */
void task_users_renew_claim(struct tasks *tasks, struct claim *claim);
/* Whether its time begins anew when it is over and the driver is there, as where what is owed fails
 * before it: we have asked for that ourselves, it is to be done still, and nobody waits behind. */
bool task_users_wait_on(const struct claimant *claimant);
/* That it is sent could not be stored: if we have asked for that ourselves, we do so again when
 * something could be. */
void task_users_give_up(struct tasks *tasks, struct task *task);
/* The request's container uses it, if it has CDI devices of it; whether it has. */
bool task_users_add(struct tasks *tasks, struct claim *claim,
                    const struct devicemgr_create *request);
/* Those in the sandbox have ended; or those that the list does not show, nor may come yet. */
void task_users_ended(struct tasks *tasks, struct claim *claim, const char *sandbox_id);
void task_users_listed(struct tasks *tasks, struct claim *claim,
                       const struct devicemgr_container *containers, size_t len);

/* ---- task_moved.c, for both ---- */

/* Of one whose driver has moved that is remembered: the kubelet may have prepared it again, or
 * unprepared it, by itself. */
void task_note_moved(struct tasks *tasks, struct claim *claim);
/* The kubelet asks for it here, or is about to be told: unless its driver has moved it is not the
 * kubelet's alone any more. Whether that is news, which is to be stored. */
bool task_note_here(const struct tasks *tasks, struct claim *claim);
/* Its driver was with the kubelet at some time, which may have had it prepared. */
bool task_was_elsewhere(const struct tasks *tasks, const struct claim *claim);
/* The claim is the kubelet's, and nothing is left to be done for it here. */
bool task_is_the_kubelets(const struct tasks *tasks, const struct claim *claim);

/* ---- task_find.c, for all ---- */

/* NULL: nothing is being done for the claim. */
const struct task *task_find(const struct tasks *tasks, const struct claim *claim);
/* The same, to be changed. */
struct task *task_edit(struct tasks *tasks, const struct claim *claim);
/* One that does nothing yet, if there is none; who asks, or what is owed, keeps it. */
struct task *task_ensure(struct tasks *tasks, struct claim *claim);

/* ---- task_owed.c, for both ---- */

/* Of what is in the way of preparing the claim: what is owed to its driver; NULL: nothing. */
const struct claim *task_owed_first(const struct tasks *tasks, const struct claim *claim);
/* The same of a claimant's, and of what is prepared with it at one request, which goes out with it;
 * or what of that is owed itself. */
const struct claim *task_owed_before(const struct tasks *tasks, const struct claimant *claimant);
/* Whether what is owed may be tried now. */
bool task_owed_may_go(const struct tasks *tasks, const struct task *task);
/* It was tried, and failed, or could not be stored: later again. */
void task_owed_failed(struct tasks *tasks, struct task *task, const char *message);
/* Its driver is back: nothing was tried since. */
void task_owed_anew(struct task *task);
/* When it may be tried again; UINT64_MAX: never, as it stands. */
uint64_t task_owed_next_ms(const struct tasks *tasks, const struct task *task);

#endif
