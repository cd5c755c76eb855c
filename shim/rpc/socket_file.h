/*
 * The file of a socket that we serve: made, looked at, removed.
 *
 * Others reach these files: a device plugin's container, which is root, mounts the directory it
 * registers in; operators remove what is in it to make the kubelet forget. So the file is known by
 * what it is and not by its name alone, and no name that others can change is followed to where it
 * leads.
 */
#ifndef SHIM_RPC_SOCKET_FILE_H
#define SHIM_RPC_SOCKET_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "shim/file_identity.h"

/* Where it is to be; all borrowed by socket_file_init() only. */
struct socket_place {
    const char *dir;   /* absolute; symlinks in it are followed. NULL: `name` is an absolute path */
    mode_t dir_mode;   /* it is made if missing, and what is above it; 0: it is not ours to make */
    const char *below; /* a directory in it that others can swap: made if missing (0750), and never
                        * a symlink; NULL: none */
    const char *name;
};

struct socket_file {
    /* private */
    char *dir;
    mode_t dir_mode;
    char *below;
    char *name;
    char *path;
    bool known; /* of what stands under the name: */
    bool ours;  /* made by socket_file_make() */
    struct file_identity identity;
};

/* 0 or -ENOMEM; then there is nothing to fini. */
int socket_file_init(struct socket_file *file, const struct socket_place *place)
    __attribute__((warn_unused_result));
/* Leaves the file itself as it is. Accepts a zeroed struct. */
void socket_file_fini(struct socket_file *file);

/* The whole path. */
const char *socket_file_path(const struct socket_file *file);

/* Makes the directory where that is ours to do, and the file (mode 0600), and listens: see
 * unix_listen(). Besides its errors -ELOOP or -ENOTDIR: `below` is no directory. */
int socket_file_make(struct socket_file *file, int *fd_out) __attribute__((warn_unused_result));

/* `fd` listens already and was bound to this path: takes the file for ours if who connects to it
 * comes to `fd` (which gets one such connection). If not, socket_file_make() says what is wrong. */
void socket_file_adopt(struct socket_file *file, int fd);

/* Says which file was made, for another process of ours that is handed the socket: printable ASCII
 * without ':' or '/'. Only after socket_file_make(). */
#define SOCKET_FILE_TAG_BYTES_MAX 72
void socket_file_tag(const struct socket_file *file, char tag[SOCKET_FILE_TAG_BYTES_MAX]);
/* Whether the file of that tag is there; then it counts as made. */
bool socket_file_resume(struct socket_file *file, const char *tag)
    __attribute__((warn_unused_result));

/* Whether what was made, or adopted, is still there. */
bool socket_file_there(const struct socket_file *file);

/* Removes what socket_file_make() has made, if it is still there. */
void socket_file_remove(struct socket_file *file);

#endif
