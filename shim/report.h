/*
 * What the daemon's rooms say of themselves, put together by who ties them, for who asks.
 */
#ifndef SHIM_REPORT_H
#define SHIM_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What may not be as it should be. */
enum report_part {
    REPORT_SETTINGS,
    REPORT_RELAY, /* with the next three: its socket cannot be served */
    REPORT_REGISTRAR,
    REPORT_FEED,
    REPORT_CONTROL,
    REPORT_REGISTRY, /* its directory cannot be watched */
    REPORT_STORE,
    REPORT_EVENTS,
    REPORT_RUNTIME,
    REPORT_BRIDGE,
    REPORT_CLUSTER,  /* its socket cannot be served, or what is behind it */
    REPORT_SHUTDOWN, /* the machine's would not be delayed, or not for as long as it is to be */
};
#define REPORT_PARTS (REPORT_SHUTDOWN + 1)
/* Of all parts: the store, the bridge and the cluster may be so in two ways. */
#define REPORT_TROUBLES_MAX (REPORT_PARTS + 3)
#define REPORT_NAME_BYTES_MAX 128
#define REPORT_WORDS_BYTES_MAX 512

struct report_trouble {
    enum report_part part;
    char why[REPORT_WORDS_BYTES_MAX];
    uint64_t since_ms; /* boot_now_ms() */
};

/* Texts that are empty, and pids that are 0, are not known. */
struct report {
    bool bridge_wanted;
    pid_t bridge_pid;
    char bridge_version[REPORT_NAME_BYTES_MAX];
    bool runtime_connected;
    uint64_t runtime_since_ms; /* boot_now_ms() */
    char runtime_name[REPORT_NAME_BYTES_MAX];
    char runtime_version[REPORT_NAME_BYTES_MAX];
    bool runtime_listed;
    pid_t kubelet_pid;
    const char *gate; /* static */
    uint64_t gate_held_ms;
    char kubelet_words[REPORT_WORDS_BYTES_MAX];
    bool shutdown_pods_known; /* the agent has told of all pods of the node: of so many */
    size_t shutdown_pods;
    bool shutdown_locked;       /* the agent delays the machine's shutdown */
    uint64_t shutdown_limit_ms; /* as long as logind waits at most; 0: not known */
    struct report_trouble troubles[REPORT_TROUBLES_MAX];
    size_t troubles_len;
};

/* Notes one; `why` is cut if it is too long, and what is beyond REPORT_TROUBLES_MAX left out. */
void report_trouble(struct report *report, enum report_part part, const char *why,
                    uint64_t since_ms);

bool report_is_degraded(const struct report *report, enum report_part part);

/* One word. */
const char *report_part_name(enum report_part part);

#endif
