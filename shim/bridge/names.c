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

char *name_socket(const char *dir, const char *prefix, const char *name, const char *suffix)
{
    size_t path_max = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    size_t fixed = strlen(dir) + strlen("/") + strlen(prefix) + strlen(suffix);
    size_t room = path_max > fixed ? path_max - fixed : 0;
    char *socket;
    int n;

    if (strlen(name) <= room)
        n = asprintf(&socket, "%s%s%s", prefix, name, suffix);
    else if (room > HASH_BYTES)
        n = asprintf(&socket, "%s%.*s-%016llx%s", prefix, (int)(room - HASH_BYTES), name,
                     (unsigned long long)hash_bytes(HASH_BEGIN, name, strlen(name)), suffix);
    else
        return NULL;
    if (n < 0)
        abort(); /* out of memory */
    for (char *at = socket + strlen(prefix); (at = strchr(at, '/'));)
        *at = '_';
    return socket;
}

char *name_endpoint(const char *dir, const char *resource)
{
    return name_socket(dir, NAMES_SUBDIRECTORY "/", resource, SUFFIX);
}
