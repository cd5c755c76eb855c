/*
 * Takes who comes to a listening socket, one after the other.
 *
 * Not by uv_listen(): while accept(2) fails, for want of descriptors or memory, that tries on and
 * on within one turn of the loop, and nothing else is served. Here the client waits, in the
 * kernel's backlog, and is tried again every 100 ms.
 */
#ifndef SHIM_RPC_ACCEPTOR_H
#define SHIM_RPC_ACCEPTOR_H

#include <stdbool.h>

#include <uv.h>

struct acceptor;

/* Whose socket it is. Nothing here may close the acceptor. */
struct acceptor_owner {
    const char *name; /* for the log; borrowed until acceptor_close() */
    void *user;
    /* Somebody waits, and others may be ended for that one. Whether one more may be taken; if not,
     * this is asked again as above, and after acceptor_go_on(). NULL: always. */
    bool (*has_room)(void *user);
    /* Takes the connected socket `fd`, non-blocking and close-on-exec. 0; or a negative errno: then
     * `fd` is still the acceptor's, which offers it again. */
    int (*take)(void *user, int fd);
    /* It is freed, after acceptor_close(). */
    void (*closed)(void *user);
};

/* On the listening `fd`, which it takes also on failure. `owner` is copied. 0 or a negative
 * errno. */
int acceptor_open(uv_loop_t *loop, int fd, const struct acceptor_owner *owner,
                  struct acceptor **out) __attribute__((warn_unused_result));

/* The listening socket, borrowed; -1 of NULL. */
int acceptor_fd(const struct acceptor *acceptor);

/* There is room again: who waits is taken from the loop. Accepts NULL. */
void acceptor_go_on(struct acceptor *acceptor);

/* Nobody is taken any more; the socket is closed at once. Accepts NULL. */
void acceptor_close(struct acceptor *acceptor);

#endif
