/*
 * Whether the checkpoint's rows make sense, each by itself and together. Needs nobody: it may run
 * in any thread.
 */
#ifndef SHIM_CORE_ROWS_CHECK_H
#define SHIM_CORE_ROWS_CHECK_H

#include <stddef.h>

#include "devicemgr/devicemgr.h"

/* So many are told one by one. */
#define ROWS_FINDINGS_MAX 100

#define ROWS_LOST_WORDS                                                                            \
    "rows were lost, or come from another file, and the runtime has not been listed since: "       \
    "what is there may not be all"

enum rows_finding_kind {
    ROWS_FINDING_FILE,   /* SQLite's word against the file */
    ROWS_FINDING_ROW,    /* its checksum does not fit, or it makes no sense: it would be left out */
    ROWS_FINDING_LOST,   /* it says itself that rows were lost: what is there may not be all */
    ROWS_FINDING_DEVICE, /* it is in rows of several pods, of which one at most may run with it */
};

struct rows_finding {
    enum rows_finding_kind kind;
    char *text;
};

/* A zeroed struct has found nothing. */
struct rows_found {
    struct rows_finding v[ROWS_FINDINGS_MAX]; /* the first of them */
    size_t len;
    size_t total;
    size_t against; /* how many of all say that the file is not as it should be: not DEVICE */
};

/* Gives the records to a device manager that was made for it, which says which of them make no
 * sense, and who has the same device by them. */
void rows_check(struct devicemgr *scratch, const struct devicemgr_record *records, size_t len,
                struct rows_found *found);
void rows_found_add(struct rows_found *found, enum rows_finding_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void rows_found_fini(struct rows_found *found);

#endif
