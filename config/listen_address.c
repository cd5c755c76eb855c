#include "config/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/schema.h"

/* 0: it is no port. */
static uint16_t port_of(const char *text)
{
    size_t len = strspn(text, "0123456789");
    unsigned long port =
        len > 0 && len <= 5 && text[len] == '\0' && *text != '0' ? strtoul(text, NULL, 10) : 0;

    return port <= UINT16_MAX ? (uint16_t)port : 0;
}

bool listen_address_parse(const char *text, struct listen_address *out)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct listen_address found = {0};
    const char *colon = strrchr(text, ':');
    char host[INET_ADDRSTRLEN] = "";

    if (*text == '/') {
        if (!text_is_absolute(text) || strlen(text) > SOCKET_BYTES_MAX)
            return false;
        *out = found;
        return true;
    }
    if (!colon || port_of(colon + 1) == 0)
        return false;
    v4.sin_port = v6.sin6_port = htons(port_of(colon + 1));
    if ((size_t)(colon - text) < sizeof host)
        memcpy(host, text, (size_t)(colon - text));
    if (strncmp(text, "[::1]:", 6) == 0 && colon == text + 5) {
        memcpy(&found.to, &v6, sizeof v6);
        found.len = sizeof v6;
    } else if (inet_pton(AF_INET, host, &v4.sin_addr) == 1 &&
               ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET) {
        memcpy(&found.to, &v4, sizeof v4);
        found.len = sizeof v4;
    } else {
        return false;
    }
    *out = found;
    return true;
}
