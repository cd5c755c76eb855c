/*
 * One line of the log in each of its forms.
 */
#ifndef SHIM_LOG_LINE_H
#define SHIM_LOG_LINE_H

#include <stddef.h>
#include <time.h>

#include "shim/log.h"

/* All of a line. A pipe takes so many bytes whole, or not at all (PIPE_BUF, pipe(7)); the journal's
 * socket takes any such datagram, so that none has to go by a memfd. */
#define LOG_LINE_BYTES_MAX 4096
/* Its text, before anything is escaped; and a name that it is about. What is longer is cut. */
#define LOG_TEXT_BYTES_MAX 2000
#define LOG_NAME_BYTES_MAX 320

enum log_form {
    LOG_FORM_TERMINAL, /* plain */
    LOG_FORM_PLAIN,
    LOG_FORM_SYSLOG, /* "<6>" and the text */
    LOG_FORM_LOGFMT,
    LOG_FORM_JSON,
    LOG_FORM_JOURNAL, /* a datagram */
};

struct log_line {
    enum log_level level;
    struct log_about about;
    struct timespec now;
    const char *text; /* without control characters */
    size_t text_len;
};

/* Writes it, with the newline that ends it; returns how many bytes. */
size_t log_line_put(enum log_form form, const struct log_line *line, char out[LOG_LINE_BYTES_MAX]);

#endif
