#include "shim/service_manager.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PASSED_FD_FIRST 3

int service_manager_notify(const char *state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path ? strlen(path) : 0;
    ssize_t sent;
    int fd, r;

    if (len == 0)
        return 0;
    if (len >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') /* the abstract namespace, unix(7) */
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    sent =
        sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    r = sent < 0 ? -errno : 0;
    close(fd);
    return r;
}

/* The variable as a whole number; -1 for anything else. */
static long number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long number;

    if (!text || *text < '0' || *text > '9')
        return -1;
    errno = 0;
    number = strtol(text, &end, 10);
    return *end == '\0' && errno == 0 ? number : -1;
}

static bool is(int fd, int option, int wanted)
{
    int value = -1;
    socklen_t len = sizeof value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == wanted;
}

static bool is_listening_unix_stream(int fd)
{
    return is(fd, SO_DOMAIN, AF_UNIX) && is(fd, SO_TYPE, SOCK_STREAM) && is(fd, SO_ACCEPTCONN, 1);
}

static int take(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return -1;
    return fd;
}

int service_manager_socket(void)
{
    long pid = number_of("LISTEN_PID");
    long n = number_of("LISTEN_FDS");
    int found = -1;

    if (pid == (long)getpid() && n > 0 && n < INT_MAX - PASSED_FD_FIRST) {
        for (int fd = PASSED_FD_FIRST; fd < PASSED_FD_FIRST + (int)n && found < 0; fd++) {
            if (is_listening_unix_stream(fd))
                found = take(fd);
        }
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return found;
}
