/* shim/fd_store.c: what a manager gets and hands over, with a manager of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "notify_socket.h"
#include "shim/fd_store.h"

/* ---- a manager ---- */

/* The next message is `state`, with `n` descriptors; the first of them, or -1. */
static int manager_gets_all(int manager, const char *state, size_t n_fds)
{
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(4 * sizeof(int))];
    char text[512];
    struct iovec bytes = {text, sizeof text};
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    ssize_t n = recvmsg(manager, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int fd = -1;

    assert_int_equal(n, strlen(state));
    assert_memory_equal(text, state, strlen(state));
    if (head) {
        int fds[4];

        assert_int_equal(head->cmsg_len, CMSG_LEN(n_fds * sizeof fd));
        memcpy(fds, CMSG_DATA(head), n_fds * sizeof fd);
        fd = fds[0];
        for (size_t i = 1; i < n_fds; i++)
            close(fds[i]);
    }
    return fd;
}

static int manager_gets(int manager, const char *state)
{
    return manager_gets_all(manager, state, 1);
}

static void manager_gets_nothing(int manager)
{
    char byte;

    assert_int_equal(recv(manager, &byte, 1, MSG_DONTWAIT), -1);
}

/* Also before it ends: one that was put in its own queue would outlive that. */
static void manager_reads_all(int manager)
{
    char text[512];

    while (recv(manager, text, sizeof text, MSG_DONTWAIT) > 0)
        continue;
}

static bool is_same_file(int a, int b)
{
    struct stat one, other;

    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* ---- tests ---- */

static void what_is_put_comes_to_the_manager_with_its_name(void **state)
{
    struct fd_store *store = fd_store_new();
    int manager = manager_start(), pipes[2], got;

    (void)state;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_true(fd_store_usable(store));
    assert_int_equal(fd_store_put(store, "endpoint/a.sock", pipes[0]), 0);
    got = manager_gets(manager, "FDSTORE=1\nFDNAME=endpoint/a.sock");
    assert_true(got >= 0 && is_same_file(got, pipes[0]));
    close(got);
    assert_int_equal(fd_store_remove(store, "endpoint/a.sock"), 0);
    assert_int_equal(manager_gets(manager, "FDSTOREREMOVE=1\nFDNAME=endpoint/a.sock"), -1);
    assert_true(fcntl(pipes[0], F_GETFD) >= 0); /* still the caller's */
    close(pipes[0]);
    close(pipes[1]);
    fd_store_free(store);
    manager_stop(manager);
}

static void without_a_manager_nothing_is_kept(void **state)
{
    struct fd_store *store;

    (void)state;
    unsetenv("NOTIFY_SOCKET");
    store = fd_store_new();
    assert_false(fd_store_usable(store));
    assert_int_equal(fd_store_put(store, "a", 0), -ENOTCONN);
    assert_int_equal(fd_store_remove(store, "a"), -ENOTCONN);
    setenv("NOTIFY_SOCKET", "/nobody/here", 1);
    assert_true(fd_store_put(store, "a", 0) < 0);
    unsetenv("NOTIFY_SOCKET");
    assert_int_equal(fd_store_take(store, "", NULL), -1);
    fd_store_free(store);
    fd_store_free(NULL);
}

static void what_a_manager_has_promised(void **state)
{
    static const struct {
        const char *says;
        size_t promised;
    } cases[] = {{"512", 512}, {"0", 0}, {"-1", 0}, {"many", 0}, {NULL, 0}};
    int manager = manager_start();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fd_store *store;

        if (cases[i].says)
            setenv("FDSTORE", cases[i].says, 1);
        else
            unsetenv("FDSTORE");
        store = fd_store_new();
        assert_int_equal(fd_store_promised(store), cases[i].promised);
        fd_store_free(store);
    }
    manager_stop(manager);
    setenv("FDSTORE", "512", 1); /* with nobody to tell */
    {
        struct fd_store *store = fd_store_new();

        assert_int_equal(fd_store_promised(store), 0);
        fd_store_free(store);
    }
    unsetenv("FDSTORE");
    assert_int_equal(fd_store_promised(NULL), 0);
}

static void several_go_in_one_message(void **state)
{
    struct fd_store *store = fd_store_new();
    int manager = manager_start(), pipes[2], got;

    (void)state;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(fd_store_put_all(store, "relayed/1-0/", pipes, 2), 0);
    got = manager_gets_all(manager, "FDSTORE=1\nFDPOLL=0\nFDNAME=relayed/1-0/", 2);
    assert_true(is_same_file(got, pipes[0]));
    close(got);
    assert_int_equal(fd_store_put_all(NULL, "a", pipes, 2), -ENOTCONN);
    close(pipes[0]);
    close(pipes[1]);
    fd_store_free(store);
    manager_stop(manager);
}

static void no_store_has_and_keeps_nothing(void **state)
{
    int manager = manager_start();

    (void)state;
    assert_false(fd_store_usable(NULL));
    assert_int_equal(fd_store_take(NULL, "", NULL), -1);
    assert_false(fd_store_has(NULL, ""));
    assert_int_equal(fd_store_take_socket(NULL), -1);
    fd_store_drop(NULL, "");
    assert_int_equal(fd_store_put(NULL, "a", 0), -ENOTCONN);
    assert_int_equal(fd_store_remove(NULL, "a"), -ENOTCONN);
    manager_gets_nothing(manager);
    manager_stop(manager);
}

/* A full queue is an error of that call, and is over with it. */
static void a_manager_that_does_not_read_blocks_nobody(void **state)
{
    struct fd_store *store = fd_store_new();
    int manager = manager_start(), err, sent = 0, got;

    (void)state;
    while ((err = fd_store_put(store, "a", manager)) == 0)
        sent++;
    assert_int_equal(err, -EAGAIN);
    assert_true(sent > 0);
    for (; sent > 0; sent--) {
        got = manager_gets(manager, "FDSTORE=1\nFDNAME=a");
        close(got);
    }
    manager_gets_nothing(manager);
    assert_int_equal(fd_store_put(store, "b", manager), 0);
    close(manager_gets(manager, "FDSTORE=1\nFDNAME=b"));
    fd_store_free(store);
    manager_stop(manager);
}

/* What it did not hear of it would keep for ever: it is told with what comes next, before that. */
static void what_could_not_be_removed_is_removed_later(void **state)
{
    struct fd_store *store = fd_store_new();
    int manager = manager_start(), sent = 0;

    (void)state;
    while (fd_store_put(store, "a", manager) == 0)
        sent++;
    assert_int_equal(fd_store_remove(store, "b"), -EAGAIN);
    assert_int_equal(fd_store_remove(store, "c"), -EAGAIN);
    assert_int_equal(fd_store_remove(store, "b"), -EAGAIN);
    assert_int_equal(fd_store_put(store, "b", manager), -EAGAIN);
    for (; sent > 0; sent--)
        close(manager_gets(manager, "FDSTORE=1\nFDNAME=a"));
    manager_gets_nothing(manager);
    assert_int_equal(fd_store_put(store, "b", manager), 0);
    assert_int_equal(manager_gets(manager, "FDSTOREREMOVE=1\nFDNAME=b"), -1);
    assert_int_equal(manager_gets(manager, "FDSTOREREMOVE=1\nFDNAME=c"), -1);
    close(manager_gets(manager, "FDSTORE=1\nFDNAME=b"));
    manager_gets_nothing(manager);
    while (fd_store_put(store, "a", manager) == 0)
        continue;
    assert_int_equal(fd_store_remove(store, "d"), -EAGAIN); /* and never */
    manager_reads_all(manager);
    fd_store_free(store);
    manager_stop(manager);
}

/* ---- room: the first that finds none makes a warning in the log ---- */

/* The longest name there may be, another one for each number. */
static const char *long_name(size_t number)
{
    static char name[FD_STORE_NAME_BYTES_MAX + 1];

    memset(name, 'x', sizeof name - 1);
    name[snprintf(name, sizeof name, "%zu/", number)] = 'x';
    return name;
}

/* More of them than Linux takes. */
#define LONG_NAMES_MAX 600

/* Puts long names while there is room, from number `at` on: the number behind the last. */
static size_t fill(struct fd_store *store, int manager, size_t at)
{
    int r = 0;

    while (at < LONG_NAMES_MAX && (r = fd_store_put(store, long_name(at), manager)) == 0) {
        manager_reads_all(manager);
        at++;
    }
    return r == -ENOSPC ? at : 0;
}

/* A process whose variable has more is not started any more: execve(2), MAX_ARG_STRLEN. */
static void all_names_fit_one_variable(void **state)
{
    const size_t most = 128 * 1024 - sizeof "LISTEN_FDNAMES=";
    struct fd_store *store = fd_store_new();
    int manager = manager_start(), fds[2] = {manager, manager};
    size_t bytes, n = fill(store, manager, 0);

    (void)state;
    bytes = n * (FD_STORE_NAME_BYTES_MAX + 1);
    assert_in_range(bytes, 64 * 1024, most);
    assert_int_equal(fd_store_put(store, long_name(n), manager), -ENOSPC);
    manager_gets_nothing(manager);
    while (bytes < 2 * most && fd_store_put_all(store, "connection", fds, 2) == 0) {
        bytes += 2 * sizeof "connection";
        manager_reads_all(manager);
    }
    assert_in_range(bytes, (n + 1) * (FD_STORE_NAME_BYTES_MAX + 1), most);
    assert_int_equal(fd_store_put_all(store, "connection", fds, 2), -ENOSPC);
    fd_store_free(store);
    manager_stop(manager);
}

static void what_is_removed_makes_room(void **state)
{
    struct fd_store *store = fd_store_new();
    int manager = manager_start();
    size_t n = fill(store, manager, 0);

    (void)state;
    assert_int_equal(fd_store_remove(store, "another"), 0);
    assert_int_equal(fd_store_put(store, long_name(n), manager), -ENOSPC);
    assert_int_equal(fd_store_remove(store, long_name(0)), 0);
    manager_reads_all(manager);
    assert_int_equal(fill(store, manager, n), n + 1);

    while (fd_store_remove(store, "another") == 0)
        continue;
    assert_int_equal(fd_store_remove(store, long_name(1)), -EAGAIN);
    assert_int_equal(fd_store_put(store, long_name(n + 1), manager), -EAGAIN);
    manager_reads_all(manager);
    assert_int_equal(fill(store, manager, n + 1), n + 2);
    fd_store_free(store);
    manager_stop(manager);
}

/* What it does not hear of later either, it has. */
static void what_is_never_removed_takes_its_room(void **state)
{
    struct fd_store *store = fd_store_new();
    int manager = manager_start();
    size_t n = fill(store, manager, 0);
    char name[16];

    (void)state;
    while (fd_store_remove(store, "another") == 0)
        continue;
    for (size_t i = 1; i < FD_STORE_UNTOLD_MAX; i++) {
        snprintf(name, sizeof name, "%zu", i);
        assert_int_equal(fd_store_remove(store, name), -EAGAIN);
    }
    assert_int_equal(fd_store_remove(store, long_name(0)), -EAGAIN);
    while (fd_store_put(store, long_name(n), manager) == -EAGAIN)
        manager_reads_all(manager);
    assert_int_equal(fd_store_put(store, long_name(n), manager), -ENOSPC);
    fd_store_free(store);
    manager_stop(manager);
}

static void no_more_is_put_than_was_promised(void **state)
{
    int manager = manager_start(), fds[2] = {manager, manager};
    struct fd_store *store;

    (void)state;
    setenv("FDSTORE", "8", 1);
    store = fd_store_new();
    unsetenv("FDSTORE");
    for (int i = 0; i < 6; i++)
        assert_int_equal(fd_store_put(store, "a", manager), 0);
    assert_int_equal(fd_store_put(store, "a", manager), -ENOSPC);
    assert_int_equal(fd_store_put_all(store, "b", fds, 2), 0);
    assert_int_equal(fd_store_put_all(store, "c", fds, 1), -ENOSPC);
    manager_reads_all(manager);
    assert_int_equal(fd_store_remove(store, "b"), 0);
    assert_int_equal(fd_store_put_all(store, "c", fds, 2), 0);
    manager_reads_all(manager);
    fd_store_free(store);
    manager_stop(manager);
}

/* ---- what is handed over ---- */

/* Runs `child` in a process of its own, with `count` pipes' ends as descriptors 3, 4, ... */
static void in_child(size_t count, const char *names, const char *pid, void (*child)(void))
{
    pid_t process = fork();
    char text[16];
    int status;

    if (process == 0) {
        for (size_t i = 0; i < count; i++) {
            int pipes[2], high;

            if (pipe(pipes) < 0 || (high = fcntl(pipes[0], F_DUPFD, 100)) < 0)
                _exit(90);
            close(pipes[0]);
            close(pipes[1]);
            if (high != 100 + (int)i)
                _exit(91);
        }
        for (size_t i = 0; i < count; i++) {
            if (dup2(100 + (int)i, 3 + (int)i) < 0)
                _exit(92);
        }
        snprintf(text, sizeof text, "%d", (int)getpid());
        setenv("LISTEN_PID", pid ? pid : text, 1);
        snprintf(text, sizeof text, "%zu", count);
        setenv("LISTEN_FDS", text, 1);
        if (names)
            setenv("LISTEN_FDNAMES", names, 1);
        child();
        _exit(0);
    }
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a child cmocka's own assertions do not work. */
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void take_by_name(void)
{
    struct fd_store *store = fd_store_new();
    const char *name = NULL;

    NEED(!getenv("LISTEN_PID") && !getenv("LISTEN_FDS") && !getenv("LISTEN_FDNAMES"));
    for (int fd = 3; fd < 7; fd++)
        NEED(fcntl(fd, F_GETFD) == FD_CLOEXEC);
    NEED(fd_store_take(store, "endpoint/b.sock/", NULL) == -1);
    NEED(fd_store_has(store, "endpoint/a.sock/") && !fd_store_has(store, "endpoint/b.sock/"));
    NEED(fd_store_take(store, "endpoint/a.sock/", &name) == 4);
    NEED(!fd_store_has(store, "endpoint/a.sock/"));
    NEED(strcmp(name, "endpoint/a.sock/17") == 0);
    NEED(fd_store_take(store, "endpoint/a.sock/", NULL) == -1);
    NEED(fd_store_take(store, "connection", &name) == 3 && strcmp(name, "connection") == 0);
    NEED(fd_store_take(store, "connection", &name) == 6); /* the same name twice */
    fd_store_free(store);
    NEED(fcntl(5, F_GETFD) < 0 && errno == EBADF);
    NEED(fcntl(3, F_GETFD) >= 0 && fcntl(4, F_GETFD) >= 0 && fcntl(6, F_GETFD) >= 0);
}

static void what_was_handed_over_is_taken_by_name(void **state)
{
    (void)state;
    in_child(4, "connection:endpoint/a.sock/17:stored:connection", NULL, take_by_name);
}

static void take_few_names(void)
{
    struct fd_store *store = fd_store_new();
    const char *name;

    NEED(fd_store_take(store, "one", NULL) == 3);
    NEED(fd_store_take(store, "", &name) == 4 && !*name);
    NEED(fd_store_take(store, "", &name) == 5 && !*name);
    NEED(fd_store_take(store, "", &name) == -1);
    fd_store_free(store);
}

static void take_none(void)
{
    struct fd_store *store = fd_store_new();

    NEED(!getenv("LISTEN_FDS"));
    NEED(fd_store_take(store, "", NULL) == -1);
    fd_store_free(store);
    NEED(fcntl(3, F_GETFD) == 0);
}

#define LONG_HANDED 64
static size_t fill_from_nothing;

static void fill_the_rest(void)
{
    int manager = manager_start();
    struct fd_store *store = fd_store_new();

    NEED(fill(store, manager, LONG_HANDED) == fill_from_nothing);
    NEED(fd_store_remove(store, long_name(0)) == 0);
    manager_reads_all(manager);
    NEED(fill(store, manager, fill_from_nothing) == fill_from_nothing + 1);
    fd_store_free(store);
}

static void what_was_handed_over_takes_its_room(void **state)
{
    char names[LONG_HANDED * (FD_STORE_NAME_BYTES_MAX + 1) + 1] = "";
    struct fd_store *store = fd_store_new();
    int manager = manager_start();

    (void)state;
    fill_from_nothing = fill(store, manager, 0);
    fd_store_free(store);
    manager_stop(manager);
    for (size_t i = 0; i < LONG_HANDED; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? ":" : "",
                 long_name(i));
    in_child(LONG_HANDED, names, NULL, fill_the_rest);
}

static void names_may_be_missing(void **state)
{
    (void)state;
    in_child(3, "one", NULL, take_few_names);
}

static void what_is_another_process_s_is_left_alone(void **state)
{
    (void)state;
    in_child(1, "one", "1", take_none);
    in_child(1, "one", "", take_none);
    in_child(1, "one", "12x", take_none);
}

static void drop_some(void)
{
    int manager = manager_start();
    struct fd_store *store = fd_store_new();

    fd_store_drop(store, "endpoint/");
    NEED(fcntl(3, F_GETFD) < 0 && fcntl(5, F_GETFD) < 0 && fcntl(4, F_GETFD) >= 0);
    NEED(fd_store_take(store, "endpoint/", NULL) == -1);
    manager_gets(manager, "FDSTOREREMOVE=1\nFDNAME=endpoint/a");
    manager_gets(manager, "FDSTOREREMOVE=1\nFDNAME=endpoint/b");
    NEED(fd_store_take(store, "other", NULL) == 4);
    fd_store_free(store);
}

static void what_nobody_wants_is_let_go_of_at_the_manager(void **state)
{
    (void)state;
    in_child(3, "endpoint/a:other:endpoint/b", NULL, drop_some);
}

/* In a child with `first` and `second` as descriptors 3 and 4: what fd_store_take_socket() says
 * there. */
static int socket_in_child(const char *pid, const char *fds, const char *names, int first,
                           int second)
{
    struct fd_store *store;
    pid_t child = fork();
    char own[16];
    int status;

    if (child == 0) {
        int a = dup2(first, 20), b = dup2(second, 21);

        dup2(a, 3);
        dup2(b, 4);
        snprintf(own, sizeof own, "%d", (int)getpid());
        setenv("LISTEN_PID", pid ? pid : own, 1);
        setenv("LISTEN_FDS", fds, 1);
        if (names)
            setenv("LISTEN_FDNAMES", names, 1);
        store = fd_store_new();
        status = fd_store_take_socket(store);
        fd_store_free(store);
        _exit(getenv("LISTEN_FDS") ? 99 : status < 0 ? 50 : status);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 50 ? -1 : WEXITSTATUS(status);
}

static void a_socket_units_is_the_first_listening_unix_stream(void **state)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX}; /* autobind, unix(7) */
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    int silent = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)state;
    assert_int_equal(bind(listening, (struct sockaddr *)&any, sizeof any.sun_family), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(socket_in_child(NULL, "2", NULL, listening, silent), 3);
    assert_int_equal(socket_in_child(NULL, "2", NULL, silent, listening), 4);
    assert_int_equal(socket_in_child(NULL, "1", NULL, silent, listening), -1);
    assert_int_equal(socket_in_child(NULL, "0", NULL, listening, listening), -1);
    assert_int_equal(socket_in_child(NULL, "two", NULL, listening, listening), -1);
    assert_int_equal(socket_in_child(NULL, "-2", NULL, listening, listening), -1);
    assert_int_equal(socket_in_child("1", "2", NULL, listening, listening), -1);
    assert_int_equal(socket_in_child("", "2", NULL, listening, listening), -1);
    assert_int_equal(socket_in_child(NULL, "2", "endpoint/cri/1:a.socket", listening, listening),
                     4);
    assert_int_equal(socket_in_child(NULL, "2", "endpoint/cri/1:b/2", listening, listening), -1);
    close(listening);
    close(silent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_comes_to_the_manager_with_its_name),
        cmocka_unit_test(without_a_manager_nothing_is_kept),
        cmocka_unit_test(no_store_has_and_keeps_nothing),
        cmocka_unit_test(what_a_manager_has_promised),
        cmocka_unit_test(several_go_in_one_message),
        cmocka_unit_test(a_manager_that_does_not_read_blocks_nobody),
        cmocka_unit_test(what_could_not_be_removed_is_removed_later),
        cmocka_unit_test(all_names_fit_one_variable),
        cmocka_unit_test(what_is_removed_makes_room),
        cmocka_unit_test(what_is_never_removed_takes_its_room),
        cmocka_unit_test(no_more_is_put_than_was_promised),
        cmocka_unit_test(what_was_handed_over_is_taken_by_name),
        cmocka_unit_test(what_was_handed_over_takes_its_room),
        cmocka_unit_test(names_may_be_missing),
        cmocka_unit_test(what_is_another_process_s_is_left_alone),
        cmocka_unit_test(what_nobody_wants_is_let_go_of_at_the_manager),
        cmocka_unit_test(a_socket_units_is_the_first_listening_unix_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
