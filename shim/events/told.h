/*
 * The ids that were told though their events are not in the file, since no disk took it. The next
 * process is to give them to no others, so it begins behind them.
 *
 * They are noted in a file that needs no disk (in /run), in blocks, before the first of a block is
 * told. After a reboot nothing is left of it, nor of who followed: ids that were told without a
 * disk before it come again then. To keep them apart from all later ones would take a disk, or ids
 * that leap by the clock, which nobody could count by.
 */
#ifndef SHIM_EVENTS_TOLD_H
#define SHIM_EVENTS_TOLD_H

#include <stdint.h>

struct told {
    const char *path;
    uint64_t last_id; /* none behind it was told; 0: of all that were the events are in the file */
};

/* What an earlier process has noted. `path` is borrowed. */
void told_init(struct told *told, const char *path);
/* `id` is about to be told. Where it cannot be noted, it is told all the same. */
void told_reserve(struct told *told, uint64_t id);
/* The file of events has one with a higher id, or all that were told. */
void told_forget(struct told *told);

#endif
