/*
 * Log lines: one event a line, on stderr. Where that is the journal's stream, each behind the
 * syslog priority that the journal reads (sd-daemon(3)); on a terminal behind the time of day,
 * anywhere else behind date and time, and with a word for every level but info.
 *
 * Never waits for who reads them: a line that a pipe, a socket or a terminal does not take at once is
 * lost and counted, and the count is told in front of the next one. Never allocates. The level and
 * the count are process-wide; lines may come from any thread. An assertion that fails, in a library
 * too, is such a line, before the process aborts.
 */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

/* Lines above this level are dropped. At start: LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);

/* Writes one line; control characters in the text are shown as '?', so a peer's words cannot forge
 * a line. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Tells how many lines were lost, if it can be told now; the next line does so, too. */
void log_tell_lost(void);

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
