/*
 * A look at all that is in a store's file, which changes nothing in it.
 */
#ifndef DEVICEMGR_STORE_STORE_SCAN_H
#define DEVICEMGR_STORE_STORE_SCAN_H

#include <stdbool.h>

#include <sqlite3.h>

#include "devicemgr/ports.h"
#include "devicemgr/store/store_found.h"

/* store_look(), of an open file. What SQLite says against the file is a finding; SQLite's result
 * code is another than SQLITE_OK if it could not be read to its end. */
int store_db_scan(sqlite3 *db, struct store_found *found,
                  void (*each)(void *user, const struct devicemgr_record *record, bool good),
                  void *user);

#endif
