/*
 * The checkpoint on disk: the device manager's records in one SQLite file.
 *
 * What store_commit() has acknowledged is on the disk and outlives kill -9 and power loss (WAL,
 * synchronous=FULL, the directory synced). Damage never stops the node: a row that does not match
 * its checksum is dropped; a file that is none, or that a newer release has changed in a way that
 * this one does not know, is set aside under a name with a time stamp; each is reported. The file
 * is locked for as long as it is open: two daemons cannot share it.
 *
 * Every function blocks on the disk. Calls on one store must not overlap; they may come from
 * different threads.
 */
#ifndef DEVICEMGR_STORE_STORE_H
#define DEVICEMGR_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/ports.h"
#include "devicemgr/store/store_file.h"
#include "devicemgr/store/store_found.h"

struct store;

struct store_options {
    const char *dir;     /* absolute; made with mode 0700 if missing, parents 0755 */
    const char *boot_id; /* this boot's, see store_rebooted() */
    bool discard;        /* what is there has ended its reader: it is not opened, but set aside */
    /* Damage and its repair, in words for the operator; `level` is a syslog level. Runs inside
     * store_open(), store_load() and store_commit(), on the thread of that call. */
    void (*report)(void *user, int level, const char *text);
    void *user;
};

/*
 * Opens the checkpoint in `dir`, or makes it. All of `options` is borrowed until store_close().
 * 0 and *out; or -1 with the reason in `err`: there may be rows, and they cannot be read now, since
 * another process has the file open, or the disk fails. It is left as it was; try again. (A disk
 * that is full or read-only can be read.) Where there is no file and none can be made, that is
 * reported, the store holds nothing, and store_commit() tries again to make it.
 */
int store_open(const struct store_options *options, struct store **out, char *err, size_t err_bytes)
    __attribute__((warn_unused_result));

/* Calls `each` for every good row; the record is borrowed until it returns. Bad rows are deleted
 * and reported. Call it once, before the first commit. */
void store_load(struct store *store, void (*each)(void *user, const struct devicemgr_record *),
                void *user);

/* There was no file: it is the first start, or somebody has removed it. */
bool store_made(const struct store *store);

/* After store_load(): rows that were durable may be missing, since something was damaged or could
 * not be read, now or earlier: the file says so until a commit deletes DEVICEMGR_RECORD_LOSS. */
bool store_lost_rows(const struct store *store);

/* The records were last written in another boot; false if that is not known. */
bool store_rebooted(const struct store *store);

/* Of store_commit(): the file was removed or replaced while it was in use, or was not there at the
 * start, and now there is one with rows in it. What is there now under its name was set aside, and
 * a new file is made, with DEVICEMGR_RECORD_LOSS only: write all there is to keep. */
#define STORE_RESET (-2)

/*
 * Writes or deletes (value NULL) all `records`, or none. 0 when they are durable; or -1 with the
 * store's words in `err`: disk full, read-only, I/O error. The next commit tries afresh, so the
 * store recovers by itself once the disk does. Or STORE_RESET, also with words.
 */
int store_commit(struct store *store, const struct devicemgr_record *records, size_t records_len,
                 char *err, size_t err_bytes) __attribute__((warn_unused_result));

/*
 * Looks at the whole file as it is on the disk, and changes nothing: `each` is called for every
 * row, borrowed until it returns, `good` or not. After store_load(). 0; or -1 with the reason in
 * `err`: it is not open, is not the one that has the name, or cannot be read.
 */
int store_look(struct store *store, struct store_found *found,
               void (*each)(void *user, const struct devicemgr_record *record, bool good),
               void *user, char *err, size_t err_bytes) __attribute__((warn_unused_result));

/*
 * Writes a copy of the file as it is now, damaged rows and all, beside it: durable and whole under
 * its name, `base`, or not there. "": there is no row to copy. 0, or -1 with the reason in `err`.
 */
int store_copy_aside(struct store *store, char base[STORE_ASIDE_BYTES_MAX], char *err,
                     size_t err_bytes) __attribute__((warn_unused_result));

/* Of store_look_at(): another process has the file open. */
#define STORE_IN_USE_ELSEWHERE (-3)

/*
 * store_look() at the file of a store that no process has open, wherever it is; what SQLite keeps
 * beside it counts. 0; or STORE_IN_USE_ELSEWHERE, or -1, with the reason in `err`: it is no
 * checkpoint, or a newer release's, or it cannot be read.
 */
int store_look_at(const char *path, struct store_found *found,
                  void (*each)(void *user, const struct devicemgr_record *record, bool good),
                  void *user, char *err, size_t err_bytes) __attribute__((warn_unused_result));

/* The newest schema that this release knows. */
int store_version(void);

/* Accepts NULL. */
void store_close(struct store *store);

#endif
