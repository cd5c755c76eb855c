/* shim/log.c: what reaches stderr, which a pipe takes the place of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "shim/log.h"

ssize_t __real_pwritev2(int fd, const struct iovec *bytes, int count, off_t at, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *bytes, int count, off_t at, int flags);

static bool old_kernel; /* one that does not know RWF_NOWAIT of a pipe */

ssize_t __wrap_pwritev2(int fd, const struct iovec *bytes, int count, off_t at, int flags)
{
    if (!old_kernel)
        return __real_pwritev2(fd, bytes, count, at, flags);
    errno = EOPNOTSUPP;
    return -1;
}

/* The journal's socket, in place of the machine's own. */
static int journal_error = ENOENT; /* 0: it takes what comes */
static char journal[8192];         /* what came last */
static unsigned journal_count;

ssize_t __wrap_sendto(int fd, const void *bytes, size_t len, int flags,
                      const struct sockaddr *address, socklen_t address_len);
ssize_t __wrap_sendto(int fd, const void *bytes, size_t len, int flags,
                      const struct sockaddr *address, socklen_t address_len)
{
    assert_true(fd >= 0);
    assert_int_equal(flags, MSG_DONTWAIT | MSG_NOSIGNAL);
    assert_int_equal(address_len, sizeof(struct sockaddr_un));
    assert_string_equal(((const struct sockaddr_un *)address)->sun_path,
                        "/run/systemd/journal/socket");
    if (journal_error) {
        errno = journal_error;
        return -1;
    }
    assert_true(len < sizeof journal);
    memcpy(journal, bytes, len);
    journal[len] = '\0';
    journal_count++;
    return (ssize_t)len;
}

struct fixture {
    int saved;
    int read_end;
    char text[8192];
};

/* What a service manager says of the stream that it has made stderr. */
static void set_journal_stream(uintmax_t inode_off)
{
    char stream[64];
    struct stat st;

    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev,
             (uintmax_t)st.st_ino + inode_off);
    assert_int_equal(setenv("JOURNAL_STREAM", stream, 1), 0);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    int ends[2];

    if (pipe(ends) < 0)
        return -1;
    f->saved = dup(STDERR_FILENO);
    f->read_end = ends[0];
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    set_journal_stream(0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    log_set_level(LOG_LEVEL_INFO);
    log_set_format(LOG_FORMAT_AUTO);
    unsetenv(LOG_FORMAT_VARIABLE);
    journal_error = ENOENT;
    journal_count = 0;
    unsetenv("JOURNAL_STREAM");
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
    log_info("of another test"); /* so that no line is the same as this test's last */
    dup2(f->saved, STDERR_FILENO);
    close(f->saved);
    close(f->read_end);
    free(f);
    return 0;
}

/* What was written so far; the pipe is closed for writing by it. */
static const char *written(struct fixture *f)
{
    ssize_t n;
    size_t len = 0;

    dup2(f->saved, STDERR_FILENO);
    while ((n = read(f->read_end, f->text + len, sizeof f->text - 1 - len)) > 0)
        len += (size_t)n;
    f->text[len] = '\0';
    return f->text;
}

static void lines_carry_their_priority(void **state)
{
    log_error("one %d", 1);
    log_warning("two");
    log_info("three");
    log_debug("not shown");
    log_set_level(LOG_LEVEL_ERROR);
    log_warning("nor this");
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("four");
    assert_string_equal(written(*state), "<3>one 1\n<4>two\n<6>three\n<7>four\n");
}

static void a_peer_cannot_forge_a_line(void **state)
{
    log_info("%s", "a\n<3>b\r\t\x1b[31m\x7f \xc3\xbc");
    log_info("%s", "\xc2\x9b"
                   "31m\xc2\x85\xc2\xa0");
    assert_string_equal(written(*state), "<6>a?<3>b???[31m? \xc3\xbc\n<6>??31m??\xc2\xa0\n");
}

static void a_long_line_is_cut(void **state)
{
    char text[5000];
    const char *line;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    log_info("%s", text);
    log_info("next");
    line = strchr(written(*state), '\n');
    assert_non_null(line);
    assert_in_range(line - ((struct fixture *)*state)->text, 2000, 2048);
    assert_string_equal(line, "\n<6>next\n");
}

static void it_never_allocates(void **state)
{
    alloc_fail_at(1);
    alloc_fail_enable(true);
    for (int i = LOG_FORMAT_AUTO; i <= LOG_FORMAT_JOURNAL; i++) {
        log_set_format((enum log_format)i);
        log_info("%s %d", "text", i);
    }
    alloc_fail_enable(false);
    assert_false(alloc_failed());
    assert_non_null(strstr(written(*state), "<6>text 0\n"));
}

/* A line behind what stands for digits in `head`. */
static void assert_line(const char **at, const char *head, const char *rest)
{
    const char *p = *at;

    for (; *head; head++, p++) {
        if (*head == '9')
            assert_in_range(*p, '0', '9');
        else if (*head == '+')
            assert_true(*p == '+' || *p == '-');
        else
            assert_int_equal(*p, *head);
    }
    assert_memory_equal(p, rest, strlen(rest));
    *at = p + strlen(rest);
}

static void fill(int fd);
static void drain(int fd);

static void say_all_levels(void)
{
    log_set_level(LOG_LEVEL_DEBUG);
    log_error("one");
    log_warning("two");
    log_info("three");
    log_debug("four");
}

static void any_other_stream_is_told_date_and_level(void **state)
{
    static const char date[] = "9999-99-99T99:99:99.999+9999 ";
    const char *at;

    set_journal_stream(1); /* inherited from a service, and redirected */
    log_set_format(LOG_FORMAT_PLAIN);
    say_all_levels();
    at = written(*state);
    assert_line(&at, date, "error: one\n");
    assert_line(&at, date, "warning: two\n");
    assert_line(&at, date, "three\n");
    assert_line(&at, date, "debug: four\n");
    assert_string_equal(at, "");
}

static void without_a_journal_the_same(void **state)
{
    const char *at;

    unsetenv("JOURNAL_STREAM");
    setenv(LOG_FORMAT_VARIABLE, "plain", 1);
    log_info("one");
    setenv(LOG_FORMAT_VARIABLE, "none of them", 1);
    log_info("two");
    log_set_format(LOG_FORMAT_JSON); /* the settings have the last word */
    log_info("three");
    at = written(*state);
    assert_line(&at, "9999-99-99T99:99:99.999+9999 ", "one\n");
    assert_line(&at, "ts=9999-99-99T99:99:99.999Z ", "level=info msg=\"two\"\n");
    assert_line(&at, "{\"ts\":\"9999-99-99T99:99:99.999Z\"",
                ",\"level\":\"info\",\"msg\":\"three\"}\n");
    assert_string_equal(at, "");
}

/* ---- systemd's journal ---- */

static void the_journal_has_fields(void **state)
{
    const struct log_about about = {.kind = LOG_KIND_REFUSED,
                                    .resource = "a.b/c",
                                    .pod = "shop/cart\nPRIORITY=0",
                                    .container = "main"};

    journal_error = 0;
    log_write_about(LOG_LEVEL_WARNING, &about, "no %s\nPRIORITY=1", "gpu");
    assert_string_equal(written(*state), "");
    assert_int_equal(strncmp(journal, "PRIORITY=4\nSYSLOG_IDENTIFIER=test_log\nMESSAGE_ID=", 49),
                     0);
    assert_string_equal(strchr(journal + 49, '\n'),
                        "\nKIND=refused\nRESOURCE=a.b/c\nPOD=shop/cart?PRIORITY=0\n"
                        "CONTAINER=main\nMESSAGE=no gpu?PRIORITY=1\n");
}

static void a_line_about_nothing_has_no_fields(void **state)
{
    (void)state;
    journal_error = 0;
    log_info("plainly");
    assert_string_equal(journal, "PRIORITY=6\nSYSLOG_IDENTIFIER=test_log\nMESSAGE=plainly\n");
}

static void a_full_journal_loses_lines_and_tells(void **state)
{
    journal_error = EAGAIN;
    log_info("nobody sees it");
    log_info("nor this");
    journal_error = 0;
    log_tell_counts();
    assert_non_null(strstr(journal, "\nKIND=lost\nMESSAGE=2 lines before this were lost: nobody "
                                    "took them\n"));
    assert_int_equal(journal_count, 1);
    assert_string_equal(written(*state), "");
}

static void where_there_is_no_journal_stderr_has_it(void **state)
{
    const char *at;

    unsetenv("JOURNAL_STREAM");
    log_set_format(LOG_FORMAT_JOURNAL);
    log_info("one");
    at = written(*state);
    assert_line(&at, "9999-99-99T99:99:99.999+9999 ", "one\n");
}

/* ---- the same again ---- */

static void a_repeat_is_counted(void **state)
{
    const struct log_about about = {.resource = "a.b/c"}, other = {.resource = "a.b/d"};

    for (int i = 0; i < 3; i++)
        log_warning("again");
    log_info("again"); /* another level is another line */
    log_write_about(LOG_LEVEL_INFO, &about, "again");
    log_write_about(LOG_LEVEL_INFO, &other, "again");
    log_write_about(LOG_LEVEL_INFO, &other, "again");
    log_tell_counts();
    log_write_about(LOG_LEVEL_INFO, &other, "again");
    log_info("else");
    assert_string_equal(written(*state), "<4>again\n<6>the line before this came 2 times more\n"
                                         "<6>again\n<6>again\n<6>again\n"
                                         "<6>the line before this came 1 times more\n"
                                         "<6>the line before this came 1 times more\n<6>else\n");
}

static void a_repeat_of_a_lost_line_is_lost(void **state)
{
    struct fixture *f = *state;

    fill(STDERR_FILENO);
    log_info("again");
    log_info("again");
    drain(f->read_end);
    log_info("again");
    assert_string_equal(written(f), "<4>2 lines before this were lost: nobody took them\n"
                                    "<6>again\n");
}

static void a_terminal_is_told_the_time(void **state)
{
    struct fixture *f = *state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), end;
    const char *at = f->text;
    ssize_t n;

    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(end >= 0);
    dup2(end, STDERR_FILENO);
    close(end);
    log_warning("one");
    dup2(f->saved, STDERR_FILENO);
    n = read(terminal, f->text, sizeof f->text - 1);
    assert_true(n > 0);
    f->text[n] = '\0';
    assert_line(&at, "99:99:99.999 ", "warning: one\r\n");
    close(terminal);
}

/* ---- nobody reads ---- */

#define STUCK_S 60 /* a line that waits ends the test */

static void fill(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    static const char stuff[512];

    assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    while (write(fd, stuff, sizeof stuff) > 0)
        continue;
    assert_int_equal(fcntl(fd, F_SETFL, flags), 0);
}

/* Takes what was put in by fill(). */
static void drain(int fd)
{
    char stuff[512];
    int flags = fcntl(fd, F_GETFL);

    assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    while (read(fd, stuff, sizeof stuff) > 0)
        continue;
    assert_int_equal(fcntl(fd, F_SETFL, flags), 0);
}

static void assert_lost_are_told(struct fixture *f)
{
    int flags = fcntl(STDERR_FILENO, F_GETFL);

    alarm(STUCK_S);
    log_info("before");
    drain(f->read_end);
    fill(STDERR_FILENO);
    for (int i = 0; i < 3; i++)
        log_info("nobody sees %d", i);
    log_tell_counts();
    drain(f->read_end);
    log_info("seen");
    log_info("seen, too");
    alarm(0);
    assert_int_equal(fcntl(STDERR_FILENO, F_GETFL), flags); /* it is others', too */
    assert_string_equal(written(f), "<4>3 lines before this were lost: nobody took them\n"
                                    "<6>seen\n<6>seen, too\n");
}

static void fail_assertion(void)
{
    assert(!"a bug of ours");
}

static void have_no_memory(void)
{
    errno = ENOMEM;
    abort();
}

static void give_up(void)
{
    errno = 0;
    abort();
}

/* A child that `ends` itself, in a process that has this for its stderr. */
static void assert_aborts(void (*ends)(void))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        static const struct rlimit none = {0};

        setrlimit(RLIMIT_CORE, &none);
        alarm(STUCK_S);
        ends();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void a_failed_assertion_is_a_line(void **state)
{
    const char *text;

    assert_aborts(fail_assertion);
    text = written(*state);
    assert_memory_equal(text, "<3>", 3);
    assert_non_null(strstr(text, "test_log.c:"));
    assert_non_null(strstr(text, ": fail_assertion: Assertion `!\"a bug of ours\"' failed\n"));
    assert_null(strstr(text, "abort:"));
}

static void an_abort_is_a_line(void **state)
{
    const char *text;

    assert_aborts(have_no_memory);
    assert_aborts(give_up);
    text = written(*state);
    assert_non_null(
        strstr(text, "<3>out of memory: the process ends, for the next one to go on\n"));
    assert_non_null(strstr(text, "<3>abort: the process ends, for the next one to go on\n"));
}

static void nor_does_it_hold_up_whoever_dies(void **state)
{
    (void)state;
    fill(STDERR_FILENO);
    assert_aborts(fail_assertion);
}

static void a_full_pipe_does_not_hold_it_up(void **state)
{
    assert_lost_are_told(*state);
}

static void a_full_pipe_of_an_old_kernel(void **state)
{
    old_kernel = true;
    assert_lost_are_told(*state);
    old_kernel = false;
}

static void a_stopped_journal_does_not_hold_it_up(void **state)
{
    struct fixture *f = *state;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    dup2(ends[1], STDERR_FILENO);
    dup2(ends[0], f->read_end);
    close(ends[0]);
    close(ends[1]);
    set_journal_stream(0);
    assert_lost_are_told(f);
}

static void they_are_told_without_another_line(void **state)
{
    struct fixture *f = *state;

    alarm(STUCK_S);
    fill(STDERR_FILENO);
    log_info("nobody sees it");
    drain(f->read_end);
    log_tell_counts();
    log_tell_counts();
    alarm(0);
    assert_string_equal(written(f), "<4>1 lines before this were lost: nobody took them\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_carry_their_priority),
        TEST(a_peer_cannot_forge_a_line),
        TEST(a_long_line_is_cut),
        TEST(it_never_allocates),
        TEST(any_other_stream_is_told_date_and_level),
        TEST(without_a_journal_the_same),
        TEST(the_journal_has_fields),
        TEST(a_line_about_nothing_has_no_fields),
        TEST(a_full_journal_loses_lines_and_tells),
        TEST(where_there_is_no_journal_stderr_has_it),
        TEST(a_repeat_is_counted),
        TEST(a_repeat_of_a_lost_line_is_lost),
        TEST(a_terminal_is_told_the_time),
        TEST(a_failed_assertion_is_a_line),
        TEST(an_abort_is_a_line),
        TEST(nor_does_it_hold_up_whoever_dies),
        TEST(a_full_pipe_does_not_hold_it_up),
        TEST(a_full_pipe_of_an_old_kernel),
        TEST(a_stopped_journal_does_not_hold_it_up),
        TEST(they_are_told_without_another_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
