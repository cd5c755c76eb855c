/*
 * Resources that were published and are no more, until who publishes them has seen that.
 */
#ifndef DEVICEMGR_BOOKS_CAPACITY_H
#define DEVICEMGR_BOOKS_CAPACITY_H

struct devicemgr_capacity;
struct state;

/* A resource that was published is no more. */
void capacity_removed(struct state *state, const char *resource);
/* It has devices to show (again), or its removal was seen. */
void capacity_published(struct state *state, const char *resource);
/* devicemgr_capacity() */
void capacity_each(const struct state *state,
                   void (*each)(void *user, const struct devicemgr_capacity *capacity), void *user);

#endif
