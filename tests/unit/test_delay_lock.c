/* shim/agent/delay_lock.c: a lock is let go of only when nobody has it any more, the service
 * manager included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "notify_socket.h"
#include "shim/agent/delay_lock.h"
#include "shim/fd_store.h"

#define PUT "FDSTORE=1\nFDPOLL=0\nFDNAME=logind/shutdown"
#define REMOVE "FDSTOREREMOVE=1\nFDNAME=logind/shutdown"

static int some_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

/* The next message; its descriptors are lost. False: there is none. */
static bool manager_has(int manager, char *text, size_t bytes)
{
    ssize_t n = recv(manager, text, bytes - 1, MSG_DONTWAIT);

    if (n < 0)
        return false;
    text[n] = '\0';
    return true;
}

static void manager_gets(int manager, const char *state)
{
    char text[512];

    assert_true(manager_has(manager, text, sizeof text));
    assert_string_equal(text, state);
}

static void manager_gets_nothing(int manager)
{
    char text[512];

    assert_false(manager_has(manager, text, sizeof text));
}

/* A lock, beside a manager. */
struct world {
    struct fd_store *store;
    int manager;
    struct delay_lock lock;
};

static int begin(void **state)
{
    static struct world w;

    w.store = fd_store_new();
    w.manager = manager_start();
    delay_lock_init(&w.lock, w.store);
    *state = &w;
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;

    delay_lock_fini(&w->lock);
    manager_gets_nothing(w->manager);
    fd_store_free(w->store);
    manager_stop(w->manager);
    return 0;
}

static void it_is_kept_and_let_go(void **state)
{
    struct world *w = *state;
    int fd = some_fd();

    assert_false(delay_lock_held(&w->lock));
    assert_true(delay_lock_told(&w->lock));
    delay_lock_take(&w->lock, fd);
    assert_true(delay_lock_held(&w->lock) && delay_lock_told(&w->lock));
    manager_gets(w->manager, PUT);
    delay_lock_release(&w->lock);
    assert_true(!delay_lock_held(&w->lock) && delay_lock_told(&w->lock));
    manager_gets(w->manager, REMOVE);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void one_that_ends_with_its_process_stays_with_the_manager(void **state)
{
    struct world *w = *state;

    delay_lock_take(&w->lock, some_fd());
    manager_gets(w->manager, PUT);
    delay_lock_fini(&w->lock);
    manager_gets_nothing(w->manager);
}

/* Fills the manager's queue. */
static void overload(struct fd_store *store)
{
    int fd = some_fd();

    while (fd_store_put(store, "other", fd) == 0)
        continue;
    close(fd);
}

static void let_it_read(int manager)
{
    char text[512];

    while (manager_has(manager, text, sizeof text))
        assert_string_equal(text, "FDSTORE=1\nFDNAME=other");
}

static void a_manager_that_does_not_read_is_told_again(void **state)
{
    struct world *w = *state;

    overload(w->store);
    delay_lock_take(&w->lock, some_fd());
    assert_true(delay_lock_held(&w->lock) && !delay_lock_told(&w->lock));
    let_it_read(w->manager);
    delay_lock_tell(&w->lock);
    assert_true(delay_lock_told(&w->lock));
    manager_gets(w->manager, PUT);

    overload(w->store);
    delay_lock_release(&w->lock);
    assert_true(!delay_lock_held(&w->lock) && !delay_lock_told(&w->lock));
    delay_lock_take(&w->lock, some_fd()); /* the manager has the one before still */
    assert_false(delay_lock_told(&w->lock));
    let_it_read(w->manager);
    delay_lock_tell(&w->lock);
    manager_gets(w->manager, REMOVE);
    manager_gets(w->manager, PUT);
    assert_true(delay_lock_told(&w->lock));
    delay_lock_tell(&w->lock);
    manager_gets_nothing(w->manager);
}

static void one_that_nobody_kept_is_only_closed(void **state)
{
    struct world *w = *state;

    overload(w->store);
    delay_lock_take(&w->lock, some_fd());
    delay_lock_release(&w->lock);
    assert_true(delay_lock_told(&w->lock));
    let_it_read(w->manager);
    manager_gets_nothing(w->manager);
}

static void without_a_manager_nobody_is_told(void **state)
{
    struct fd_store *store = fd_store_new();
    struct delay_lock lock;

    (void)state;
    delay_lock_init(&lock, store);
    delay_lock_take(&lock, some_fd());
    assert_true(delay_lock_told(&lock));
    delay_lock_release(&lock);
    assert_true(delay_lock_told(&lock));
    fd_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_kept_and_let_go, begin, end),
        cmocka_unit_test_setup_teardown(one_that_ends_with_its_process_stays_with_the_manager,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_manager_that_does_not_read_is_told_again, begin, end),
        cmocka_unit_test_setup_teardown(one_that_nobody_kept_is_only_closed, begin, end),
        cmocka_unit_test(without_a_manager_nobody_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
