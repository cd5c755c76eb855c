#include "shim/core/registered_mark.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/path.h"

#define NAME "registered-unstored"

void registered_mark_init(struct registered_mark *mark, const char *listen)
{
    mark->path = path_beside(listen, NAME);
    mark->is_set = access(mark->path, F_OK) == 0;
}

void registered_mark_fini(struct registered_mark *mark)
{
    free(mark->path);
}

bool registered_mark_is_set(const struct registered_mark *mark)
{
    return mark->is_set;
}

void registered_mark_set(struct registered_mark *mark)
{
    int fd;

    if (mark->is_set)
        return;
    fd = open(mark->path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    close(fd);
    mark->is_set = true;
}

void registered_mark_clear(struct registered_mark *mark)
{
    if (mark->is_set)
        unlink(mark->path);
    mark->is_set = false;
}
