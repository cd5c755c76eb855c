/*
 * Whether a file is a checkpoint, of which version, and how an older one becomes this one's.
 */
#ifndef DEVICEMGR_STORE_STORE_SCHEMA_H
#define DEVICEMGR_STORE_STORE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

/* What came of opening a file. */
enum store_opened {
    STORE_OPENED,
    STORE_DAMAGED,     /* set it aside and make another */
    STORE_UNAVAILABLE, /* the disk's fault: try later */
    STORE_IN_USE,
    STORE_NEWER,
};

/* What one of SQLite's result codes means for that. */
enum store_opened store_opened_of(int rc);
/* `why` is filled unless STORE_OPENED or SQLite has better words; *version if it is told. */
enum store_opened store_schema_check(sqlite3 *db, int *version, char *why, size_t why_bytes);
/* Makes a whole new file beside its final name: under that name no half-made one is ever seen.
 * `lost`: it says from its beginning that rows were lost. 0, or -1 with words in `why`. */
int store_schema_make_file(const char *dir, const char *path, bool lost, char *why,
                           size_t why_bytes);
/* Takes the steps that a file of this version lacks; 0: a new one. SQLite's result code. */
int store_schema_migrate(sqlite3 *db, int version);

#endif
