#include "shim/log.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "shim/hash.h"
#include "shim/log_line.h"
#include "shim/printable.h"

#define JOURNAL_PATH "/run/systemd/journal/socket"

_Static_assert(LOG_LINE_BYTES_MAX <= PIPE_BUF, "a line may be torn");

static enum log_level level_max = LOG_LEVEL_INFO;
static enum log_format format_set = LOG_FORMAT_AUTO;
static _Atomic unsigned long lost; /* lines, since their number was told */
static _Atomic unsigned long lost_ever;
static _Atomic uint64_t last;      /* what the last line was, as a hash */
static _Atomic unsigned long same; /* lines that were the same as the last, since that was told */

static const char *const LEVELS[] = {[LOG_LEVEL_ERROR] = "error",
                                     [LOG_LEVEL_WARNING] = "warning",
                                     [LOG_LEVEL_INFO] = "info",
                                     [LOG_LEVEL_DEBUG] = "debug"};
#define LEVELS_LEN (int)(sizeof LEVELS / sizeof *LEVELS)

const char *log_level_name(int level)
{
    return level > 0 && level < LEVELS_LEN ? LEVELS[level] : NULL;
}

int log_level_parse(const char *name)
{
    for (int level = LEVELS_LEN - 1; level > 0; level--) {
        if (LEVELS[level] && strcmp(LEVELS[level], name) == 0)
            return level;
    }
    return 0;
}

void log_set_level(enum log_level level)
{
    level_max = level;
}

void log_set_format(enum log_format format)
{
    format_set = format;
}

/* ---- in which form ---- */

/* Whether stderr is the journal's stream: the variable alone does not say so, since it is inherited
 * also by what is redirected. */
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

static enum log_format format_of_environment(void)
{
    static const char *const names[] = {[LOG_FORMAT_LOGFMT] = "logfmt",
                                        [LOG_FORMAT_JSON] = "json",
                                        [LOG_FORMAT_PLAIN] = "plain",
                                        [LOG_FORMAT_JOURNAL] = "journal"};
    const char *name = getenv(LOG_FORMAT_VARIABLE);

    for (int i = LOG_FORMAT_LOGFMT; name && i <= LOG_FORMAT_JOURNAL; i++) {
        if (strcmp(name, names[i]) == 0)
            return (enum log_format)i;
    }
    return LOG_FORMAT_AUTO;
}

static enum log_form form_of(enum log_format format)
{
    switch (format) {
    case LOG_FORMAT_LOGFMT:
        return LOG_FORM_LOGFMT;
    case LOG_FORMAT_JSON:
        return LOG_FORM_JSON;
    case LOG_FORMAT_PLAIN:
        return isatty(STDERR_FILENO) ? LOG_FORM_TERMINAL : LOG_FORM_PLAIN;
    case LOG_FORMAT_JOURNAL:
        return LOG_FORM_JOURNAL;
    default:
        return is_journal()            ? LOG_FORM_JOURNAL
               : isatty(STDERR_FILENO) ? LOG_FORM_TERMINAL
                                       : LOG_FORM_LOGFMT;
    }
}

static enum log_form form_now(void)
{
    return form_of(format_set == LOG_FORMAT_AUTO ? format_of_environment() : format_set);
}

/* ---- writing ---- */

/*
 * What is neither a file nor a socket: a pipe, a terminal. O_NONBLOCK would do, but it belongs to
 * the open file, which others may have as their stderr, too. Where the kernel does not know
 * RWF_NOWAIT for it, poll(2) says whether there is room; between the two another process may take
 * it.
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
static bool put_stderr(const char *line, size_t len)
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

/* By its path each time: it may be another journal's by now. 0, or -errno. */
static int put_journal(const char *datagram, size_t len)
{
    static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = JOURNAL_PATH};
    static _Atomic int journal = -1;
    int fd = journal, none = -1;

    if (fd < 0) {
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return -errno;
        if (!atomic_compare_exchange_strong(&journal, &none, fd)) {
            close(fd); /* another thread's came first */
            fd = none;
        }
    }
    return sendto(fd, datagram, len, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&address,
                  sizeof address) < 0
               ? -errno
               : 0;
}

/* One that is full is waited for like any reader; one that is not there has another way. */
static bool is_away(int error)
{
    return error == -ENOENT || error == -ECONNREFUSED || error == -EACCES || error == -EPERM;
}

static bool put(const struct log_line *line)
{
    char bytes[LOG_LINE_BYTES_MAX];
    enum log_form form = form_now();
    size_t len = log_line_put(form, line, bytes);
    int r;

    if (form == LOG_FORM_JOURNAL) {
        r = put_journal(bytes, len);
        if (!is_away(r))
            return r == 0;
        len = log_line_put(is_journal() ? LOG_FORM_SYSLOG : LOG_FORM_PLAIN, line, bytes);
    }
    return put_stderr(bytes, len);
}

/* ---- what was counted ---- */

static bool put_own(enum log_level level, enum log_kind kind, const char *text)
{
    struct log_line line = {
        .level = level, .about.kind = kind, .text = text, .text_len = strlen(text)};

    clock_gettime(CLOCK_REALTIME, &line.now);
    return put(&line);
}

static void tell_lost(void)
{
    unsigned long told = lost;
    char text[128];

    if (told == 0)
        return;
    snprintf(text, sizeof text, "%lu lines before this were lost: nobody took them", told);
    if (put_own(LOG_LEVEL_WARNING, LOG_KIND_LOST, text))
        lost -= told;
}

static void lose(unsigned long lines)
{
    lost += lines;
    lost_ever += lines;
}

unsigned long log_lost(void)
{
    return lost_ever;
}

/* One that follows lost ones would hide that they are. */
static bool put_in_order(const struct log_line *line)
{
    tell_lost();
    return lost == 0 && put(line);
}

static void tell_same(void)
{
    unsigned long told = atomic_exchange(&same, 0);
    char text[128];

    if (told == 0)
        return;
    tell_lost();
    snprintf(text, sizeof text, "the line before this came %lu times more", told);
    if (lost > 0 || !put_own(LOG_LEVEL_INFO, LOG_KIND_NONE, text))
        lose(told);
}

void log_tell_counts(void)
{
    tell_same();
    tell_lost();
}

/* ---- a line ---- */

static uint64_t hash_name(uint64_t hash, const char *name)
{
    return hash_text(hash, name ? name : "");
}

/* Whether it is the last one again; then it is counted. */
static bool repeats(const struct log_line *line)
{
    uint64_t hash = hash_bytes(HASH_BEGIN, line->text, line->text_len);

    hash = hash_word(hash, (uint64_t)line->level << 8 | line->about.kind);
    hash = hash_name(hash, line->about.resource);
    hash = hash_name(hash_name(hash, line->about.pod), line->about.container);
    if (atomic_exchange(&last, hash) != hash)
        return false;
    same++;
    return true;
}

__attribute__((format(printf, 3, 0))) static void
write_line(enum log_level level, const struct log_about *about, const char *format, va_list args)
{
    char text[LOG_TEXT_BYTES_MAX + 1];
    struct log_line line = {.level = level, .about = *about, .text = text};
    int len = vsnprintf(text, sizeof text, format, args);

    if (len < 0)
        return;
    line.text_len = len < (int)sizeof text ? (size_t)len : sizeof text - 1;
    make_printable(text);
    if (repeats(&line))
        return;
    tell_same();
    clock_gettime(CLOCK_REALTIME, &line.now);
    if (put_in_order(&line))
        return;
    lose(1);
    last = 0; /* the next one is not the same as a line that nobody has seen */
}

void log_write(enum log_level level, const char *format, ...)
{
    va_list args;

    if (level > level_max)
        return;
    va_start(args, format);
    write_line(level, &(struct log_about){0}, format, args);
    va_end(args);
}

void log_write_about(enum log_level level, const struct log_about *about, const char *format, ...)
{
    va_list args;

    if (level > level_max)
        return;
    va_start(args, format);
    write_line(level, about, format, args);
    va_end(args);
}

/* ---- the last line ---- */

/* As abort(3): who waits for the signal, as deaths.c, has it first. */
static _Noreturn void die(void)
{
    sigset_t aborting;

    sigemptyset(&aborting);
    sigaddset(&aborting, SIGABRT);
    pthread_sigmask(SIG_UNBLOCK, &aborting, NULL);
    raise(SIGABRT);
    signal(SIGABRT, SIG_DFL);
    raise(SIGABRT);
    _exit(127);
}

/* In the place of the C library's, which says nothing: what the program, or a library, cannot go on
 * without ends in it, memory most of all. */
void abort(void)
{
    log_error(errno == ENOMEM ? "out of memory: the process ends, for the next one to go on"
                              : "abort: the process ends, for the next one to go on");
    die();
}

/* What assert(3) calls, in the place of the C library's, which writes by stdio and waits: whoever
 * dies of its own bug must not hang over a stopped journal. */
void __assert_fail(const char *assertion, const char *file, unsigned int line, const char *function)
{
    log_error("%s:%u: %s: Assertion `%s' failed", file, line, function, assertion);
    die();
}
