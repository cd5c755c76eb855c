#include "shim/ctl/show.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/printable.h"

#define DURATION_NUMBER_MAX 1000000

bool show_format_parse(const char *name, enum show_format *out)
{
    static const struct {
        const char *name;
        enum show_format format;
    } FORMATS[] = {{"json", SHOW_JSON}, {"wide", SHOW_WIDE}, {"name", SHOW_NAME}};

    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        if (strcmp(FORMATS[i].name, name) == 0) {
            *out = FORMATS[i].format;
            return true;
        }
    }
    return false;
}

/* Of a long text fputs(3) writes a part itself: after it has failed fflush(3) may find nothing that
 * is left to do. */
int show_write_out(const char *text)
{
    return fputs(text, stdout) >= 0 && fflush(stdout) == 0 ? 0 : -errno;
}

bool show_is_unread(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};

    return poll(&out, 1, 0) == 1 && out.revents & POLLERR;
}

bool show_is_taken(int wait_ms)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&out, 1, wait_ms) == 1;
}

void show_put(const struct show *show, const char *text)
{
    put_printable(show->out, text);
}

const char *show_age(uint64_t ms, char out[static SHOW_AGE_BYTES])
{
    uint64_t s = ms / 1000;

    if (s < 120)
        snprintf(out, SHOW_AGE_BYTES, "%" PRIu64 "s", s);
    else if (s < 3600)
        snprintf(out, SHOW_AGE_BYTES, "%" PRIu64 "m%" PRIu64 "s", s / 60, s % 60);
    else if (s < 24 * 3600)
        snprintf(out, SHOW_AGE_BYTES, "%" PRIu64 "h%" PRIu64 "m", s / 3600, s / 60 % 60);
    else
        snprintf(out, SHOW_AGE_BYTES, "%" PRIu64 "d%" PRIu64 "h", s / 86400, s / 3600 % 24);
    return out;
}

bool show_duration_parse(const char *text, uint64_t *ms)
{
    static const struct {
        char letter;
        uint64_t s;
    } UNITS[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};
    size_t unit = 0;
    uint64_t s = 0;

    do {
        unsigned long n;
        char *end;

        if (*text < '0' || *text > '9')
            return false;
        errno = 0;
        n = strtoul(text, &end, 10);
        while (unit < 4 && UNITS[unit].letter != *end)
            unit++;
        if (unit == 4 || errno || n > DURATION_NUMBER_MAX)
            return false;
        s += n * UNITS[unit++].s;
        text = end + 1;
    } while (*text);
    *ms = s * 1000;
    return true;
}

void show_json(const struct show *show, json_t *value)
{
    if (json_dumpf(value, show->out, show->one_line ? JSON_COMPACT : JSON_INDENT(2)) < 0)
        abort(); /* out of memory: the texts are UTF-8, and `out` is memory */
    fputc('\n', show->out);
    json_decref(value);
}
