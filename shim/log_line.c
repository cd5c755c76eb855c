#include "shim/log_line.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cri-proto/utf8.h"
#include "shim/log_kind.h"

/* What a form still writes behind the text. */
#define END_BYTES_MAX 4

struct writer {
    char *out;
    size_t len;
};

static void put(struct writer *w, const char *bytes, size_t len)
{
    if (len > LOG_LINE_BYTES_MAX - END_BYTES_MAX - w->len)
        return; /* of what is escaped a unit is there, or is not */
    memcpy(w->out + w->len, bytes, len);
    w->len += len;
}

static void put_text(struct writer *w, const char *text)
{
    put(w, text, strlen(text));
}

/* `format`: strftime(3)'s, a literal. */
#define put_time(w, tm, format)                                                                    \
    do {                                                                                           \
        char time_text[64];                                                                        \
        size_t time_len = strftime(time_text, sizeof time_text, format, tm);                       \
        put(w, time_text, time_len);                                                               \
    } while (0)

static void put_ms(struct writer *w, const struct timespec *now)
{
    char text[8];

    snprintf(text, sizeof text, ".%03u", (unsigned)(now->tv_nsec / 1000000) % 1000);
    put_text(w, text);
}

/* The room is END_BYTES_MAX. */
static void end(struct writer *w, const char *bytes)
{
    size_t len = strlen(bytes);

    memcpy(w->out + w->len, bytes, len);
    w->len += len;
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return "error";
    case LOG_LEVEL_WARNING:
        return "warning";
    case LOG_LEVEL_DEBUG:
        return "debug";
    default:
        return "info";
    }
}

/* ---- for people ---- */

static void put_plain(struct writer *w, const struct log_line *line, bool terminal)
{
    struct tm tm;

    localtime_r(&line->now.tv_sec, &tm);
    if (!terminal)
        put_time(w, &tm, "%FT");
    put_time(w, &tm, "%T");
    put_ms(w, &line->now);
    if (!terminal)
        put_time(w, &tm, "%z");
    put_text(w, " ");
    if (line->level != LOG_LEVEL_INFO) {
        put_text(w, level_name(line->level));
        put_text(w, ": ");
    }
    put(w, line->text, line->text_len);
}

static void put_priority(struct writer *w, enum log_level level)
{
    char text[8];

    snprintf(text, sizeof text, "%u", (unsigned)level % 10);
    put_text(w, text);
}

static void put_syslog(struct writer *w, const struct log_line *line)
{
    put_text(w, "<");
    put_priority(w, line->level);
    put_text(w, ">");
    put(w, line->text, line->text_len);
}

/* ---- for machines ---- */

/* Within quotes: what is no character is a '?'. JSON and logfmt agree on these escapes. */
static void put_escaped(struct writer *w, const char *text, size_t len)
{
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = utf8_character_bytes(text + i, len - i);
        if (n == 0 || utf8_control_bytes(text + i, len - i) > 0)
            put(w, "?", 1);
        else if (text[i] == '"' || text[i] == '\\')
            put(w, (char[]){'\\', text[i]}, 2);
        else
            put(w, text + i, n);
    }
}

static void put_utc(struct writer *w, const struct log_line *line)
{
    struct tm tm;

    gmtime_r(&line->now.tv_sec, &tm);
    put_time(w, &tm, "%FT%T");
    put_ms(w, &line->now);
    put_text(w, "Z");
}

/* ` name="value"`, or `,"name":"value"`; nothing for NULL. */
static void put_pair(struct writer *w, bool json, const char *name, const char *value)
{
    if (!value)
        return;
    put_text(w, json ? ",\"" : " ");
    put_text(w, name);
    put_text(w, json ? "\":\"" : "=\"");
    put_escaped(w, value, strnlen(value, LOG_NAME_BYTES_MAX));
    put_text(w, "\"");
}

static void put_pairs(struct writer *w, const struct log_line *line, bool json)
{
    put_text(w, json ? "{\"ts\":\"" : "ts=");
    put_utc(w, line);
    put_text(w, json ? "\",\"level\":\"" : " level=");
    put_text(w, level_name(line->level));
    put_text(w, json ? "\"" : "");
    put_pair(w, json, "kind", LOG_KIND_NAMES[line->about.kind].name);
    put_pair(w, json, "resource", line->about.resource);
    put_pair(w, json, "pod", line->about.pod);
    put_pair(w, json, "container", line->about.container);
    put_text(w, json ? ",\"msg\":\"" : " msg=\"");
    put_escaped(w, line->text, line->text_len);
}

/* ---- for the journal ---- */

/* A value has no newline: what a line is about is as much another's word as its text. */
static void put_field(struct writer *w, const char *name, const char *value, size_t len)
{
    put_text(w, name);
    put_text(w, "=");
    for (size_t i = 0, n; i<len; i += n> 0 ? n : 1) {
        n = utf8_control_bytes(value + i, len - i);
        put(w, n > 0 ? "?" : value + i, 1);
    }
    put_text(w, "\n");
}

static void put_name(struct writer *w, const char *name, const char *value)
{
    if (value)
        put_field(w, name, value, strnlen(value, LOG_NAME_BYTES_MAX));
}

static void put_journal(struct writer *w, const struct log_line *line)
{
    put_text(w, "PRIORITY=");
    put_priority(w, line->level);
    put_text(w, "\n");
    put_name(w, "SYSLOG_IDENTIFIER", program_invocation_short_name);
    put_name(w, "MESSAGE_ID", LOG_KIND_NAMES[line->about.kind].id);
    put_name(w, "KIND", LOG_KIND_NAMES[line->about.kind].name);
    put_name(w, "RESOURCE", line->about.resource);
    put_name(w, "POD", line->about.pod);
    put_name(w, "CONTAINER", line->about.container);
    put_text(w, "MESSAGE=");
    put(w, line->text, line->text_len);
}

size_t log_line_put(enum log_form form, const struct log_line *line, char out[LOG_LINE_BYTES_MAX])
{
    struct writer w = {.out = out};

    switch (form) {
    case LOG_FORM_TERMINAL:
    case LOG_FORM_PLAIN:
        put_plain(&w, line, form == LOG_FORM_TERMINAL);
        break;
    case LOG_FORM_SYSLOG:
        put_syslog(&w, line);
        break;
    case LOG_FORM_LOGFMT:
    case LOG_FORM_JSON:
        put_pairs(&w, line, form == LOG_FORM_JSON);
        end(&w, form == LOG_FORM_JSON ? "\"}" : "\"");
        break;
    case LOG_FORM_JOURNAL:
        put_journal(&w, line);
        break;
    }
    end(&w, "\n");
    return w.len;
}
