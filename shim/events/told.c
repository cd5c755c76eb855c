#include "shim/events/told.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/events/limits.h"
#include "shim/file.h"

#define NUMBER_BYTES 24

void told_init(struct told *told, const char *path)
{
    char number[NUMBER_BYTES];

    *told = (struct told){.path = path};
    if (file_read_text(path, number, sizeof number) > 0)
        told->last_id = strtoull(number, NULL, 10);
}

void told_reserve(struct told *told, uint64_t id)
{
    uint64_t last_id = id + EVENTS_TOLD_BLOCK;
    char number[NUMBER_BYTES];

    if (id <= told->last_id)
        return;
    snprintf(number, sizeof number, "%" PRIu64 "\n", last_id);
    if (file_replace(told->path, number, strlen(number)) == 0)
        told->last_id = last_id;
}

void told_forget(struct told *told)
{
    if (told->last_id > 0)
        unlink(told->path);
    told->last_id = 0;
}
