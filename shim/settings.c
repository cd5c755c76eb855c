#include "shim/settings.h"

#include <string.h>
#include <unistd.h>

#include "shim/log.h"

int settings_load(const char *path, struct config *out)
{
    struct config_error err;

    if (!path && access(CONFIG_PATH_DEFAULT, F_OK) == 0)
        path = CONFIG_PATH_DEFAULT;
    if (config_load(path, out, &err) == 0)
        return 0;
    for (char *rest = err.text, *line; (line = strsep(&rest, "\n"));)
        log_error("%s", line);
    return -1;
}
