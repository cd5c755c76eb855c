/*
 * The settings file: any bytes are either read, or refused with file, line and column.
 */
#include <string.h>

#include <sys/mman.h>
#include <unistd.h>

#include "config/config.h"
#include "tests/fuzz/fuzz.h"

#define FILE_BYTES_MAX (1024 * 1024)

/* Skips a number and the ':' behind it; NULL: it is not there. */
static const char *skip_number(const char *at)
{
    size_t digits = strspn(at, "0123456789");

    return digits > 0 && at[digits] == ':' ? at + digits + 1 : NULL;
}

/* "FILE:LINE:COLUMN: text" */
static void check_error(const char *path, const struct config_error *err)
{
    const char *at = err->text + strlen(path);

    FUZZ_CHECK(strnlen(err->text, sizeof err->text) < sizeof err->text, "no end");
    FUZZ_CHECK(strncmp(err->text, path, strlen(path)) == 0 && *at == ':', "%s", err->text);
    at = skip_number(at + 1);
    at = at ? skip_number(at) : NULL;
    FUZZ_CHECK(at && at[0] == ' ' && at[1] != '\0', "%s", err->text);
    FUZZ_CHECK(strstr(at, "; "), "no advice: %s", err->text);
}

static void check_bridge(const struct config_bridge *bridge)
{
    FUZZ_CHECK(bridge->socket && bridge->socket[0] == '/', "socket");
    FUZZ_CHECK(bridge->kubelet_plugin_dir && bridge->kubelet_plugin_dir[0] == '/', "directory");
    FUZZ_CHECK(strlen(bridge->kubelet_plugin_dir) + sizeof "/cri-device-shim/" - 1 + 40 <= 107,
               "%s", bridge->kubelet_plugin_dir);
    FUZZ_CHECK(bridge->preferred_timeout_ms > 0 && bridge->gate_timeout_ms > 0, "no time");
    FUZZ_CHECK(!bridge->gate || bridge->kubelet_processes_len > 0, "a gate without a kubelet");
    for (size_t i = 0; i < bridge->kubelet_processes_len; i++)
        FUZZ_CHECK(strlen(bridge->kubelet_processes[i]) - 1 < 15, "%s",
                   bridge->kubelet_processes[i]);
}

static void check_config(const struct config *config)
{
    FUZZ_CHECK(config->listen && config->runtime_endpoint && config->state_dir &&
                   config->plugin_dir,
               "a path is missing");
    FUZZ_CHECK(config->log_level >= 0 && config->log_level <= 7, "%d", config->log_level);
    FUZZ_CHECK(!config->annotations_enabled || config->annotation_namespaces_len > 0,
               "annotations without a namespace");
    check_bridge(&config->bridge);
    for (size_t i = 0; i < config->devices_len; i++) {
        const struct config_device *device = &config->devices[i];

        FUZZ_CHECK(device->resource && !device->path == (device->paths_len > 0), "one of two");
        FUZZ_CHECK(!device->path || device->path[0] == '/', "%s", device->path);
        for (size_t n = 0; n < device->paths_len; n++)
            FUZZ_CHECK(device->paths[n].host[0] == '/' && device->paths[n].container[0] == '/',
                       "%s", device->paths[n].host);
        FUZZ_CHECK(device->count >= 1, "%s", device->resource);
        FUZZ_CHECK(*device->permissions &&
                       strspn(device->permissions, "rwm") == strlen(device->permissions),
                   "%s", device->permissions);
        for (size_t j = 0; j < i; j++)
            FUZZ_CHECK(strcmp(config->devices[j].resource, device->resource) != 0, "%s",
                       device->resource);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct config config = {0};
    struct config_error err = {{0}};
    char path[64];

    if (size > FILE_BYTES_MAX)
        return -1;
    if (fd < 0)
        fd = memfd_create("config.toml", 0);
    if (fd < 0 || ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (config_load(path, &config, &err) == 0)
        check_config(&config);
    else
        check_error(path, &err);
    config_fini(&config);
    return 0;
}
