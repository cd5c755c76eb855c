/*
 * Unix sockets: the connecting side. Connecting to one does not wait, so all of it happens at once.
 */
#ifndef SHIM_RPC_CONNECT_H
#define SHIM_RPC_CONNECT_H

/* A stream socket that is connected to who listens at `path`, non-blocking and close-on-exec; or a
 * negative errno, e.g. -ENAMETOOLONG (unix_path_fits()), -EAGAIN: its backlog is full,
 * -EPROTOTYPE: it is of another type. */
int unix_connect(const char *path) __attribute__((warn_unused_result));

/* The same for the socket's file that `file` was opened of, with O_PATH: whatever stands under its
 * name by now. Needs /proc. */
int unix_connect_file(int file) __attribute__((warn_unused_result));

#endif
