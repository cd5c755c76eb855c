/*
 * Where something listens that only this node is to reach: a unix socket, or a loopback address.
 */
#ifndef CONFIG_LISTEN_ADDRESS_H
#define CONFIG_LISTEN_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

struct listen_address {
    struct sockaddr_storage to; /* of AF_INET or AF_INET6 */
    socklen_t len;              /* 0: a unix socket, whose path is the text */
};

/* An absolute path that fits sun_path, or "127.x.y.z:port" or "[::1]:port" with a port from 1 to
 * 65535. False: neither; *out is untouched then. No name is looked up. */
bool listen_address_parse(const char *text, struct listen_address *out)
    __attribute__((warn_unused_result));

#endif
