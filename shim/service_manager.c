#include "shim/service_manager.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* 0 with the address of $NOTIFY_SOCKET, or a negative errno. */
static int address_of(const char *path, struct sockaddr_un *address, socklen_t *len)
{
    size_t bytes = strlen(path);

    if (bytes >= sizeof address->sun_path)
        return -ENAMETOOLONG;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, bytes);
    if (path[0] == '@') /* the abstract namespace, unix(7) */
        address->sun_path[0] = '\0';
    *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
    return 0;
}

static const char *notify_socket(void)
{
    const char *path = getenv("NOTIFY_SOCKET");

    return path && *path ? path : NULL;
}

bool service_manager_there(void)
{
    return notify_socket();
}

/* Gives the message descriptors. */
static void attach(struct msghdr *message, char *room, const int *fds, size_t n)
{
    struct cmsghdr *head = (struct cmsghdr *)(void *)room;

    message->msg_control = room;
    message->msg_controllen = CMSG_SPACE(n * sizeof *fds);
    memset(room, 0, message->msg_controllen);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(n * sizeof *fds);
    memcpy(CMSG_DATA(head), fds, n * sizeof *fds);
}

static int datagram_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* For when there is no descriptor left: a manager that hears nothing then takes the process to
 * hang. Else a new one is better, in whose way is nothing that the manager has not read. */
static int kept_socket(void)
{
    static int kept = -1;

    if (kept < 0)
        kept = datagram_socket();
    return kept;
}

static int send_on(int fd, const struct msghdr *message)
{
    return fd < 0 || sendmsg(fd, message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int service_manager_notify_with(const char *state, const int *fds, size_t n)
{
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(SERVICE_MANAGER_FDS_MAX * sizeof *fds)];
    struct iovec bytes = {.iov_base = (char *)state, .iov_len = strlen(state)};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    const char *path = notify_socket();
    struct sockaddr_un address;
    int kept, own, r;

    if (!path)
        return 0;
    r = address_of(path, &address, &message.msg_namelen);
    if (r < 0)
        return r;
    message.msg_name = &address;
    assert(n <= SERVICE_MANAGER_FDS_MAX);
    if (n > 0)
        attach(&message, room, fds, n);
    kept = kept_socket();
    own = datagram_socket();
    r = send_on(own < 0 ? kept : own, &message);
    if (own >= 0)
        close(own);
    return r;
}

int service_manager_notify(const char *state)
{
    return service_manager_notify_with(state, NULL, 0);
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

uint64_t service_manager_watchdog_ms(void)
{
    long usec = number_of("WATCHDOG_USEC"), pid = number_of("WATCHDOG_PID");
    bool ours = !getenv("WATCHDOG_PID") || pid == (long)getpid();

    return ours && usec > 0 && notify_socket() ? (uint64_t)usec / 1000 : 0;
}

size_t service_manager_keeps(void)
{
    long n = number_of("FDSTORE");

    return n > 0 ? (size_t)n : 0;
}

size_t service_manager_passed(void)
{
    long pid = number_of("LISTEN_PID"), n = number_of("LISTEN_FDS");

    return pid == (long)getpid() && n > 0 && n < INT_MAX - SERVICE_MANAGER_FD_FIRST ? (size_t)n : 0;
}

void service_manager_forget_passed(void)
{
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}
