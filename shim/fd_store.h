/*
 * Descriptors that outlive this process: the service manager keeps them, and hands them to the next
 * one of the service, also after a kill -9 (sd_notify(3), FDSTORE=1; sd_listen_fds(3)). systemd
 * does so for units with FileDescriptorStoreMax=, over `restart`, not over `stop`; a manager
 * without a store ignores all of this.
 *
 * The manager watches what it keeps, but for what fd_store_put_all() gave it: a connection whose
 * peer is gone is dropped, and so is a socket that is bound and does not listen. What is closed
 * here stays open there: a connection is ended by shutdown(2), then fd_store_remove(). Descriptors
 * of one name cannot be told apart: a name is for one at a time. A name cannot be changed either,
 * so state does not belong in it.
 *
 * What a socket unit passes comes in the same way, and is never put: it would come twice. The names
 * that we give contain '/', unlike those of units.
 *
 * systemd names all that it hands over in one variable, and Linux refuses one of 128 KiB: the
 * service could not be started any more. So what is kept is counted, and what has no room is
 * refused. What the manager drops by itself counts until it is removed here, or the process ends.
 *
 * Nothing blocks: a manager that does not read makes -EAGAIN. Only what it is to let go of is told
 * again, before whatever comes next, since it would keep that for ever; all else is the caller's to
 * try again. A store that is NULL has nothing and keeps nothing.
 */
#ifndef SHIM_FD_STORE_H
#define SHIM_FD_STORE_H

#include <stdbool.h>
#include <stddef.h>

/* systemd's own bound is 255; a name is of printable ASCII, without ':'. */
#define FD_STORE_NAME_BYTES_MAX 255
#define FD_STORE_UNTOLD_MAX 1024
/* Of all names, each as often as it has descriptors, with a ':'; execve(2) takes MAX_ARG_STRLEN,
 * which is 128 KiB, of "LISTEN_FDNAMES=" and them. */
#define FD_STORE_NAMES_BYTES_MAX ((size_t)120 * 1024)

struct fd_store;

/* With what was handed to this process ($LISTEN_PID, $LISTEN_FDS, $LISTEN_FDNAMES), close-on-exec
 * from here on; the variables are removed, so that no child takes them for its own. Once in a
 * process, before it opens anything. */
struct fd_store *fd_store_new(void);
/* Closes what was handed over and not taken; the manager keeps it. Accepts NULL. */
void fd_store_free(struct fd_store *store);

/* Whether there is a manager to speak to; it may keep nothing all the same. */
bool fd_store_usable(const struct fd_store *store);

/* How many descriptors it has promised to keep: $FDSTORE, which systemd sets from 254 on, and our
 * units for those before. 0: it has said nothing. */
size_t fd_store_promised(const struct fd_store *store);

/*
 * A descriptor that was handed over, and its whole name, which begins with `prefix`: the caller's
 * from now on, while the manager keeps its own. -1: none (any more). `name` is borrowed until
 * fd_store_free(); may be NULL.
 */
int fd_store_take(struct fd_store *store, const char *prefix, const char **name)
    __attribute__((warn_unused_result));

/* Whether there is such a one, which is not taken. */
bool fd_store_has(const struct fd_store *store, const char *prefix);

/* Whether it is a socket: to tell the descriptors of one name apart as far as that can be. */
bool fd_store_is_socket(int fd);

/* The first listening unix stream socket of a socket unit's that was handed over: the caller's from
 * now on. -1: none. */
int fd_store_take_socket(struct fd_store *store) __attribute__((warn_unused_result));

/* Ends what was handed over under such a name and not taken, here and at the manager. */
void fd_store_drop(struct fd_store *store, const char *prefix);

/*
 * The manager is to keep it, too. 0, or a negative errno: -ENOTCONN without a manager, -EAGAIN;
 * -ENOSPC if it has promised fewer, or the names came to more than FD_STORE_NAMES_BYTES_MAX, of
 * which a line in the log tells the first time. The last quarter of that room is left to those of
 * fd_store_put_all(), connections that somebody waits at.
 */
int fd_store_put(struct fd_store *store, const char *name, int fd)
    __attribute__((warn_unused_result));
/* The same of several, under one name and in one message: all, or none. */
int fd_store_put_all(struct fd_store *store, const char *name, const int *fds, size_t n)
    __attribute__((warn_unused_result));
/* The manager is to let go of it. 0 or a negative errno, likewise; after -EAGAIN it is told later,
 * before anything else, of FD_STORE_UNTOLD_MAX at most. */
int fd_store_remove(struct fd_store *store, const char *name);

#endif
