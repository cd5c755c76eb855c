#include "shim/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/compare.h"
#include "shim/boot_clock.h"
#include "shim/file.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/path.h"
#include "shim/service_manager.h"

static void say(struct config_error *err)
{
    const struct log_about about = {.kind = LOG_KIND_SETTINGS};

    for (char *rest = err->text, *line; (line = strsep(&rest, "\n"));)
        log_write_about(LOG_LEVEL_ERROR, &about, "%s", line);
}

void settings_apply_log(const struct config *config)
{
    static const enum log_format formats[] = {[CONFIG_LOG_AUTO] = LOG_FORMAT_AUTO,
                                              [CONFIG_LOG_LOGFMT] = LOG_FORMAT_LOGFMT,
                                              [CONFIG_LOG_JSON] = LOG_FORMAT_JSON,
                                              [CONFIG_LOG_PLAIN] = LOG_FORMAT_PLAIN,
                                              [CONFIG_LOG_JOURNAL] = LOG_FORMAT_JOURNAL};

    log_set_level((enum log_level)config->log_level);
    log_set_format(formats[config->log_format]);
}

static const char *path_or_default(const char *path)
{
    return path || access(CONFIG_PATH_DEFAULT, F_OK) < 0 ? path : CONFIG_PATH_DEFAULT;
}

int settings_load_strict(const char *path, struct config *out)
{
    struct config_error err;
    int r = config_load(path_or_default(path), out, &err);

    if (r < 0)
        say(&err);
    return r;
}

/* ---- what is used in place of a file that is wrong ---- */

/* The value of a line `state_dir = "..."`, whatever else is wrong with the file. */
static bool take_state_dir(const char *line, size_t len, char dir[PATH_MAX])
{
    static const char key[] = "state_dir", space[] = " \t";
    const char *end = line + len, *from = line + sizeof key - 1;
    size_t dir_len;

    if (len < sizeof key || strncmp(line, key, sizeof key - 1) != 0)
        return false;
    from += strspn(from, space);
    if (*from != '=')
        return false;
    from += 1 + strspn(from + 1, space);
    if ((*from != '"' && *from != '\'') || from[1] != '/')
        return false;
    dir_len = strcspn(from + 1, (char[]){*from, '\0'});
    if (dir_len >= PATH_MAX || from + 1 + dir_len >= end)
        return false;
    memcpy(dir, from + 1, dir_len);
    dir[dir_len] = '\0';
    return true;
}

/* Where the state is by a text that need not be TOML. False: it does not say. */
static bool find_state_dir(const char *text, char dir[PATH_MAX])
{
    const char *line = text;

    for (size_t len; *line && *line != '['; line += len + (line[len] != '\0')) {
        len = strcspn(line, "\n");
        if (take_state_dir(line, len, dir))
            return true;
    }
    return false;
}

/* Reads the file at `path` into *out. -1 and `err`: it is wrong. Of one that there is no memory or
 * no descriptor for (-EMFILE and `err`) nobody can say that, and others are not used in its
 * place. */
static int load(const char *path, struct settings *out, struct config_error *err)
{
    int r;

    out->text = NULL;
    out->text_len = 0;
    r = config_read(path, &out->text, &out->text_len, err);
    if (r == 0)
        r = config_parse(out->text, out->text_len, path, &out->config, err);
    if (r < 0 && err->no_memory)
        must(NULL);
    return r < 0 && err->no_files ? -EMFILE : r;
}

/* The copy in `dir`. 0, -1: there is none, or it is wrong, too; or -EMFILE. */
static int load_last_good(const char *wrong, const char *dir, struct settings *out)
{
    char *path = path_join(dir, SETTINGS_LAST_GOOD);
    struct config_error err;
    bool there = access(path, F_OK) == 0;
    int r = there ? load(path, out, &err) : -1;

    if (r == 0) {
        snprintf(out->degraded, sizeof out->degraded,
                 "%s is wrong; the settings are those of the last start that worked, %s", wrong,
                 path);
    } else if (there) {
        say(&err);
        free(out->text);
    }
    free(path);
    return r;
}

/* 0, or -1: out of memory. */
static int load_defaults(struct settings *out)
{
    struct config_error err;

    out->text = must(strdup(""));
    out->text_len = 0;
    return config_parse(NULL, 0, NULL, &out->config, &err);
}

static int load_in_place_of(const char *wrong, const char *text, struct settings *out)
{
    char dir[PATH_MAX];
    int r = text && find_state_dir(text, dir) ? load_last_good(wrong, dir, out) : -1;

    if (r != -1)
        return r;
    if (load_defaults(out) < 0)
        return -1;
    snprintf(dir, sizeof dir, "%s", out->config.state_dir);
    settings_fini(out);
    r = load_last_good(wrong, dir, out);
    if (r != -1)
        return r;
    snprintf(out->degraded, sizeof out->degraded,
             "%s is wrong, and no start with other settings is known; they have their defaults",
             wrong);
    return load_defaults(out);
}

int settings_load(const char *path, struct settings *out)
{
    struct config_error err;
    char *text;
    int r;

    *out = (struct settings){.read_ms = boot_now_ms()};
    path = path_or_default(path);
    out->path = path;
    if (!path)
        return load_defaults(out);
    r = load(path, out, &err);
    if (r == 0)
        return 0;
    say(&err);
    if (r == -EMFILE)
        return r;
    text = out->text;
    r = load_in_place_of(path, text, out);
    free(text);
    if (r == 0)
        log_write_about(LOG_LEVEL_ERROR, &(struct log_about){.kind = LOG_KIND_SETTINGS}, "%s",
                        out->degraded);
    return r;
}

void settings_fini(struct settings *settings)
{
    config_fini(&settings->config);
    free(settings->text);
    settings->text = NULL;
}

void settings_tell_ready(const struct settings *settings)
{
    char state[SETTINGS_DEGRADED_BYTES_MAX + 64];

    snprintf(state, sizeof state, "READY=1\nSTATUS=%s%s", settings->degraded[0] ? "degraded: " : "",
             settings->degraded);
    service_manager_notify(state);
}

/* ---- reading them again ---- */

static void add_change(void *user, const char *name, bool live)
{
    struct settings_reloaded *out = user;
    char *list = live ? out->changed : out->needs_restart;
    size_t len = strlen(list);

    snprintf(list + len, SETTINGS_NAMES_BYTES_MAX - len, "%s%s", len > 0 ? ", " : "", name);
}

/* No file any more is no reason to go by the defaults. `why` in one line. */
static int read_again(const char *path, struct config *out, char *why)
{
    struct config_error err;

    if (!path) {
        snprintf(why, SETTINGS_WRONG_BYTES_MAX, "there was no settings file at the start");
        log_warning("reload: %s", why);
        return -1;
    }
    if (config_load(path, out, &err) == 0)
        return 0;
    snprintf(why, SETTINGS_WRONG_BYTES_MAX, "%.*s", SETTINGS_WRONG_BYTES_MAX - 1, err.text);
    for (char *end = strchr(why, '\n'); end; end = strchr(end, '\n'))
        *end = ';';
    say(&err);
    log_error("reload: nothing has changed, since %s is wrong", path);
    return -1;
}

int settings_reload(struct settings *settings, struct settings_reloaded *out)
{
    const struct log_about about = {.kind = LOG_KIND_RELOADED};
    struct config config;

    *out = (struct settings_reloaded){0};
    if (read_again(settings->path, &config, out->wrong) < 0)
        return -1;
    config_compare(&settings->config, &config, add_change, out);
    config_exchange_live(&settings->config, &config);
    config_fini(&config);
    settings_set_level(settings, settings->level_set);
    settings->read_ms = boot_now_ms();
    if (!out->needs_restart[0])
        settings->degraded[0] = '\0';
    log_write_about(LOG_LEVEL_INFO, &about, "reload: changed: %s; needs a restart: %s",
                    out->changed[0] ? out->changed : "nothing",
                    out->needs_restart[0] ? out->needs_restart : "nothing");
    return 0;
}

void settings_set_level(struct settings *settings, int level)
{
    settings->level_set = level;
    settings_apply_log(&settings->config);
    if (level != 0)
        log_set_level((enum log_level)level);
}

/* ---- keeping them ---- */

struct keeping {
    uv_work_t work;
    const struct settings *settings;
    int err;
};

static bool is_kept(const struct settings *settings, const char *path)
{
    struct config_error err;
    size_t len;
    char *kept;
    bool same;

    if (access(path, F_OK) < 0 || config_read(path, &kept, &len, &err) < 0)
        return false;
    same = len == settings->text_len && memcmp(kept, settings->text, len) == 0;
    free(kept);
    return same;
}

static void keep(uv_work_t *work)
{
    struct keeping *keeping = work->data;
    const struct settings *settings = keeping->settings;
    char *path = path_join(settings->config.state_dir, SETTINGS_LAST_GOOD);

    if (!is_kept(settings, path))
        keeping->err = file_replace_synced(path, settings->text, settings->text_len);
    free(path);
}

static void on_kept(uv_work_t *work, int status)
{
    struct keeping *keeping = work->data;

    (void)status;
    if (keeping->err)
        log_warning("%s/" SETTINGS_LAST_GOOD
                    ": %s; a settings file that is wrong at the next start "
                    "is not answered with these ones",
                    keeping->settings->config.state_dir, strerror(-keeping->err));
    free(keeping);
}

void settings_keep(const struct settings *settings, uv_loop_t *loop)
{
    struct keeping *keeping;

    if (settings->degraded[0])
        return;
    keeping = must(calloc(1, sizeof *keeping));
    keeping->settings = settings;
    keeping->work.data = keeping;
    uv_queue_work(loop, &keeping->work, keep, on_kept);
}
