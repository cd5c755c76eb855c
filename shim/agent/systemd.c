#include "shim/agent/systemd.h"

#include <stdbool.h>
#include <stddef.h>

#include "shim/library.h"

#define LIBRARY "libsystemd.so.0"

#define FUNCTION(name)                                                                             \
    {                                                                                              \
        "sd_bus_" #name, offsetof(struct systemd, name)                                            \
    }

static const struct library_function FUNCTIONS[] = {
    FUNCTION(open_system),     FUNCTION(close_unref),       FUNCTION(set_method_call_timeout),
    FUNCTION(get_fd),          FUNCTION(get_events),        FUNCTION(get_timeout),
    FUNCTION(process),         FUNCTION(call_method_async), FUNCTION(match_signal_async),
    FUNCTION(add_match_async), FUNCTION(message_get_error), FUNCTION(message_enter_container),
    FUNCTION(message_read),
};

const struct systemd *systemd_load(const char **why)
{
    static struct systemd functions;
    static bool loaded;
    const char *words = NULL;

    if (!loaded)
        words = library_load(LIBRARY, FUNCTIONS, sizeof FUNCTIONS / sizeof *FUNCTIONS, &functions);
    loaded = !words;
    if (why)
        *why = words;
    return loaded ? &functions : NULL;
}
