#include "shim/runtime/cdi_support.h"

#include <string.h>

#include <jansson.h>

#include "shim/runtime/version_number.h"

#define CONTAINERD "containerd"
#define CRIO "cri-o"

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
        return version == 0 || version >= VERSION_NUMBER(1, 7, 2) ? DEVICEMGR_CDI_READ
                                                                  : DEVICEMGR_CDI_ANNOTATED;
    case OFF:
        return DEVICEMGR_CDI_NONE;
    default:
        break;
    }
    if (version > 0 && version < VERSION_NUMBER(1, 7, 0))
        return DEVICEMGR_CDI_NONE;
    return settings && version >= VERSION_NUMBER(2, 0, 0) ? DEVICEMGR_CDI_READ
                                                          : DEVICEMGR_CDI_UNKNOWN;
}

static enum devicemgr_cdi of_crio(unsigned version)
{
    if (version == 0)
        return DEVICEMGR_CDI_UNKNOWN;
    if (version < VERSION_NUMBER(1, 24, 0))
        return DEVICEMGR_CDI_NONE;
    return version < VERSION_NUMBER(1, 28, 0) ? DEVICEMGR_CDI_ANNOTATED : DEVICEMGR_CDI_READ;
}

bool cdi_support_by_settings(const char *name)
{
    return strcmp(name, CONTAINERD) == 0;
}

enum devicemgr_cdi cdi_support(const char *name, const char *version, const char *settings)
{
    if (strcmp(name, CONTAINERD) == 0)
        return of_containerd(version_number(version), settings);
    if (strcmp(name, CRIO) == 0)
        return of_crio(version_number(version));
    return DEVICEMGR_CDI_UNKNOWN;
}
