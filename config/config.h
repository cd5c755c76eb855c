/*
 * The node's settings, read from one TOML file (config/example.toml documents every key).
 *
 * Every key has a default, so that the daemon runs without a file. Anything the schema does not
 * know, a wrong type, a bad value or a path too long for a unix socket is an error that names file,
 * line, column and what would be right; nothing is guessed and nothing is ignored. All mistakes of
 * a file are told at once (of a file that is no TOML, the first). The keys are in schema.c.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where the daemon looks when no --config is given; its absence is no error. */
#define CONFIG_PATH_DEFAULT "/etc/cri-device-shim/config.toml"

#define CONFIG_FILE_BYTES_MAX (1024 * 1024)
#define CONFIG_ERROR_BYTES_MAX 8192 /* some 20 lines */

/* When a plugin is asked anew for runtime options that it has given before. */
enum config_refresh {
    CONFIG_REFRESH_REBOOT, /* after a reboot */
    CONFIG_REFRESH_PLUGIN, /* after a reboot, and after the plugin registered anew */
    CONFIG_REFRESH_NEVER,  /* the kubelet's own rule */
};

/* The form of log lines (shim/log.h). */
enum config_log_format {
    CONFIG_LOG_AUTO,
    CONFIG_LOG_LOGFMT,
    CONFIG_LOG_JSON,
    CONFIG_LOG_PLAIN,
    CONFIG_LOG_JOURNAL,
};

/* A device node of the host and where the container sees it. */
struct config_node {
    char *host;
    char *container;
};

struct config_mount {
    char *host;
    char *container;
    bool read_only;
};

struct config_env {
    char *name;
    char *value;
};

/* One [[device]] table: host device nodes offered as a resource without a plugin. */
struct config_device {
    char *resource;       /* "vendor.com/name", unique among the devices */
    char *path;           /* absolute; may hold glob(7) characters; NULL: see `paths` */
    char *container_path; /* NULL: as on the host; with a glob a directory, with '/' at its end */
    char *permissions;    /* subset of "rwm", not empty */
    unsigned count;       /* how many containers may hold one node at once, >= 1 */
    struct config_node *paths; /* one device of several nodes, in place of `path`; no globs */
    size_t paths_len;
    struct config_mount *mounts; /* what a container with one of the devices gets, too */
    size_t mounts_len;
    struct config_env *envs;
    size_t envs_len;
};

/* One [[resource.attribute]] table: what is said of devices where they are published. */
struct config_attribute {
    char *device; /* ids, with glob(7) characters */
    char *name;
    char *value;  /* as the file has it: a text in quotes, which has none in it; a whole number, or
                  * true or false */
    bool version; /* the text is one: Semantic Versioning 2.0.0 */
};

/* One [[resource]] table: what this resource has instead of the settings in [plugins]. Complete:
 * what the table does not name is filled in from there. */
struct config_resource {
    char *name; /* unique among the resources */
    uint64_t grace_ms;
    uint64_t hold_ms;
    uint64_t allocate_timeout_ms;
    unsigned allocates_at_once; /* for it; 0: any number */
    enum config_refresh refresh_options;
    bool exclusive;                    /* a device is held by one live container at a time */
    uint64_t taint_unhealthy_after_ms; /* 0: never */
    bool dra;                          /* published as a DRA driver's (devicemgr/lift.h) */
    bool replace;                      /* others are given in the place of what is lost, which */
    uint64_t replace_after_ms;         /* it is after so long */
    struct config_attribute *attributes;
    size_t attributes_len;
};

/* One [[taint]] table. */
struct config_taint {
    char *resource;
    char *id; /* NULL: every device of it */
    char *key;
    char *value; /* NULL: none */
    char *effect;
};

/* One [[driver]] table: what the DRA driver of this name has of its own. */
struct config_driver {
    char *name;          /* unique among the drivers */
    bool cached_prepare; /* while it is away its answers count, where an agent confirms them */
};

/* The part that stands in for the plugins at the kubelet (shim/ARCHITECTURE.md, "The bridge"). */
struct config_bridge {
    bool enabled;                  /* the daemon serves the feed, and holds the gate */
    char *socket;                  /* the feed's; plain path */
    char *kubelet_plugin_dir;      /* where the kubelet has its kubelet.sock */
    uint64_t mask_ms;              /* how long the kubelet does not hear that a plugin is away */
    uint64_t preferred_timeout_ms; /* for a plugin's GetPreferredAllocation */
    bool gate;                     /* the kubelet's first relist waits for its registrations */
    uint64_t gate_timeout_ms;      /* at most so long */
    char **kubelet_processes;      /* the names (comm) of what counts as a kubelet */
    size_t kubelet_processes_len;
    bool redirect_plugin_mounts;
};

/* What registers as with the kubelet's plugin watcher (shim/registry/registry.h): DRA drivers,
 * mostly. */
struct config_dra {
    bool enabled;               /* the directory is watched */
    char *registry_dir;         /* in place of the kubelet's plugins_registry */
    char *kubelet_registry_dir; /* that one */
    bool wipe_at_start;         /* with an agent: of all drivers, when the daemon starts */
    uint64_t mask_ms;           /* without one: the kubelet is not told so long that one is away */
    uint64_t wipe_after_ms;     /* with one: of a driver that has been away for so long */
    uint64_t call_timeout_ms;   /* for a driver's NodePrepareResources and NodeUnprepareResources */
    char **redirect_mounts; /* pods, "namespace/name" with glob(7) characters, whose mount of the
                             * kubelet's directory is one of ours */
    size_t redirect_mounts_len;
};

/* The part that speaks with the cluster's API server (shim/ARCHITECTURE.md, "The agent"). */
struct config_cluster {
    bool enabled;                  /* the daemon serves the agent's feed */
    char *socket;                  /* that feed's; plain path */
    char *kubeconfig;              /* absolute; by whose credentials the agent asks */
    char *node_name;               /* "": it is in the client certificate */
    bool insecure_skip_tls_verify; /* a kubeconfig that asks for that is followed */
    uint64_t events_after_ms;      /* of refusals that last so long Events are made; 0: none are */
    uint64_t evict_force_after_ms; /* how long evictions keep to disruption budgets; 0: for ever */
};

/* One [[shutdown.period]] table. */
struct config_shutdown_period {
    int32_t priority; /* unique among the periods */
    uint64_t grace_ms;
};

/* What is done when the machine goes down (devicemgr/machines/shutdown.h); nothing, if all is 0.
 * The pair, or the periods, and only with an agent. */
struct config_shutdown {
    uint64_t grace_ms;          /* all in all */
    uint64_t critical_grace_ms; /* of that for critical pods, which come last */
    struct config_shutdown_period *periods;
    size_t periods_len;
};

/* Who watches the node (shim/metrics/metrics.h). */
struct config_metrics {
    char *listen; /* "": nothing is served; else a right listen_address.h */
    bool page;    /* the page for people, too (shim/page/page.h) */
};

struct config {
    char *state_dir;
    char *listen;           /* the CRI socket; plain path, without unix:// */
    char *runtime_endpoint; /* the runtime's socket; plain path, without unix:// */
    char *plugin_dir;
    int log_level; /* a syslog level: 3 error, 4 warning, 6 info, 7 debug */
    enum config_log_format log_format;
    uint64_t drain_ms;
    uint64_t grace_ms;
    uint64_t hold_ms;
    uint64_t allocate_timeout_ms;
    unsigned allocates_at_once; /* for one resource; 0: any number */
    uint64_t prestart_timeout_ms;
    uint64_t kubelet_wait_ms; /* how long nothing restored is dropped for want of a kubelet */
    enum config_refresh refresh_options;
    bool hide_other_namespaces;
    bool annotations_enabled;
    bool start_without; /* who asks by annotation while that is off is started all the same */
    char **annotation_namespaces;
    size_t annotation_namespaces_len;
    struct config_device *devices;
    size_t devices_len;
    struct config_resource *resources;
    size_t resources_len;
    struct config_driver *drivers;
    size_t drivers_len;
    struct config_taint *taints;
    size_t taints_len;
    uint64_t taint_unhealthy_after_ms; /* then who has an unhealthy device is evicted; 0: never */
    unsigned evict_per_minute;         /* so many pods within a minute at most; 0: any number */
    struct config_bridge bridge;
    struct config_dra dra;
    struct config_cluster cluster;
    struct config_shutdown shutdown;
    struct config_metrics metrics;
    char *control_socket; /* for cri-device-shimctl; plain path; "": there is none */
};

struct config_error {
    /* "FILE:LINE:COLUMN: what is wrong; what would be right", a line each in the order of the file,
     * without a newline at the end. The first 20; then "and 3 more". */
    char text[CONFIG_ERROR_BYTES_MAX];
    bool no_memory; /* it says nothing of what is read; */
    bool no_files;  /* nor does this: no file can be opened */
};

/*
 * Reads `path` into `out`, or the defaults if `path` is NULL. 0, or -1 with `err` filled and `out`
 * untouched. The caller owns `out` and gives it to config_fini().
 */
int config_load(const char *path, struct config *out, struct config_error *err)
    __attribute__((warn_unused_result));

/* The two halves of config_load(). The bytes of `path`, a regular file or a link to one, and a NUL
 * behind them, which the caller frees: 0, or -1 with `err` filled. It waits for nobody who
 * writes. */
int config_read(const char *path, char **text, size_t *len, struct config_error *err)
    __attribute__((warn_unused_result));
/* And what they say; `path` is for the messages, and NULL for the defaults. */
int config_parse(const char *text, size_t len, const char *path, struct config *out,
                 struct config_error *err) __attribute__((warn_unused_result));

/* How long all that the settings want of a shutdown takes at most; 0: they want nothing. */
uint64_t config_shutdown_ms(const struct config_shutdown *shutdown);

/* Frees what config_load() made. Accepts a zeroed struct. */
void config_fini(struct config *config);

#ifdef __cplusplus
}
#endif

#endif
