#include "shim/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES_MAX 2048

static enum log_level level_max = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
    level_max = level;
}

static size_t put_head(char *line, size_t size, enum log_level level)
{
    static int terminal = -1;
    struct timespec now;
    struct tm tm;

    if (terminal < 0)
        terminal = isatty(STDERR_FILENO);
    if (!terminal)
        return (size_t)snprintf(line, size, "<%d>", level);
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    return (size_t)snprintf(line, size, "%02d:%02d:%02d.%03ld ", tm.tm_hour, tm.tm_min, tm.tm_sec,
                            now.tv_nsec / 1000000);
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
