#include "shim/runtime/cdi_support.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#define CONTAINERD "containerd"
#define CRIO "cri-o"

/* "v1.7.24~ds1" is 1'007'024; 0: it is no version. */
static unsigned number_of(const char *version)
{
    unsigned major, minor, patch = 0;

    /* NOLINTNEXTLINE(cert-err34-c): three digits always fit */
    if (sscanf(version + (version[0] == 'v'), "%3u.%3u.%3u", &major, &minor, &patch) < 2)
        return 0;
    return (major * 1000 + minor) * 1000 + patch;
}
#define VERSION(major, minor, patch) (((major)*1000 + (minor)) * 1000 + (patch))

enum set { UNSET, OFF, ON };

static enum set enable_cdi(const char *settings)
{
    json_t *root = settings ? json_loads(settings, 0, NULL) : NULL;
    const json_t *value = json_object_get(root, "enableCDI");
    enum set set = json_is_true(value) ? ON : json_is_false(value) ? OFF : UNSET;

    json_decref(root);
    return set;
}

static enum devicemgr_cdi of_containerd(unsigned version, const char *settings)
{
    switch (enable_cdi(settings)) {
    case ON:
        return version == 0 || version >= VERSION(1, 7, 2) ? DEVICEMGR_CDI_READ
                                                           : DEVICEMGR_CDI_ANNOTATED;
    case OFF:
        return DEVICEMGR_CDI_NONE;
    default:
        break;
    }
    if (version > 0 && version < VERSION(1, 7, 0))
        return DEVICEMGR_CDI_NONE;
    return settings && version >= VERSION(2, 0, 0) ? DEVICEMGR_CDI_READ : DEVICEMGR_CDI_UNKNOWN;
}

static enum devicemgr_cdi of_crio(unsigned version)
{
    if (version == 0)
        return DEVICEMGR_CDI_UNKNOWN;
    if (version < VERSION(1, 24, 0))
        return DEVICEMGR_CDI_NONE;
    return version < VERSION(1, 28, 0) ? DEVICEMGR_CDI_ANNOTATED : DEVICEMGR_CDI_READ;
}

bool cdi_support_is_set(const char *name)
{
    return strcmp(name, CONTAINERD) == 0;
}

enum devicemgr_cdi cdi_support(const char *name, const char *version, const char *settings)
{
    if (strcmp(name, CONTAINERD) == 0)
        return of_containerd(number_of(version), settings);
    if (strcmp(name, CRIO) == 0)
        return of_crio(number_of(version));
    return DEVICEMGR_CDI_UNKNOWN;
}
