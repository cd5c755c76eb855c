#include "shim/metrics/microhttpd.h"

#include <stdbool.h>
#include <stddef.h>

#include "shim/library.h"
#include "shim/log.h"

#define LIBRARY "libmicrohttpd.so.12"

static const struct library_function FUNCTIONS[] = {
    {"MHD_start_daemon", offsetof(struct microhttpd, start_daemon)},
    {"MHD_stop_daemon", offsetof(struct microhttpd, stop_daemon)},
    {"MHD_run", offsetof(struct microhttpd, run)},
    {"MHD_get_timeout", offsetof(struct microhttpd, get_timeout)},
    {"MHD_get_daemon_info", offsetof(struct microhttpd, get_daemon_info)},
    {"MHD_get_connection_info", offsetof(struct microhttpd, get_connection_info)},
    {"MHD_lookup_connection_value", offsetof(struct microhttpd, lookup_value)},
    {"MHD_get_connection_values", offsetof(struct microhttpd, each_value)},
    {"MHD_create_response_from_buffer", offsetof(struct microhttpd, create_response)},
    {"MHD_add_response_header", offsetof(struct microhttpd, add_header)},
    {"MHD_queue_response", offsetof(struct microhttpd, queue_response)},
    {"MHD_destroy_response", offsetof(struct microhttpd, destroy_response)},
};

const struct microhttpd *microhttpd_load(void)
{
    static struct microhttpd functions;
    static bool loaded, said;
    const char *why;

    if (loaded)
        return &functions;
    why = library_load(LIBRARY, FUNCTIONS, sizeof FUNCTIONS / sizeof *FUNCTIONS, &functions);
    loaded = !why;
    if (why && !said)
        log_error("metrics: " LIBRARY ": %s", why);
    said = true;
    return loaded ? &functions : NULL;
}
