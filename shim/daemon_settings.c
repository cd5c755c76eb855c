#include "shim/daemon_settings.h"

int daemon_reload(struct settings *settings, struct host *host, struct feed *feed, bool ready,
                  struct settings_reloaded *out)
{
    int result = settings_reload(settings, out);

    if (result < 0)
        return result;
    host_settings_changed(host);
    if (feed)
        feed_settings_read(feed, settings);
    if (ready)
        settings_tell_ready(settings);
    return 0;
}

void daemon_set_level(struct settings *settings, struct feed *feed, int level)
{
    settings_set_level(settings, level);
    if (feed)
        feed_settings_read(feed, settings);
}
