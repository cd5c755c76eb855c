/*
 * Paths of requests, put together piece by piece.
 */
#ifndef SHIM_AGENT_QUERY_H
#define SHIM_AGENT_QUERY_H

#include <stdbool.h>
#include <stddef.h>

/* A list's continue token is the longest part; the API server takes no more. */
#define QUERY_BYTES_MAX 8192

struct query {
    char text[QUERY_BYTES_MAX];
    size_t len;
    bool too_long; /* what did not fit is not there */
};

/* It is `path`, as it is. */
void query_begin(struct query *query, const char *path);
/* Adds a segment of a path, behind '/'. */
void query_segment(struct query *query, const char *segment);
/* Adds "name=value" behind '?' or '&'. */
void query_add(struct query *query, const char *name, const char *value);

#endif
