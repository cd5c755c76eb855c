/*
 * CDI names of a request that go on as others, or as none.
 */
#ifndef DEVICEMGR_THINGS_RENAMES_H
#define DEVICEMGR_THINGS_RENAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/things/ids.h"

struct rename {
    char *name;
    struct ids to; /* in its place; none: it is left out */
};

/* A zeroed struct is an empty list. */
struct renames {
    struct rename *v;
    size_t len;
};

void renames_fini(struct renames *renames);
/* Copied; it is not there. What it returns is valid until the next. */
struct rename *renames_add(struct renames *renames, const char *name);
/* NULL: it stays as it is. */
const struct rename *renames_find(const struct renames *renames, const char *name);
/* `to` need not be set before, and is not freed. */
void renames_copy(struct renames *to, const struct renames *from);
/* Of these names those that go on, in their order: how many there are; with `out` they are put
 * there, borrowed. */
size_t renames_apply(const struct renames *renames, const char *const *names, size_t len,
                     const char **out);

#endif
