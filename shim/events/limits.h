/*
 * What is kept of events: two thousand of them, and half a MiB, for a day. A container's life is
 * two events of some 250 bytes, and what comes again is counted: that is the day of a node on which
 * four containers with devices begin and end each minute with others' names. Of one event at most 3
 * KiB. The file has at most EVENTS_FILE_SLACK_BYTES more than twice what is kept, else it is
 * written anew.
 */
#ifndef SHIM_EVENTS_LIMITS_H
#define SHIM_EVENTS_LIMITS_H

#define EVENTS_MAX 2048
#define EVENTS_BYTES_MAX (512u * 1024)
#define EVENTS_AGE_MS_MAX (UINT64_C(24) * 60 * 60 * 1000)

/* Of one event: its longest texts, and its ids, all together. */
#define EVENTS_NAME_BYTES_MAX 320
#define EVENTS_TEXT_BYTES_MAX 512
#define EVENTS_IDS_BYTES_MAX 512

/* Those that come before the file is read. */
#define EVENTS_EARLY_MAX 256

/* What comes within so long is written at once: a kill can cost it. */
#define EVENTS_BATCH_MS 20
/* Ids that are told without a disk are noted so many at a time: after a restart the next ones begin
 * behind them. */
#define EVENTS_TOLD_BLOCK 1024
/* After a failure it is tried again after so long. */
#define EVENTS_RETRY_MS 2000
#define EVENTS_FILE_SLACK_BYTES (256u * 1024)
/* A file that is longer is none of ours. */
#define EVENTS_FILE_BYTES_MAX (4 * EVENTS_BYTES_MAX)

#endif
