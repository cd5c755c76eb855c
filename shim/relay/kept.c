#include "shim/relay/kept.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/boot_clock.h"
#include "shim/log.h"
#include "shim/point.h"

/* Sockets and journal. */
#define PARTS 3

const char KEPT_READER[] = "cri-device-shim goes on with " JOURNAL_MOVED_FORMAT " " SESSION_FORMAT;

static void set_told(struct kept *kept)
{
    kept->told = true;
    kept->sure = fd_store_promised(kept->store) > 0; /* it takes no more than that */
}

void kept_init(struct kept *kept, struct fd_store *store, const int sockets[2])
{
    static unsigned number;

    *kept = (struct kept){.store = store};
    if (!fd_store_usable(store))
        return;
    kept->journal = journal_new(sockets);
    if (!kept->journal)
        return;
    /* Those of processes before this one have other names: they were made sooner. */
    snprintf(kept->name, sizeof kept->name, KEPT_RELAYED "%" PRIu64 "-%u/", boot_now_ms(),
             number++);
    kept_tell(kept, sockets);
}

void kept_tell(struct kept *kept, const int sockets[2])
{
    int fds[PARTS] = {sockets[0], sockets[1]}, r;

    if (!kept->journal || kept->told)
        return;
    fds[2] = journal_fd(kept->journal);
    r = fd_store_put_all(kept->store, kept->name, fds, PARTS);
    if (r == 0)
        set_told(kept);
    else if (r != -EAGAIN)
        kept_leave(kept);
    POINT("stored");
}

void kept_forget(struct kept *kept)
{
    if (kept->journal && kept->told)
        fd_store_remove(kept->store, kept->name);
}

void kept_leave(struct kept *kept)
{
    journal_free(kept->journal);
    kept->journal = NULL;
}

/* ---- of the process before ---- */

/* Takes all that was handed over under the name of the first; how many, PARTS at most. */
static int take_parts(struct fd_store *store, const char *name, int fds[PARTS])
{
    int n = 1, fd;

    while (n < PARTS && (fd = fd_store_take(store, name, NULL)) >= 0)
        fds[n++] = fd;
    return n;
}

/* The sockets first. 0, or a negative code; then nothing but the sockets is open. */
static int open_parts(struct kept *kept, int fds[PARTS])
{
    for (int i = 0; i < PARTS - 1; i++) {
        if (!fd_store_is_socket(fds[i])) {
            int memory = fds[i];

            fds[i] = fds[PARTS - 1];
            fds[PARTS - 1] = memory;
        }
    }
    kept->sockets[0] = fds[0];
    kept->sockets[1] = fds[1];
    return journal_open(fds[PARTS - 1], kept->sockets, &kept->journal);
}

static void end_parts(struct fd_store *store, const char *name, const int *fds, int n)
{
    log_warning("relay: a connection of the daemon before this one cannot be gone on with");
    for (int i = 0; i < n; i++)
        shutdown(fds[i], SHUT_RDWR); /* of the manager's duplicate, too */
    fd_store_remove(store, name);
    for (int i = 0; i < n; i++)
        close(fds[i]);
}

void kept_end(struct kept *kept)
{
    end_parts(kept->store, kept->name, kept->sockets, PARTS - 1);
    kept_leave(kept);
}

bool kept_take(struct kept *kept, struct fd_store *store)
{
    const char *name;
    int fds[PARTS], n;

    while ((fds[0] = fd_store_take(store, KEPT_RELAYED, &name)) >= 0) {
        *kept = (struct kept){.store = store};
        snprintf(kept->name, sizeof kept->name, "%s", name);
        n = take_parts(store, name, fds);
        if (n == PARTS && open_parts(kept, fds) == 0) {
            set_told(kept);
            return true;
        }
        end_parts(store, name, fds, n < PARTS ? n : PARTS - 1);
    }
    return false;
}
