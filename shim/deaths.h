/*
 * What this process was at when it crashed, for the next one: what ends its reader again and again
 * is not to be read for ever.
 *
 * Work that a peer or a file can make fatal is a job, known by a number. A handler of the signals
 * that a process sends itself (a fault, an abort) appends those that are under way to a file, and
 * the process dies as it would have.
 *
 * Who is ended by others, by the watchdog for its silence or by the kernel for its memory, cannot
 * say so. So a job of a message's is marked from its begin to its end, in a page of a file beside
 * that outlives the process, and a mark that the next process finds is a death. A kill -9 from
 * elsewhere finds a process between its jobs, or one time in a hundred at one for some tenths of a
 * millisecond: three times the same one within a minute is not chance. What waits for others
 * (deaths_hold()) is not marked so, nor are files: a slow disk is no fault.
 *
 * While all goes well a job costs nothing but, for a message, a look at the clock and two stores.
 * Process-wide, as signals are.
 */
#ifndef SHIM_DEATHS_H
#define SHIM_DEATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Deaths count together if they are not further apart than this, */
#define DEATHS_TOGETHER_MS 60000
/* and for that long after the last one. Then it is tried once more. */
#define DEATHS_REMEMBERED_MS 300000
/* What the mark's file is called, behind the other's name. */
#define DEATHS_MARK_SUFFIX ".at"
/* Jobs held at once; of more, those that came first. Creates are decided in fewer at a time. */
#define DEATHS_HELD_MAX 4096

/* Jobs that are no digest. */
enum {
    DEATHS_NO_JOB = 0,
    DEATHS_CHECKPOINT = 1,
    DEATHS_SNAPSHOT = 2,
};

/* Reads what was noted in `path` (copied; in a directory that does not outlive the kernel), and
 * notes there from now on. Once, at the start. */
void deaths_watch(const char *path);
/* Likewise: `name` in the directory of `path`. */
void deaths_watch_beside(const char *path, const char *name);

/* Whether the last `times` deaths at this job came together, and lately. */
bool deaths_of(uint64_t job, unsigned times);

/* What killed is out of the way: all that was noted is forgotten. */
void deaths_forget(void);

/* This thread is at `job`, and at nothing else until the next call. Returns what it was at before,
 * which is to be given back. Messages are for one thread only. */
uint64_t deaths_enter(uint64_t job);

/* `job` is under way, and may be what the loop is at in any turn, until it is released: it is noted
 * if the thread that dies has entered none. */
void deaths_hold(uint64_t job);
void deaths_release(uint64_t job);

/* The job of a message: the same for one that is sent again, also if the entries of its maps come
 * in another order, as protobuf lets them. Never one of those above. */
uint64_t deaths_digest(const uint8_t *message, size_t len);

#endif
