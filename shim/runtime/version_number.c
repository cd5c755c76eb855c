#include "shim/runtime/version_number.h"

#include <stdio.h>

unsigned version_number(const char *version)
{
    unsigned major, minor, patch = 0;

    /* NOLINTNEXTLINE(cert-err34-c): three digits always fit */
    if (sscanf(version + (version[0] == 'v'), "%3u.%3u.%3u", &major, &minor, &patch) < 2)
        return 0;
    return VERSION_NUMBER(major, minor, patch);
}
