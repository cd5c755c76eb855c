/*
 * What a look at a store's file finds.
 */
#ifndef DEVICEMGR_STORE_STORE_FOUND_H
#define DEVICEMGR_STORE_STORE_FOUND_H

#include <stdbool.h>
#include <stddef.h>

#define STORE_ERROR_BYTES_MAX 512
/* The value of a DEVICEMGR_RECORD_LOSS where no row was lost, but all of them come from elsewhere,
 * so that what runs has to be looked at as well. */
#define STORE_LOST_NONE "imported"

struct store_found {
    int version;                       /* of the schema */
    size_t damaged;                    /* rows whose checksum does not fit */
    bool lost;                         /* it says that rows were (store_table.h) */
    char words[STORE_ERROR_BYTES_MAX]; /* SQLite's first finding in the file; "": none */
};

#endif
