#include "shim/registry/info.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "cri-proto/kube_name.h"
#include "cri-proto/methods.h"
#include "cri-proto/resource_name.h"
#include "shim/registry/limits.h"

#define ENDPOINT_BYTES_MAX (sizeof((struct sockaddr_un *)NULL)->sun_path - 1)
/* Of a plugin's own words in ours. */
#define QUOTED_BYTES_MAX 256
/* Under the kubelet's root, wherever that is. */
#define KUBELETS_DIRECTORY "/plugins_registry"

struct quoted {
    char text[QUOTED_BYTES_MAX + 8];
};

/* What can be shown and sent: a string that is not UTF-8 would fail the plugin's own decoder. */
static struct quoted quote(const char *words)
{
    struct quoted q = {.text = "\""};
    size_t len = 1;

    for (; *words && len < QUOTED_BYTES_MAX; words++)
        q.text[len++] = (char)(*words >= ' ' && *words <= '~' ? *words : '?');
    strcpy(q.text + len, *words ? "...\"" : "\"");
    return q;
}

enum info_kind info_kind(const Pluginregistration__PluginInfo *info)
{
    if (strcmp(info->type, "DRAPlugin") == 0)
        return INFO_DRIVER;
    return strcmp(info->type, "DevicePlugin") == 0 ? INFO_PLUGIN : INFO_OTHER;
}

/* What is under that name on the host is not asked: it may be what a process has left that was
 * killed before its pod was given our directory. */
static bool is_in_its_container(const char *endpoint, const char *socket)
{
    const char *name = strrchr(socket, '/'), *end = strrchr(endpoint, '/');
    size_t len = strlen(KUBELETS_DIRECTORY);

    return name && end && strcmp(end, name) == 0 && (size_t)(end - endpoint) >= len &&
           memcmp(end - len, KUBELETS_DIRECTORY, len) == 0;
}

const char *info_endpoint(const Pluginregistration__PluginInfo *info, const char *socket)
{
    if (!info->endpoint[0] || is_in_its_container(info->endpoint, socket))
        return socket;
    return info->endpoint;
}

static bool check_endpoint(const char *endpoint, char *words)
{
    bool absolute = endpoint[0] == '/';

    for (const char *at = endpoint; *at; at++)
        absolute = absolute && *at >= ' ' && *at != 0x7f;
    if (absolute && strlen(endpoint) <= ENDPOINT_BYTES_MAX)
        return true;
    snprintf(words, INFO_WORDS_BYTES_MAX,
             "the endpoint %s is not the absolute path of a unix socket of at most %zu bytes",
             quote(endpoint).text, ENDPOINT_BYTES_MAX);
    return false;
}

static bool check_versions(const Pluginregistration__PluginInfo *info, char *words)
{
    size_t longest = 0;

    for (size_t i = 0; i < info->n_supported_versions; i++) {
        size_t len = strlen(info->supported_versions[i]);

        longest = len > longest ? len : longest;
    }
    if (info->n_supported_versions <= REGISTRY_VERSIONS_MAX &&
        longest <= REGISTRY_VERSION_BYTES_MAX)
        return true;
    snprintf(words, INFO_WORDS_BYTES_MAX,
             "more than %d supported versions, or one of more than %d bytes", REGISTRY_VERSIONS_MAX,
             REGISTRY_VERSION_BYTES_MAX);
    return false;
}

static bool check_driver(const Pluginregistration__PluginInfo *info, char *words)
{
    /* As the API server wants it in a driver's ResourceSlices. */
    if (kube_name_is_dns_subdomain(info->name, strlen(info->name)))
        return true;
    snprintf(words, INFO_WORDS_BYTES_MAX,
             "the driver name %s is not a DNS subdomain of at most %d bytes",
             quote(info->name).text, KUBE_SUBDOMAIN_BYTES_MAX);
    return false;
}

/* As Go's %v shows a list of strings: "[a b]". */
static void list_versions(const Pluginregistration__PluginInfo *info, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "[");

    for (size_t i = 0; i < info->n_supported_versions && used < size; i++) {
        struct quoted version = quote(info->supported_versions[i]);

        version.text[strlen(version.text) - 1] = '\0';
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? " " : "", version.text + 1);
    }
    if (used < size)
        snprintf(out + used, size - used, "]");
}

static bool check_plugin(const Pluginregistration__PluginInfo *info, char *words)
{
    char versions[INFO_WORDS_BYTES_MAX / 2];

    for (size_t i = 0; i < info->n_supported_versions; i++) {
        if (strcmp(info->supported_versions[i], DEVICEPLUGIN_VERSION) != 0)
            continue;
        if (resource_name_valid(info->name))
            return true;
        snprintf(words, INFO_WORDS_BYTES_MAX,
                 "invalid name of device plugin socket: the ResourceName %s is invalid",
                 quote(info->name).text);
        return false;
    }
    list_versions(info, versions, sizeof versions);
    snprintf(words, INFO_WORDS_BYTES_MAX,
             "manager version, " DEVICEPLUGIN_VERSION ", is not among plugin supported versions %s",
             versions);
    return false;
}

bool info_check(const Pluginregistration__PluginInfo *info, const char *socket,
                char words[static INFO_WORDS_BYTES_MAX])
{
    enum info_kind kind = info_kind(info);

    if (kind == INFO_OTHER)
        return true;
    return check_versions(info, words) && check_endpoint(info_endpoint(info, socket), words) &&
           (kind == INFO_DRIVER ? check_driver(info, words) : check_plugin(info, words));
}
