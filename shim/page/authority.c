#include "shim/page/authority.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define NAME_BYTES_MAX 64

/* ":8080", or nothing. */
static bool is_port(const char *text)
{
    return *text == '\0' || (*text == ':' && text[1 + strspn(text + 1, "0123456789")] == '\0');
}

bool authority_is_local(const char *host)
{
    bool bracket = *host == '[';
    const char *begin = host + bracket, *end = begin + strcspn(begin, bracket ? "]" : ":");
    char name[NAME_BYTES_MAX];
    struct in6_addr address;

    if ((size_t)(end - begin) >= sizeof name || (bracket && *end != ']'))
        return false;
    memcpy(name, begin, (size_t)(end - begin));
    name[end - begin] = '\0';
    if (!is_port(end + bracket))
        return false;
    if (bracket)
        return inet_pton(AF_INET6, name, &address) == 1;
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &address) == 1;
}
