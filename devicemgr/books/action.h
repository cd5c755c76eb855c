/*
 * The queue of actions: what events decided, until devicemgr_run() carries it out.
 */
#ifndef DEVICEMGR_BOOKS_ACTION_H
#define DEVICEMGR_BOOKS_ACTION_H

#include "devicemgr/ports.h"
#include "devicemgr/things/ids.h"
#include "devicemgr/things/renames.h"

/* One per port, with what is filled in besides the subject, and one that was called off. */
enum action_kind {
    ACTION_NONE,
    ACTION_ENDPOINT_OPEN, /* resource, socket_name, uid */
    ACTION_ENDPOINT_CLOSE,
    ACTION_REGISTER_DONE,   /* code, text */
    ACTION_ALLOCATE,        /* call, ids, timeout_ms */
    ACTION_PREFER,          /* likewise, and must_include, size */
    ACTION_PRESTART,        /* call, ids, timeout_ms */
    ACTION_CALL_CANCEL,     /* call; no subject */
    ACTION_COMMIT,          /* rows */
    ACTION_CONTAINER_CHECK, /* text: the container's id */
    ACTION_RUNTIME_LIST,
    ACTION_STOP_CONTAINER, /* likewise; timeout_ms */
    ACTION_STOP_CANCEL,
    ACTION_STOP_SANDBOX, /* text: the sandbox's id */
    ACTION_EVICT_POD,    /* eviction */
    ACTION_EVICT_CANCEL,
    ACTION_VERDICT,           /* code, text, resource, held_ms, options, renames */
    ACTION_PREFERRED,         /* ids */
    ACTION_EVENT,             /* event; no subject */
    ACTION_STEERED,           /* code, changed, text */
    ACTION_DRIVER_REGISTERED, /* code, text */
    ACTION_DRIVER_PREPARE,    /* call, batch, claim, timeout_ms */
    ACTION_DRIVER_UNPREPARE,  /* likewise */
    ACTION_DRIVER_SETTLE,     /* likewise, but for the batch; asked */
    ACTION_CLAIM_LOOK,        /* claim; no subject */
    ACTION_CLAIM_DONE,        /* code, text, response */
    ACTION_LOG,               /* code, about, text; no subject */
};

struct claim;

/* A row with everything it points to. */
struct action_row {
    enum devicemgr_record_kind kind;
    char *names;
    const char *key[3]; /* within `names` */
    uint8_t *value;     /* NULL: delete */
    size_t value_bytes;
};

struct action {
    enum action_kind kind;
    uint64_t subject; /* endpoint, registration, commit, check, create, prefer, steer, driver's
                       * instance, who asked for a claim, a stop or an order to evict */
    uint64_t call;
    struct devicemgr_batch batch;
    uint64_t timeout_ms;
    uint64_t held_ms; /* of a create */
    size_t size;
    int code;     /* gRPC code or syslog level */
    bool changed; /* what an operator asked for was not so before */
    bool asked;   /* somebody waits for what is settled */
    bool stops;   /* a claim is refused for that */
    char *text;
    char *socket_name;
    uint32_t uid;   /* who registered it */
    char *resource; /* NULL: not about one */
    struct ids ids;
    struct ids must_include;
    V1beta1__ContainerAllocateResponse *options;
    struct renames renames;
    struct action_row *rows;
    size_t rows_len;
    struct devicemgr_event *event; /* in one piece with all it points to; with the next */
    struct devicemgr_about *about; /* of a line; NULL: nothing */
    struct devicemgr_claim *claim; /* in one piece with all it points to; so is the next */
    struct devicemgr_eviction *eviction;
    uint8_t *response; /* of a claim that was prepared */
    size_t response_bytes;
    struct action *next;
};

/* A zeroed struct is empty. */
struct action_queue {
    struct action *first;
    struct action *last;
};

/* Appends an action to be filled in; what it points to it owns. */
struct action *action_push(struct action_queue *queue, enum action_kind kind, uint64_t subject);
/* What an operator asked for is over: `code`, and whether it has `changed` anything; `text` is
 * copied. */
void action_steered(struct action_queue *queue, uint64_t number, int code, bool changed,
                    const char *text);
/* Copies in one piece, for an action. */
struct devicemgr_eviction *action_eviction(const struct devicemgr_eviction *from);
struct devicemgr_claim *action_claim(const struct claim *claim);
/* Calls off what is queued of that kind for that subject and call (0: it has none), in time. False:
 * nothing is. */
bool actions_drop(struct action_queue *queue, enum action_kind kind, uint64_t subject,
                  uint64_t call);
/* Carries out all, the oldest first, and those that the ports' own events add meanwhile. */
void actions_carry_out(struct action_queue *queue, const struct devicemgr_ports *ports, void *user);
void actions_fini(struct action_queue *queue);

#endif
