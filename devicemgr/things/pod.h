/*
 * The pods and their sandboxes, as far as the runtime has told of them.
 *
 * A pod has one sandbox at a time, and a new one of the same uid when the old one is replaced. The
 * newest decides: while it runs the pod lives; once somebody had it stopped the pod is as good as
 * over, unless a newer one comes; when it is removed the pod is gone.
 *
 * Two different things end a sandbox. It is *stopped*: StopPodSandbox has succeeded, and its
 * containers are dead. It is *dead*: a list says that it is not ready, as after a reboot, or when
 * its pause process was killed. Nothing new can be made in it then, but what was on its way into it
 * may come, as it may be listed as ready again, and its containers may run on: each of them says
 * for itself what it is.
 *
 * What has become of its stop is its state:
 *
 *           a stop is asked for            it succeeded
 *   OPEN ───────────────────────▶ STOPPING ──────────────▶ STOPPED
 *    ▲                             │    ▲                   ▲   │
 *    │            it failed, or    │    │ asked for again   │   │
 *    │            nobody knows     ▼    │                   │   │
 *    ├─────────────────────────── DOUBTED ──────────────────┘   │
 *    │                                                          │
 *    └── listed as ready by a list that was asked for later ────┘
 *
 * OPEN goes to STOPPED at once if the stop was not seen to begin.
 */
#ifndef DEVICEMGR_THINGS_POD_H
#define DEVICEMGR_THINGS_POD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/ids.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/toleration.h"

enum sandbox_state {
    SANDBOX_OPEN,     /* containers can be made in it, unless it is dead */
    SANDBOX_STOPPING, /* no more; waits for the stop's answer */
    SANDBOX_DOUBTED,  /* likewise; waits for a list that was asked for from `reopen_ms` on */
    SANDBOX_STOPPED,  /* all containers that it had then are dead, if it was not itself */
};

/* Written by pod.c alone. */
struct sandbox {
    char *id;
    struct pod *pod;
    struct sandbox *pod_next; /* of the same pod */
    uint32_t attempt;
    enum sandbox_state state;
    uint64_t reopen_ms;    /* DOUBTED */
    uint64_t stop_epoch;   /* STOPPED: lists asked for up to this one are older, */
    bool stopped_dead;     /* but not for what runs in it, which that may not have ended */
    bool ran;              /* through this shim, since its start */
    bool dead;             /* the last list that named it said that it is not ready */
    uint64_t remade_by_ms; /* stopped when it was dead: a new one may come until then; 0: no */
    uint64_t epoch;        /* listing in which it was last heard of */
    UT_hash_handle hh;
};

struct pod {
    char *uid;
    char *pod_namespace;
    char *name;
    char *boot_id;          /* the last in which the runtime knew it; "": not known */
    struct sandbox *newest; /* NULL: not known */
    bool removed;           /* its newest sandbox was, while a container of an older one may run */
    bool stored;            /* the store may have a row of it; checkpoint.c's */
    struct ids ignored;     /* containers whose request annotation was ignored, and logged */
    struct ids tokens;      /* containers for which the kubelet has asked by token */
    struct sandbox *sandboxes; /* by pod_next, the one added last first */
    bool static_pod;           /* of a manifest, by its annotations */
    bool remembers;            /* its tokens, when it has no allocation any more */
    char *tolerates;           /* its annotation of that, as it was told last; NULL: none was */
    struct tolerations tolerations; /* the same, read; none, if it cannot be */
    UT_hash_handle hh;
};

/* What was told last of a sandbox that is not in the table: it was removed, or nothing has named
 * its pod yet. Its id never comes back in another sense (runtimes give random ones). */
enum sandbox_end {
    SANDBOX_END_NONE, /* nothing */
    SANDBOX_END_STOPPING,
    SANDBOX_END_STOPPED,
    SANDBOX_END_REMOVED,
};

struct pods {
    struct pod *by_uid;
    struct pod_gone *gone;          /* by uid, oldest first; at most PODS_GONE_MAX */
    struct sandbox *sandboxes;      /* by id */
    struct sandbox_ending *endings; /* by id, oldest first; at most SANDBOX_ENDS_MAX */
};

/* A zeroed struct knows no pod. */
void pods_fini(struct pods *pods);
/* NULL: it is not known. */
const struct pod *pods_find(const struct pods *pods, const char *uid);
/* The same, to be changed. */
struct pod *pods_edit(struct pods *pods, const char *uid);
/* Finds or adds; its namespace and name are these from now on. */
struct pod *pods_ensure(struct pods *pods, const char *uid, const char *pod_namespace,
                        const char *name);
/* The runtime knows it in this boot. */
void pod_set_boot(struct pod *pod, const char *boot_id);
void pod_set_removed(struct pod *pod, bool removed);
void pod_set_static(struct pod *pod);
/* With its sandboxes; that it was there is remembered. */
void pods_remove(struct pods *pods, struct pod *pod);
/* Whether there was a pod `uid` and is no more. */
bool pods_gone(const struct pods *pods, const char *uid);

/* NULL: it is not known. */
const struct sandbox *pods_find_sandbox(const struct pods *pods, const char *id);
/* The same, to be changed. */
struct sandbox *pods_edit_sandbox(struct pods *pods, const char *id);
/* Finds or adds; with an attempt not below the newest's it becomes the newest. One that is added
 * is in the state last told of it by pods_note_end(), which is forgotten. One that was another
 * pod's, by the word of who asked for a container in it, is this one's from now on. */
struct sandbox *pods_ensure_sandbox(struct pods *pods, struct pod *pod, const char *id,
                                    uint32_t attempt);
/* The pod stays; if it was the newest, the one with the highest attempt becomes it. */
void pods_remove_sandbox(struct pods *pods, struct sandbox *sandbox);

/* It was heard of while list `epoch` was the last asked for. */
void sandbox_set_epoch(struct sandbox *sandbox, uint64_t epoch);
/* That list, or its own start, says whether it is ready. */
void sandbox_set_ready(struct sandbox *sandbox, uint64_t epoch, bool ready);
void sandbox_set_ran(struct sandbox *sandbox);
void sandbox_set_remade_by(struct sandbox *sandbox, uint64_t ms);
/* Its stop was asked for; one that is stopped stays so. */
void sandbox_set_stopping(struct sandbox *sandbox);
/* The stop that was asked for failed, or was not answered: DOUBTED. */
void sandbox_set_doubted(struct sandbox *sandbox, uint64_t reopen_ms);
/* The stop succeeded while list `epoch` was the last asked for. */
void sandbox_set_stopped(struct sandbox *sandbox, uint64_t epoch);
/* It is not being stopped any more. */
void sandbox_set_open(struct sandbox *sandbox);

/* The sandbox `id`, not in the table (any more), came to this end while list `epoch` was the last
 * asked for. */
void pods_note_end(struct pods *pods, const char *id, enum sandbox_end end, uint64_t epoch);
/* What pods_note_end() was told last; *epoch only then. */
enum sandbox_end pods_find_end(const struct pods *pods, const char *id, uint64_t *epoch);

/* Forgets that the sandbox, not in the table, was told to stop. */
void pods_forget_stopping(struct pods *pods, const char *id);

/* True the first time for this container, as far as there is room to remember. */
bool pod_ignore_once(struct pod *pod, const char *container);
/* The kubelet asks by token for this container; that is remembered as far as there is room. */
void pod_note_token(struct pod *pod, const char *container);
void pod_set_remembers(struct pod *pod);
/* Its annotation of tolerations, NULL: it has none. Whether that is another than it was; what is
 * wrong with it is added to `error`. */
bool pod_set_tolerations(struct pod *pod, const char *annotation, struct text *error);
bool pod_had_token(const struct pod *pod, const char *container);

#endif
