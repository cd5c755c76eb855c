/*
 * The end of a thing of several parts, each of which takes its time to stop: when the last of them
 * has, the thing is freed, and who had it stopped is told.
 */
#ifndef SHIM_STOPPING_H
#define SHIM_STOPPING_H

#include <uv.h>

/* A member of the thing. */
struct stopping {
    unsigned parts; /* that are not stopped yet */
    void (*free)(void *thing);
    void *thing;
    void (*done)(void *user); /* set before the last part stops */
    void *user;
};

/* One part has: the `done` of a part that stops by itself, whose `user` is the struct stopping. */
static inline void stopping_part(void *user)
{
    struct stopping *stopping = user;
    struct stopping last = *stopping;

    if (--stopping->parts > 0)
        return;
    last.free(last.thing);
    last.done(last.user);
}

static inline void stopping_handle_closed(uv_handle_t *handle)
{
    stopping_part(handle->data);
}

/* Closes a handle that is one of the parts; from now on its `data` is the struct stopping. */
static inline void stopping_close(struct stopping *stopping, uv_handle_t *handle)
{
    handle->data = stopping;
    uv_close(handle, stopping_handle_closed);
}

#endif
