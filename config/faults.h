/*
 * The mistakes of one file, in the order of their places. FAULTS_MAX are kept, the first ones of
 * the file; of the others, their number.
 */
#ifndef CONFIG_FAULTS_H
#define CONFIG_FAULTS_H

#include <stddef.h>

#include "config/tree.h"

#define FAULTS_MAX 20
/* Longest value repeated in a message, so that the advice behind it is never cut off. */
#define FAULTS_QUOTED_BYTES_MAX 60

struct fault {
    struct tree_place at;
    char *text;
};

struct faults {
    struct fault kept[FAULTS_MAX];
    size_t kept_len, total;
};

struct quoted {
    char text[FAULTS_QUOTED_BYTES_MAX + sizeof "\"...\""];
};

/* Notes "WRONG; expected EXPECTED", WRONG as printf does, behind what has the same place. */
void faults_add(struct faults *faults, struct tree_place at, const char *expected,
                const char *wrong, ...) __attribute__((format(printf, 4, 5)));

/* One line each, "FILE:LINE:COLUMN: TEXT", without a newline behind the last. What does not fit
 * `out` as a whole is left out, and said to be. */
void faults_print(const struct faults *faults, const char *file, char *out, size_t size);

void faults_fini(struct faults *faults);

/* A text of the file, in quotes, its end cut off where it is long. */
struct quoted quote(const char *text, size_t len);

#endif
