#include "config/faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line each: nothing of the file breaks it. */
static char *without_controls(char *text)
{
    for (char *at = text; *at; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    }
    return text;
}

void faults_add(struct faults *faults, struct tree_place at, const char *expected,
                const char *wrong, ...)
{
    size_t slot = faults->kept_len;
    char *what, *text;
    va_list arguments;
    int n;

    faults->total++;
    while (slot > 0 && tree_before(at, faults->kept[slot - 1].at))
        slot--;
    if (slot == FAULTS_MAX)
        return;
    va_start(arguments, wrong);
    n = vasprintf(&what, wrong, arguments);
    va_end(arguments);
    if (n < 0)
        return; /* out of memory: counted all the same */
    n = asprintf(&text, "%s; expected %s", what, expected);
    free(what);
    if (n < 0)
        return;
    if (faults->kept_len == FAULTS_MAX)
        free(faults->kept[--faults->kept_len].text);
    memmove(&faults->kept[slot + 1], &faults->kept[slot],
            (faults->kept_len++ - slot) * sizeof faults->kept[0]);
    faults->kept[slot] = (struct fault){.at = at, .text = without_controls(text)};
}

void faults_print(const struct faults *faults, const char *file, char *out, size_t size)
{
    static const char REST[] = "\nand 18446744073709551615 more";
    size_t used = 0, i;

    out[0] = '\0';
    for (i = 0; i < faults->kept_len; i++) {
        const struct fault *fault = &faults->kept[i];
        int n = snprintf(out + used, size - used, "%s%s:%u:%u: %s", i > 0 ? "\n" : "", file,
                         fault->at.line, fault->at.column, fault->text);

        if (i > 0 && used + (size_t)n + sizeof REST > size)
            break; /* the first may be cut, the others may not */
        used += (size_t)n < size - used ? (size_t)n : size - used - 1;
    }
    out[used] = '\0';
    if (i < faults->total)
        snprintf(out + used, size - used, "%sand %zu more", i > 0 ? "\n" : "", faults->total - i);
}

void faults_fini(struct faults *faults)
{
    for (size_t i = 0; i < faults->kept_len; i++)
        free(faults->kept[i].text);
}

struct quoted quote(const char *text, size_t len)
{
    struct quoted out;
    size_t n = len;

    if (len > FAULTS_QUOTED_BYTES_MAX) {
        n = FAULTS_QUOTED_BYTES_MAX;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--; /* not within a UTF-8 character */
    }
    out.text[0] = '"';
    for (size_t i = 0; i < n; i++)
        out.text[1 + i] = text[i] ? text[i] : '?'; /* the other controls: faults_add() */
    strcpy(out.text + 1 + n, n < len ? "...\"" : "\"");
    return out;
}
