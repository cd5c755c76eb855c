/*
 * How what is answered is shown: tables for people, JSON for programs; ages, times, and texts of
 * peers.
 */
#ifndef SHIM_CTL_SHOW_H
#define SHIM_CTL_SHOW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "shim/json_value.h"

enum show_format {
    SHOW_TABLE,
    SHOW_WIDE, /* with more columns */
    SHOW_JSON,
    SHOW_NAME, /* KIND/NAME, a line each */
};

struct show {
    FILE *out;
    enum show_format format;
    bool colors;
    bool one_line; /* JSON, since others follow */
};

/* The format of this name (json, wide, name). False: there is none. */
bool show_format_parse(const char *name, enum show_format *out);

/* To stdout, all of it, now. 0 or a negative errno; whoever read it and has gone is -EPIPE. */
int show_write_out(const char *text);

/* Nobody reads the pipe that stdout is any more: also told while nothing is written. */
bool show_is_unread(void);

/* Whether a line is taken at once, as by a pipe that has room for 4096 bytes (pipe(7)), or nobody
 * takes one any more. `wait_ms` -1: once that is so. */
bool show_is_taken(int wait_ms);

/* Words of peers: a terminal is told nothing by them. */
void show_put(const struct show *show, const char *text);

#define SHOW_AGE_BYTES 24
/* As kubectl has it: "45s", "12m", "3h2m", "5d". */
const char *show_age(uint64_t ms, char out[static SHOW_AGE_BYTES]);

/* "90s", "15m", "2h", "1d", or several of these, the larger first: in ms. False: it is none. */
bool show_duration_parse(const char *text, uint64_t *ms);

/* ---- JSON; out of memory ends the process ---- */

/* Writes it out, and lets go of it. */
void show_json(const struct show *show, json_t *value);

#endif
