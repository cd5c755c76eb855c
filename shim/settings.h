/*
 * The settings a process starts with; daemon, bridge and agent read the same file.
 *
 * A file that is wrong is no reason to leave a node without a runtime: the settings of the last
 * start that worked are used then, of which the daemon keeps a copy in the state_dir; and without
 * those the defaults. Both are told as an error, and by `degraded`.
 */
#ifndef SHIM_SETTINGS_H
#define SHIM_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "config/config.h"

#define SETTINGS_DEGRADED_BYTES_MAX 512

/* The copy, in state_dir. */
#define SETTINGS_LAST_GOOD "config.last-good.toml"

struct settings {
    struct config config;
    const char *path; /* where they are read again; NULL: there is no file. Borrowed */
    char *text;       /* of the file they are from, for settings_keep(); empty for the defaults */
    size_t text_len;
    uint64_t read_ms; /* when that was: at the start, or when it last was right; boot_now_ms() */
    int level_set;    /* settings_set_level(); 0: none */
    char degraded[SETTINGS_DEGRADED_BYTES_MAX]; /* why they are not the file's; "": they are */
};

/* Reads `path`; NULL: CONFIG_PATH_DEFAULT if it is there, else the defaults. What is wrong is said
 * in the log. 0 and *out, which the caller gives to settings_fini(); negative: nothing is known of
 * what is there, for want of memory or descriptors. */
int settings_load(const char *path, struct settings *out) __attribute__((warn_unused_result));
void settings_fini(struct settings *settings);

/* The same for what is not to be done by any settings but the file's: -1 if that is wrong, which
 * the log says. The caller gives *out to config_fini(). */
int settings_load_strict(const char *path, struct config *out) __attribute__((warn_unused_result));

/* The log's level and form from now on. */
void settings_apply_log(const struct config *config);

/* Tells the service manager that the process is ready, and if so, how it is degraded; or that it is
 * not, by an empty STATUS=, since what it was told last it keeps. */
void settings_tell_ready(const struct settings *settings);

/*
 * Reads the file again, blocking, and takes over what may change without a restart. All or nothing:
 * a file that is wrong changes nothing. Logs what is wrong, with its place; or what has changed,
 * and what waits for a restart. 0: they are the file's, as far as may be, and the caller lets its
 * parts know; -1: all is as before. *out is told the same.
 */
#define SETTINGS_NAMES_BYTES_MAX 512
#define SETTINGS_WRONG_BYTES_MAX 1024
struct settings_reloaded {
    char changed[SETTINGS_NAMES_BYTES_MAX]; /* names, with ", " between them; "": none */
    char needs_restart[SETTINGS_NAMES_BYTES_MAX];
    char wrong[SETTINGS_WRONG_BYTES_MAX]; /* in one line, with -1 */
};
int settings_reload(struct settings *settings, struct settings_reloaded *out)
    __attribute__((warn_unused_result));

/* The level that an operator set: it counts, whatever the file says, until it is set to 0. */
void settings_set_level(struct settings *settings, int level);

/* They work: keeps a copy of the file for the next start, unless it is there already or they are
 * degraded. In a worker of libuv; a failure is told. `settings` is borrowed until the loop ends. */
void settings_keep(const struct settings *settings, uv_loop_t *loop);

#endif
