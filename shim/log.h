/*
 * Log lines: one event a line, in the form that who reads stderr is best served by.
 *
 *   plain     behind the time on a terminal, behind date and time elsewhere; words for all levels
 *             but info
 *   logfmt    ts=… level=… msg="…", for pipes and files
 *   json      the same, an object a line
 *   journal   systemd's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): PRIORITY, and what a
 *             line is about as fields of its own; where its socket is not there, stderr behind
 *             "<PRIORITY>", which the journal reads as well (sd-daemon(3))
 *   auto      journal if stderr is the journal's stream ($JOURNAL_STREAM, systemd.exec(5)), plain
 *             on a terminal, else logfmt; unless LOG_FORMAT_VARIABLE names one of those above
 *
 * Never waits for who reads them: a line that is not taken at once is lost and counted, and the
 * count is told in front of the next one. A line that is the same as the one before is not written
 * but counted, and that is told, too. Never allocates. All of it is process-wide; lines may come
 * from any thread. An assertion that fails, and abort(3), in a library too, is such a line, before
 * the process aborts.
 *
 * No line has a container's environment, a mount, or what authenticates against a registry: who
 * writes one sees to that.
 */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

enum log_format {
    LOG_FORMAT_AUTO,
    LOG_FORMAT_LOGFMT,
    LOG_FORMAT_JSON,
    LOG_FORMAT_PLAIN,
    LOG_FORMAT_JOURNAL,
};

/* In the environment: what auto means, also for lines before the settings are read. */
#define LOG_FORMAT_VARIABLE "CRI_DEVICE_SHIM_LOG_FORMAT"

/* What happened, for machines; each has an id in the journal that never changes (log_kind.h). */
enum log_kind {
    LOG_KIND_NONE,
    LOG_KIND_STARTED,
    LOG_KIND_STOPPING,
    LOG_KIND_SETTINGS, /* they are wrong */
    LOG_KIND_RELOADED,
    LOG_KIND_REFUSED,       /* a CreateContainer */
    LOG_KIND_REFUSALS_OVER, /* of one container: its create goes on */
    LOG_KIND_RUNTIME_AWAY,
    LOG_KIND_RUNTIME_BACK,
    LOG_KIND_BRIDGE_HERE,
    LOG_KIND_BRIDGE_GONE,
    LOG_KIND_KUBELET_STARTED,
    LOG_KIND_GATE_OPENED, /* its first relist goes on */
    LOG_KIND_SHOWN,       /* a resource, to the kubelet */
    LOG_KIND_LOST,        /* lines before this one were */
    /* Those of the device manager (devicemgr_line) */
    LOG_KIND_REGISTERED,
    LOG_KIND_LISTED,
    LOG_KIND_PLUGIN_AWAY,
    LOG_KIND_REMOVED,
    LOG_KIND_ALLOCATED,
    LOG_KIND_FREED,
    LOG_KIND_REPLACED,
    LOG_KIND_ADOPTED,
    LOG_KIND_STRANGE_TOKEN,
    LOG_KIND_ORDERED,
    LOG_KIND_UNSTORED,
    LOG_KIND_STORED,
    LOG_KIND_RUNTIME_LISTED,
    LOG_KIND_DRIVER_CAME,
    LOG_KIND_DRIVER_WENT,
    LOG_KIND_DRIVER_MOVED,
    LOG_KIND_SLICES_WIPED,
    LOG_KIND_CLAIM_PREPARED,
    LOG_KIND_CLAIM_OWED,
    LOG_KIND_CLAIM_UNPREPARED,
    LOG_KIND_ENDING,
    LOG_KIND_SHUTDOWN, /* of the machine */
    /* of a socket that we serve */
    LOG_KIND_SOCKET_AWAY,
    LOG_KIND_SOCKET_BACK,
    /* and of the file of events */
    LOG_KIND_EVENTS_UNKEPT,
    LOG_KIND_EVENTS_KEPT,
};
#define LOG_KINDS (LOG_KIND_EVENTS_KEPT + 1)

/* What a line is about, besides its text; NULL and LOG_KIND_NONE: nothing. */
struct log_about {
    enum log_kind kind;
    const char *resource;
    const char *pod; /* "namespace/name" */
    const char *container;
};

/* "error", "warning", "info", "debug"; NULL for what is no level. */
const char *log_level_name(int level);
/* The level of this name; 0: there is none. */
int log_level_parse(const char *name);

/* Lines above this level are dropped. At start: LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);

/* At start: LOG_FORMAT_AUTO. */
void log_set_format(enum log_format format);

/* Writes one line; control characters in the text are shown as '?', so a peer's words cannot forge
 * a line. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same; `about` is borrowed until return. */
void log_write_about(enum log_level level, const struct log_about *about, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* How many lines were lost since the start. */
unsigned long log_lost(void);

/* Tells how many lines were lost, or the same as the last one, if that can be told now; the next
 * line does so, too. */
void log_tell_counts(void);

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
