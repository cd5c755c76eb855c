#include "shim/log.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES_MAX 2048
/* A pipe takes such a line whole, or not at all (pipe(7)). */
_Static_assert(LINE_BYTES_MAX <= PIPE_BUF, "a line may be torn");

static enum log_level level_max = LOG_LEVEL_INFO;
static _Atomic unsigned long lost; /* lines, since their number was told */

void log_set_level(enum log_level level)
{
    level_max = level;
}

/* Whether stderr is the journal's stream (systemd.exec(5), $JOURNAL_STREAM): the variable alone
 * does not say so, since it is inherited also by what is redirected. */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char own[64];
    struct stat st;

    if (!stream || fstat(STDERR_FILENO, &st) < 0)
        return false;
    snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(stream, own) == 0;
}

static const char *level_word(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return "error: ";
    case LOG_LEVEL_WARNING:
        return "warning: ";
    case LOG_LEVEL_DEBUG:
        return "debug: ";
    default:
        return "";
    }
}

/* The journal has the time and takes the level; all others are given both to read. */
static size_t put_head(char *line, size_t size, enum log_level level)
{
    struct timespec now;
    struct tm tm;
    size_t len;

    if (is_journal())
        return (size_t)snprintf(line, size, "<%d>", level);
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    len = strftime(line, size, isatty(STDERR_FILENO) ? "%T" : "%FT%T", &tm);
    len += (size_t)snprintf(line + len, size - len, ".%03ld", now.tv_nsec / 1000000);
    if (!isatty(STDERR_FILENO))
        len += strftime(line + len, size - len, "%z", &tm);
    return len + (size_t)snprintf(line + len, size - len, " %s", level_word(level));
}

/* ---- writing ---- */

/*
 * What is neither a file nor a socket: a pipe, a terminal. O_NONBLOCK would do, but it belongs to the
 * open file, which others may have as their stderr, too. Where the kernel does not know RWF_NOWAIT
 * for it, poll(2) says whether there is room; between the two another process may take it.
 */
static ssize_t put_at_once(const char *line, size_t len)
{
    struct iovec bytes = {.iov_base = (char *)line, .iov_len = len};
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t n = pwritev2(STDERR_FILENO, &bytes, 1, -1, RWF_NOWAIT);

    if (n >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL))
        return n;
    return poll(&fd, 1, 0) == 1 && fd.revents & POLLOUT ? write(STDERR_FILENO, line, len) : -1;
}

/* False: it could not be written, or not without waiting. */
static bool put(const char *line, size_t len)
{
    struct stat st;

    if (fstat(STDERR_FILENO, &st) < 0)
        return false;
    if (S_ISREG(st.st_mode))
        return write(STDERR_FILENO, line, len) >= 0;
    if (S_ISSOCK(st.st_mode))
        return send(STDERR_FILENO, line, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
    return put_at_once(line, len) >= 0;
}

void log_tell_lost(void)
{
    char line[LINE_BYTES_MAX];
    unsigned long told = lost;
    size_t len;

    if (told == 0)
        return;
    len = put_head(line, sizeof line, LOG_LEVEL_WARNING);
    len += (size_t)snprintf(line + len, sizeof line - len,
                            "%lu lines before this were lost: nobody took them\n", told);
    if (put(line, len))
        lost -= told;
}

/* One that follows lost ones would hide that they are. */
static void put_or_lose(const char *line, size_t len)
{
    log_tell_lost();
    if (lost > 0 || !put(line, len))
        lost++;
}

void log_write(enum log_level level, const char *format, ...)
{
    char line[LINE_BYTES_MAX];
    size_t head;
    int text;
    va_list args;

    if (level > level_max)
        return;
    head = put_head(line, sizeof line, level);
    va_start(args, format);
    text = vsnprintf(line + head, sizeof line - head - 1, format, args);
    va_end(args);
    if (text < 0)
        return;
    if ((size_t)text > sizeof line - head - 2)
        text = (int)(sizeof line - head - 2);
    for (char *p = line + head; p < line + head + text; p++) {
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
    }
    line[head + (size_t)text] = '\n';
    put_or_lose(line, head + (size_t)text + 1);
}

/* ---- a failed assertion ---- */

/* What assert(3) calls, in the place of the C library's, which writes by stdio and waits: whoever
 * dies of its own bug must not hang over a stopped journal. */
void __assert_fail(const char *assertion, const char *file, unsigned int line, const char *function)
{
    log_error("%s:%u: %s: Assertion `%s' failed", file, line, function, assertion);
    abort();
}
