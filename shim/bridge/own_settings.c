#include "shim/bridge/own_settings.h"

#include <inttypes.h>
#include <string.h>

#include "shim/log.h"

static bool is_format(int format)
{
    return format >= CONFIG_LOG_AUTO && format <= CONFIG_LOG_JOURNAL;
}

static const char *format_name(enum config_log_format format)
{
    static const char *const names[] = {[CONFIG_LOG_AUTO] = "auto",
                                        [CONFIG_LOG_LOGFMT] = "logfmt",
                                        [CONFIG_LOG_JSON] = "json",
                                        [CONFIG_LOG_PLAIN] = "plain",
                                        [CONFIG_LOG_JOURNAL] = "journal"};

    return names[format];
}

/* What needs a restart. */
static bool is_same(const struct config_bridge *own, const Bridge__V1__Settings *daemons)
{
    return strcmp(own->kubelet_plugin_dir, daemons->kubelet_plugin_dir) == 0;
}

/* What the file may say (config/schema.c). */
static bool is_preferred_timeout(uint64_t ms)
{
    return ms >= 1 && ms <= 10000;
}

/* It counts whenever the file was read. */
static void take_level(struct settings *own, int level)
{
    if (level == own->level_set || (level != 0 && !log_level_name(level)))
        return;
    settings_set_level(own, level);
    log_info("log level as the daemon's: %s",
             log_level_name(level ? level : own->config.log_level));
}

bool own_settings_take(struct settings *own, const Bridge__V1__Settings *daemons)
{
    const struct log_about about = {.kind = LOG_KIND_RELOADED};
    struct config *config = &own->config;
    int level = config->log_level;
    enum config_log_format format = config->log_format;
    uint64_t preferred_ms = config->bridge.preferred_timeout_ms;
    bool mended;

    take_level(own, daemons->log_level_set);
    if (daemons->read_ms <= own->read_ms)
        return false;
    own->read_ms = daemons->read_ms;
    if (log_level_name(daemons->log_level)) /* else this release does not know it */
        level = daemons->log_level;
    if (is_format((int)daemons->log_format))
        format = (enum config_log_format)daemons->log_format;
    if (is_preferred_timeout(daemons->preferred_timeout_ms))
        preferred_ms = daemons->preferred_timeout_ms;
    mended = own->degraded[0] && is_same(&config->bridge, daemons);
    if (level == config->log_level && format == config->log_format &&
        preferred_ms == config->bridge.preferred_timeout_ms && !mended)
        return false;
    config->log_level = level;
    config->bridge.preferred_timeout_ms = preferred_ms;
    config->log_format = format;
    settings_set_level(own, own->level_set);
    if (mended)
        own->degraded[0] = '\0';
    log_write_about(
        LOG_LEVEL_INFO, &about,
        "reload: as the daemon's: log.level %s, log.format %s, bridge.preferred_timeout "
        "%" PRIu64 "ms%s",
        log_level_name(level), format_name(format), preferred_ms,
        mended ? "; all settings are the file's again" : "");
    return true;
}
