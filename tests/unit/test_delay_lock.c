/* shim/agent/delay_lock.c: a lock is let go of only when nobody has it any more, the service manager included. */
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

static void it_is_kept_and_let_go(void **state)
{
    struct fd_store *store = fd_store_new();
    int manager = manager_start(), fd = some_fd();
    struct delay_lock lock;

    (void)state;
    delay_lock_init(&lock, store);
    assert_false(delay_lock_held(&lock));
    assert_true(delay_lock_told(&lock));
    delay_lock_take(&lock, fd);
    assert_true(delay_lock_held(&lock) && delay_lock_told(&lock));
    manager_gets(manager, PUT);
    delay_lock_release(&lock);
    assert_true(!delay_lock_held(&lock) && delay_lock_told(&lock));
    manager_gets(manager, REMOVE);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    delay_lock_fini(&lock);
    manager_gets_nothing(manager);
    fd_store_free(store);
    manager_stop(manager);
}

static void one_that_ends_with_its_process_stays_with_the_manager(void **state)
{
    struct fd_store *store = fd_store_new();
    int manager = manager_start();
    struct delay_lock lock;

    (void)state;
    delay_lock_init(&lock, store);
    delay_lock_take(&lock, some_fd());
    manager_gets(manager, PUT);
    delay_lock_fini(&lock);
    manager_gets_nothing(manager);
    fd_store_free(store);
    manager_stop(manager);
}

/* Fills the manager's queue. */
static void overload(struct fd_store *store)
{
    while (fd_store_remove(store, "other") == 0)
        continue;
}

static void let_it_read(int manager)
{
    char text[512];

    while (manager_has(manager, text, sizeof text))
        assert_string_equal(text, "FDSTOREREMOVE=1\nFDNAME=other");
}

static void a_manager_that_does_not_read_is_told_again(void **state)
{
    struct fd_store *store = fd_store_new();
    int manager = manager_start();
    struct delay_lock lock;

    (void)state;
    delay_lock_init(&lock, store);
    overload(store);
    delay_lock_take(&lock, some_fd());
    assert_true(delay_lock_held(&lock) && !delay_lock_told(&lock));
    let_it_read(manager);
    delay_lock_tell(&lock);
    assert_true(delay_lock_told(&lock));
    manager_gets(manager, PUT);

    overload(store);
    delay_lock_release(&lock);
    assert_true(!delay_lock_held(&lock) && !delay_lock_told(&lock));
    delay_lock_take(&lock, some_fd()); /* the manager has the one before still */
    assert_false(delay_lock_told(&lock));
    let_it_read(manager);
    delay_lock_tell(&lock);
    manager_gets(manager, REMOVE);
    manager_gets(manager, PUT);
    assert_true(delay_lock_told(&lock));
    delay_lock_tell(&lock);
    manager_gets_nothing(manager);
    delay_lock_fini(&lock);
    fd_store_free(store);
    manager_stop(manager);
}

static void one_that_nobody_kept_is_only_closed(void **state)
{
    struct fd_store *store = fd_store_new();
    int manager = manager_start();
    struct delay_lock lock;

    (void)state;
    delay_lock_init(&lock, store);
    overload(store);
    delay_lock_take(&lock, some_fd());
    delay_lock_release(&lock);
    assert_true(delay_lock_told(&lock));
    let_it_read(manager);
    manager_gets_nothing(manager);
    delay_lock_fini(&lock);
    fd_store_free(store);
    manager_stop(manager);
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
        cmocka_unit_test(it_is_kept_and_let_go),
        cmocka_unit_test(one_that_ends_with_its_process_stays_with_the_manager),
        cmocka_unit_test(a_manager_that_does_not_read_is_told_again),
        cmocka_unit_test(one_that_nobody_kept_is_only_closed),
        cmocka_unit_test(without_a_manager_nobody_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
