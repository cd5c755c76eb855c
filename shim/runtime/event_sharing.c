#include "shim/runtime/event_sharing.h"

#include <string.h>

#include "shim/runtime/version_number.h"

static bool of_containerd(unsigned version)
{
    return version >= VERSION_NUMBER(2, 0, 0) || (version > 0 && version < VERSION_NUMBER(1, 7, 0));
}

bool event_sharing(const char *name, const char *version)
{
    if (strcmp(name, "containerd") == 0)
        return of_containerd(version_number(version));
    if (strcmp(name, "cri-o") == 0)
        return version_number(version) >= VERSION_NUMBER(1, 28, 0);
    return name[0] != '\0';
}
