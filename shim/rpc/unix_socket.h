/*
 * Unix sockets by path: both sides, the length rule, and who is at the other end.
 *
 * Nothing here knows a loop, or makes a directory. Nothing blocks: connecting does not wait, so all
 * of it happens at once.
 */
#ifndef SHIM_RPC_UNIX_SOCKET_H
#define SHIM_RPC_UNIX_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Whether `path` is not empty and fits sun_path with its NUL (unix(7)). libuv 1.44 cuts longer ones
 * silently, so ask before uv_pipe_connect(). */
bool unix_path_fits(const char *path) __attribute__((warn_unused_result));

/*
 * Makes a stream socket that listens at `path`, non-blocking and close-on-exec, and gives the
 * caller its descriptor (for acceptor_open()). The file has `mode`, less the umask, from its first
 * moment on. What is in its place and serves nobody is removed: a socket, a symlink (never what it
 * points to), an empty file or directory.
 *
 * -ENAMETOOLONG: does not fit sun_path · -EINVAL: no name · -EADDRINUSE: somebody serves it ·
 * -ENOTEMPTY, -EEXIST: a directory, a file with something in it · or the system's own error, e.g.
 * -ENOENT without the directory. Two processes that start in the same instant are not kept apart.
 */
int unix_listen(const char *path, mode_t mode, int *fd_out) __attribute__((warn_unused_result));

/* The same for a bare `name` in the directory that `dir` was opened of (O_PATH will do), whatever
 * has become of that directory's own name since. Needs /proc. */
int unix_listen_at(int dir, const char *name, mode_t mode, int *fd_out)
    __attribute__((warn_unused_result));

/* A stream socket that is connected to who listens at `path`, non-blocking and close-on-exec; or a
 * negative errno, e.g. -ENAMETOOLONG, -EAGAIN: its backlog is full, -EPROTOTYPE: it is of another
 * type. */
int unix_connect(const char *path) __attribute__((warn_unused_result));

/* The same for the socket's file that `file` was opened of, with O_PATH: whatever stands under its
 * name by now. Needs /proc. */
int unix_connect_file(int file) __attribute__((warn_unused_result));

/* Credentials of the process that connected to (or, on the connecting side, listens at) the other
 * end of `fd`: SO_PEERCRED. 0 or a negative errno. */
int unix_peer(int fd, struct ucred *out) __attribute__((warn_unused_result));

#endif
