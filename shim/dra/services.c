#include "shim/dra/services.h"

#include <stdio.h>
#include <string.h>

#define HEALTH "v1alpha1.DRAResourceHealth"
#define KNOWN "[\"v1.DRAPlugin\" \"v1beta1.DRAPlugin\"]"

static const struct known {
    const char *name;
    enum driver_service service;
} SERVICES[] = {
    {"v1.DRAPlugin", DRIVER_V1},
    {"v1beta1.DRAPlugin", DRIVER_V1BETA1},
    {"v1alpha3.NodeService", DRIVER_ALPHA},
};

static const struct known *find(const char *name)
{
    for (size_t i = 0; i < sizeof SERVICES / sizeof *SERVICES; i++) {
        if (strcmp(SERVICES[i].name, name) == 0)
            return &SERVICES[i];
    }
    return NULL;
}

/* "v2beta1.Anything", and not "v1.0.0". */
static bool is_service(const char *name)
{
    const char *dot = strchr(name, '.');

    return name[0] == 'v' && name[1] >= '0' && name[1] <= '9' && dot && dot[1] >= 'A' &&
           dot[1] <= 'Z';
}

/* As Go's %q shows a list of strings. What cannot be shown or does not fit is not. */
static void list(const char *const *services, size_t len, char *out, size_t size)
{
    size_t used = 0;

    out[used++] = '[';
    for (size_t i = 0; i < len && used + strlen(services[i]) + 8 < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s\"", i > 0 ? " " : "");
        for (const char *at = services[i]; *at; at++)
            out[used++] = (char)(*at >= ' ' && *at <= '~' ? *at : '?');
        out[used++] = '"';
    }
    strcpy(out + used, "]");
}

bool services_choose(const char *const *services, size_t services_len, enum driver_service *out,
                     char words[static SERVICES_WORDS_BYTES_MAX])
{
    char listed[SERVICES_WORDS_BYTES_MAX - 256];
    bool any = false;

    for (size_t i = 0; i < services_len; i++) {
        const struct known *known = find(services[i]);

        if (known) {
            *out = known->service;
            return true;
        }
        any = any || is_service(services[i]);
    }
    if (services_len == 0) {
        snprintf(words, SERVICES_WORDS_BYTES_MAX,
                 "empty list of supported gRPC services (aka supported versions)");
        return false;
    }
    if (!any) {
        *out = DRIVER_ALPHA;
        return true;
    }
    list(services, services_len, listed, sizeof listed);
    snprintf(words, SERVICES_WORDS_BYTES_MAX,
             "none of services supported by the plugin (%s) are supported by the kubelet (%s)",
             listed, KNOWN);
    return false;
}

bool services_have_health(const char *const *services, size_t services_len)
{
    for (size_t i = 0; i < services_len; i++) {
        if (strcmp(services[i], HEALTH) == 0)
            return true;
    }
    return false;
}
