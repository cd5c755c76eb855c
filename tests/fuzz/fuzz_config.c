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

/* "FILE:LINE:COLUMN: text"; the place behind that of the line before, or the same. */
static void check_line(const char *path, const char *line, unsigned long before[2])
{
    const char *at = line + strlen(path);
    unsigned long place[2];

    FUZZ_CHECK(strncmp(line, path, strlen(path)) == 0 && *at == ':', "%s", line);
    place[0] = strtoul(at + 1, NULL, 10);
    at = skip_number(at + 1);
    place[1] = at ? strtoul(at, NULL, 10) : 0;
    at = at ? skip_number(at) : NULL;
    FUZZ_CHECK(at && at[0] == ' ' && at[1] != '\0', "%s", line);
    FUZZ_CHECK(strstr(at, "; "), "no advice: %s", line);
    FUZZ_CHECK(place[0] > before[0] || (place[0] == before[0] && place[1] >= before[1]), "%s",
               line);
    memcpy(before, place, sizeof place);
}

/* Lines of mistakes; behind them, "and 3 more". */
static void check_error(const char *path, struct config_error *err)
{
    unsigned long before[2] = {0, 0};
    char *rest = err->text, *line;
    unsigned lines = 0;

    FUZZ_CHECK(strnlen(err->text, sizeof err->text) < sizeof err->text, "no end");
    while ((line = strsep(&rest, "\n"))) {
        if (lines++ > 0 && !rest && strncmp(line, "and ", 4) == 0)
            break;
        FUZZ_CHECK(lines <= 20, "%u lines", lines);
        check_line(path, line, before);
    }
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
    struct config_error err = {.text = ""};
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
