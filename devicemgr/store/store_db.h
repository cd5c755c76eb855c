/*
 * SQLite as a store uses it: a connection with what all of them have, and small SQL.
 *
 * Each connection has the function row_checksum(kind, key, key, key, value), zlib's CRC-32. It
 * guards against decay, not against an attacker (who is root here), finds every burst of up to 32
 * bits, and zlib is linked anyway.
 *
 * The functions give SQLite's result codes.
 */
#ifndef DEVICEMGR_STORE_STORE_DB_H
#define DEVICEMGR_STORE_STORE_DB_H

#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

/* Opens the file, whose path is shorter than PATH_MAX. *out is the caller's to close, also after an
 * error. `lock_first`: before anything is read, for which SQLite then needs no -shm file. That is
 * how a full disk can be read, but not one that is read-only, which gives no such lock. */
int store_db_connect(const char *path, bool lock_first, sqlite3 **out);
int store_db_exec(sqlite3 *db, const char *sql);
/* The first column of the first row as a number. */
int store_db_query_int(sqlite3 *db, const char *sql, int *out);
/* Runs one of the PRAGMA checks; SQLITE_CORRUPT with its first finding in `why`, which may be a
 * page that the disk did not give. */
int store_db_check(sqlite3 *db, const char *pragma, char *why, size_t why_bytes);
/* Why the last statement failed, of the checkpoint at `path`; before anything else is asked. */
void store_db_failure(sqlite3 *db, const char *path, char *err, size_t err_bytes);
/* SQLite falls back to reading where it may not write; so it does for one flipped bit in the head,
 * which no later moment would heal: whether that is so here. */
bool store_db_head_forbids_writing(sqlite3 *db, const char *path);

#endif
