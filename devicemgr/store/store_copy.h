/*
 * A copy of a store's file, to be kept beside it.
 */
#ifndef DEVICEMGR_STORE_STORE_COPY_H
#define DEVICEMGR_STORE_STORE_COPY_H

#include <stddef.h>

#include <sqlite3.h>

#include "devicemgr/store/store_file.h"

/* store_copy_aside(), of an open file. */
int store_copy_make(sqlite3 *db, const char *dir, const char *path,
                    char base[STORE_ASIDE_BYTES_MAX], char *err, size_t err_bytes);

#endif
