/*
 * Why a create is refused, or has to wait: as a value, and in words.
 *
 * A rule says what is so. It becomes a text only where somebody reads it: in the verdict, in the
 * log. Every sentence of that is in reason.c, once.
 */
#ifndef DEVICEMGR_WORDS_REASON_H
#define DEVICEMGR_WORDS_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/demand.h"
#include "devicemgr/things/ids.h"
#include "devicemgr/things/taint.h"
#include "devicemgr/things/text.h"

struct allocation;
struct claim;
struct claim_user;
struct granted_device;
struct state;
struct endpoint;

enum reason_kind {
    REASON_NONE,

    /* what was asked for */
    REASON_REQUEST_UNREADABLE,    /* `words`: where and how */
    REASON_ANNOTATIONS_OFF,       /* it asks by annotation */
    REASON_NAMESPACE_NOT_ALLOWED, /* likewise */
    REASON_PUBLISHED, /* it asks by annotation for what claims are for; `words`: of what */
    REASON_NAMES_TOO_LONG,
    REASON_NO_POD_UID,
    REASON_OTHER_PODS_SANDBOX, /* `words`: whose it is */
    REASON_REQUEST_CHANGED,    /* it holds `held` devices, and asks for `asked` */
    REASON_TOKEN_GONE,         /* the container had one, and has none now */
    REASON_TAKEN_OVER,         /* by a newer create of the container */
    REASON_TOO_MANY_CREATES,

    /* its sandbox */
    REASON_NODE_SHUTS_DOWN,
    REASON_POD_ENDED, /* or is being ended, from here */
    REASON_SANDBOX_STOPS,
    REASON_SANDBOX_REMOVED,
    REASON_SANDBOX_NOT_READY,

    /* the resource, its plugin, its devices */
    REASON_RESOURCE_UNKNOWN,    /* `ids`: the names that are known; `by_token` */
    REASON_PLUGIN_AWAY,         /* or it has not listed; `ids`: those that are wanted */
    REASON_DEVICES_UNHEALTHY,   /* `ids` are, since `since_ms`; `missing` are not listed */
    REASON_NO_OTHER_DEVICE,     /* likewise; none is free to be in their place */
    REASON_REPLACING,           /* likewise, or `holder` has the device in `ids` in the place of its
                                 * own; `others` are to be, when the kubelet lets go of them */
    REASON_TOO_FEW_ARE_HEALTHY, /* likewise; and `asked`, `free` */
    REASON_TOO_FEW_DEVICES,     /* `asked`, `free`, `healthy` of `all` */

    /* what an operator has set: `words`, the operator's, or "" */
    REASON_RESOURCE_WITHDRAWN,
    REASON_DEVICES_CORDONED,       /* `ids` are, those with these words */
    REASON_TOO_FEW_ARE_UNCORDONED, /* likewise; and `asked`, `free` */

    /* taints: `taint` is one of them that the pod does not tolerate */
    REASON_DEVICES_TAINTED,       /* NoExecute: the device in `ids` */
    REASON_TOO_FEW_ARE_UNTAINTED, /* `ids` are; and `asked`, `free` */

    /* who has them: `holder` has the device in `ids` */
    REASON_HOLDER_RUNS,
    REASON_HOLDER_ASKED,   /* whether it runs */
    REASON_HOLDER_UNKNOWN, /* a container of it may run, or be in the making */
    REASON_HOLDER_CREATED, /* it is being decided, or made */
    REASON_UNLISTED,       /* by the runtime: nothing new is given out */
    REASON_UNLISTED_AGAIN, /* likewise, since rows were lost */

    /* a claim's devices: `ids` are CDI names, or the device of `claim` that `user` has by
     * another */
    REASON_CDI_NOT_READ, /* by the runtime, or not where the request has them; with a resource:
                          * `ids` are devices of which its plugin gives nothing else */
    REASON_CDI_UNHEARD,  /* the runtime is still to say; `ids` likewise */
    REASON_CLAIM_HELD,

    /* calls: `call` of the endpoint at `socket_name`, made at `since_ms`, and the store */
    REASON_CALL_QUEUED,      /* `since_ms`: Allocate waits for its turn; no call is made */
    REASON_CALL_UNANSWERED,  /* `ids`: of these devices; none: not said */
    REASON_CALL_FAILED,      /* likewise; `words`: the plugin's, or NULL */
    REASON_ANSWER_TOO_LARGE, /* likewise: there is no room to keep the answer */
    REASON_ROWS_UNREAD,      /* `words`: why the checkpoint cannot be read */
    REASON_UNSTORED,         /* since `since_ms` */
    REASON_STORE_FAILED,     /* `words`: the store's */

    REASON_KINDS, /* how many there are */
};

/* What ends the wait before what is waited for has come. */
enum reason_end {
    REASON_ENDS_NOT,
    REASON_ENDS_BY_DRAIN,
    REASON_ENDS_BY_DEADLINE, /* the client's */
};

/* A zeroed struct is no reason. What it points to is the state's, the demand's or the caller's, and
 * counts until they change; the ids are its own. */
struct reason {
    enum reason_kind kind;
    enum reason_end ends;
    const char *resource; /* NULL: not about one */
    bool by_token;        /* the kubelet asked for it */
    struct ids ids;
    struct ids missing;
    struct ids others;
    uint64_t since_ms;
    const struct allocation *holder;
    const struct claim *claim;
    const struct claim_user *user;
    const struct granted_device *made_of_same; /* what that has; NULL: the same device */
    const char *call;
    const char *socket_name;
    const char *words;
    struct taint taint;
    size_t asked, held, free, healthy, all;
};

static inline void reason_fini(struct reason *reason)
{
    ids_fini(&reason->ids);
    ids_fini(&reason->missing);
    ids_fini(&reason->others);
}

/* The gRPC code of a refusal for it. */
int reason_code(enum reason_kind kind);
/* One word, for who counts or sorts refusals; a person reads the sentence. */
const char *reason_word(enum reason_kind kind);

/* Adds the whole sentence, with whom it is about. */
void reason_explain(const struct state *state, const struct demand *demand,
                    const struct reason *reason, struct text *text);
/* A refusal is read by whoever may read the refused pod, who may be another's tenant. Whether
 * reason_explain() leaves out for that who the holder is; adds who, for the log. */
bool reason_explain_hidden(const struct state *state, const struct demand *demand,
                           const struct reason *reason, struct text *text);

/* Adds why it cannot be used, since when and how long yet. */
void reason_explain_endpoint(const struct endpoint *endpoint, uint64_t now_ms, uint64_t grace_ms,
                             struct text *text);

#endif
