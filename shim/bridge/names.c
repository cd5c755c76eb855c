#include "shim/bridge/names.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "shim/hash.h"

#define SUFFIX ".sock"
/* "-" and 64 bits in hex */
#define HASH_BYTES 17

char *name_endpoint(const char *dir, const char *resource)
{
    size_t path_max = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    size_t fixed = strlen(dir) + strlen("/" NAMES_SUBDIRECTORY "/" SUFFIX);
    size_t room = path_max > fixed ? path_max - fixed : 0;
    char *endpoint;
    int n;

    if (strlen(resource) <= room)
        n = asprintf(&endpoint, NAMES_SUBDIRECTORY "/%s" SUFFIX, resource);
    else if (room > HASH_BYTES)
        n = asprintf(&endpoint, NAMES_SUBDIRECTORY "/%.*s-%016llx" SUFFIX, (int)(room - HASH_BYTES),
                     resource,
                     (unsigned long long)hash_bytes(HASH_BEGIN, resource, strlen(resource)));
    else
        return NULL;
    if (n < 0)
        abort(); /* out of memory */
    for (char *at = endpoint + strlen(NAMES_SUBDIRECTORY "/"); (at = strchr(at, '/'));)
        *at = '_';
    return endpoint;
}
