#include "shim/agent/delay_lock.h"

#include <assert.h>
#include <unistd.h>

#define NAME "logind/shutdown"

void delay_lock_init(struct delay_lock *lock, struct fd_store *store)
{
    int fd = fd_store_take(store, NAME, NULL);

    *lock = (struct delay_lock){
        .store = store, .fd = fd, .the_manager = fd < 0 ? KEEPS_NONE : KEEPS_THIS};
}

void delay_lock_fini(struct delay_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    lock->fd = -1;
}

bool delay_lock_held(const struct delay_lock *lock)
{
    return lock->fd >= 0;
}

bool delay_lock_told(const struct delay_lock *lock)
{
    return !fd_store_usable(lock->store) ||
           lock->the_manager == (lock->fd < 0 ? KEEPS_NONE : KEEPS_THIS);
}

/* Two of one name cannot be told apart there: one goes before another comes. Without polls: a
 * lock's other end is away for a moment when logind is restarted. */
void delay_lock_tell(struct delay_lock *lock)
{
    if (lock->the_manager == KEEPS_ANOTHER && fd_store_remove(lock->store, NAME) == 0)
        lock->the_manager = KEEPS_NONE;
    if (lock->fd >= 0 && lock->the_manager == KEEPS_NONE &&
        fd_store_put_all(lock->store, NAME, &lock->fd, 1) == 0)
        lock->the_manager = KEEPS_THIS;
}

void delay_lock_take(struct delay_lock *lock, int fd)
{
    assert(lock->fd < 0);
    lock->fd = fd;
    delay_lock_tell(lock);
}

void delay_lock_release(struct delay_lock *lock)
{
    delay_lock_fini(lock);
    if (lock->the_manager == KEEPS_THIS)
        lock->the_manager = KEEPS_ANOTHER;
    delay_lock_tell(lock);
}
