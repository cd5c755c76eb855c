/*
 * What a look at a store's file finds.
 */
#ifndef DEVICEMGR_STORE_STORE_FOUND_H
#define DEVICEMGR_STORE_STORE_FOUND_H

#include <stddef.h>

#define STORE_ERROR_BYTES_MAX 512

struct store_found {
    int version;                       /* of the schema */
    size_t damaged;                    /* rows whose checksum does not fit */
    char words[STORE_ERROR_BYTES_MAX]; /* SQLite's first finding in the file; "": none */
};

#endif
