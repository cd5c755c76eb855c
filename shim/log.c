#include "shim/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES_MAX 2048

static enum log_level level_max = LOG_LEVEL_INFO;

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
    if (write(STDERR_FILENO, line, head + (size_t)text + 1) < 0)
        return; /* nowhere left to say it */
}
