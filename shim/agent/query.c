#include "shim/agent/query.h"

#include <stdio.h>
#include <string.h>

static void put(struct query *query, const char *text)
{
    size_t len = strlen(text);

    if (len >= sizeof query->text - query->len) {
        query->too_long = true;
        return;
    }
    memcpy(query->text + query->len, text, len + 1);
    query->len += len;
}

/* RFC 3986 section 2.1: all but what is unreserved. */
static void put_escaped(struct query *query, const char *text)
{
    static const char PLAIN[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

    for (; *text; text++) {
        char piece[4] = {*text};

        if (!strchr(PLAIN, *text))
            snprintf(piece, sizeof piece, "%%%02X", (unsigned char)*text);
        put(query, piece);
    }
}

void query_begin(struct query *query, const char *path)
{
    query->len = 0;
    query->too_long = false;
    query->text[0] = '\0';
    put(query, path);
}

void query_segment(struct query *query, const char *segment)
{
    put(query, "/");
    put_escaped(query, segment);
}

void query_add(struct query *query, const char *name, const char *value)
{
    put(query, strchr(query->text, '?') ? "&" : "?");
    put(query, name);
    put(query, "=");
    put_escaped(query, value);
}
