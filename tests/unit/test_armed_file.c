/* shim/kubelet/armed_file.c: who a real gate has armed, over its restarts. */
#include "tests/unit/gate_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/boot.h"
#include "shim/process.h"

static void what_is_armed_outlives_the_daemon(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    again(f);
    assert_int_equal(f->released_len, 0);
    assert_true(gate_armed(f->gate, f->kubelet));
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    gate_answered(f->gate, f->kubelet);
    WAIT(f->world, f->released_len == 1);
    again(f);
    assert_false(gate_armed(f->gate, f->kubelet));
    assert_false(has_file(f));
}

__attribute__((format(printf, 2, 3))) static void write_file(const struct fixture *f,
                                                             const char *format, ...)
{
    FILE *file = fopen(f->file, "w");
    va_list args;

    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    fclose(file);
}

/* Says on stderr which lines make no sense. */
static void a_file_that_cannot_be_is_left_out(void **state)
{
    struct fixture *f = *state;
    char boot[BOOT_ID_BYTES_MAX];
    uint64_t started;
    pid_t other = named_process("other");

    boot_id_read(boot);
    assert_int_equal(process_started(f->kubelet, &started), 0);
    write_file(f, "another-boot %d %llu\n", f->kubelet, (unsigned long long)started);
    again(f);
    assert_false(gate_armed(f->gate, f->kubelet));
    write_file(f, "%s %d %llu\n", boot, f->kubelet, (unsigned long long)started + 1);
    again(f);
    assert_false(gate_armed(f->gate, f->kubelet));
    assert_int_equal(process_started(other, &started), 0);
    write_file(f, "%s %d %llu\n", boot, other, (unsigned long long)started);
    again(f);
    assert_false(gate_armed(f->gate, other));
    assert_int_equal(process_started(f->kubelet, &started), 0);
    write_file(f, "x\n%s %d %llu more\n%s %d %llu 1 2 3 4\n%s %d %llu 1 2\n%s 99999999999 1\n",
               boot, f->kubelet, (unsigned long long)started, boot, f->kubelet,
               (unsigned long long)started, boot, f->kubelet, (unsigned long long)started, boot);
    again(f);
    assert_false(gate_armed(f->gate, f->kubelet));
    write_file(f, "\n%s %d %llu\n", boot, f->kubelet, (unsigned long long)started);
    again(f);
    assert_true(
        gate_armed(f->gate, f->kubelet)); /* by the last line, as earlier releases wrote it */
    named_process_kill(other);
}

/* Says so on stderr: what cannot be stored works all the same. */
static void without_a_file(void **state)
{
    struct fixture *f = *state;

    stop(f);
    snprintf(f->socket, sizeof f->socket, "%s/none/feed.sock", f->world->dir);
    start(f);
    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    gate_answered(f->gate, f->kubelet);
    WAIT(f->world, f->released_len == 1);
}

/* Says so on stderr. */
static void with_something_else_in_the_place_of_its_file(void **state)
{
    struct fixture *f = *state;
    char beside[80];

    assert_int_equal(mkdir(f->file, 0755), 0);
    gate_announced(f->gate, f->kubelet);
    snprintf(beside, sizeof beside, "%s.new", f->file);
    assert_int_equal(access(beside, F_OK), -1);
    gate_answered(f->gate, f->kubelet);
    assert_false(gate_armed(f->gate, f->kubelet));
    again(f);
    assert_int_equal(rmdir(f->file), 0);
}

/* A link that somebody left where the file is made is not followed. */
static void its_file_is_its_own(void **state)
{
    struct fixture *f = *state;
    char beside[80], other[80], text[16];
    FILE *file;

    snprintf(beside, sizeof beside, "%s.new", f->file);
    snprintf(other, sizeof other, "%s.other", f->file);
    file = fopen(other, "w");
    assert_true(fputs("untouched", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(symlink(other, beside), 0);
    gate_announced(f->gate, f->kubelet);
    again(f);
    assert_true(gate_armed(f->gate, f->kubelet)); /* by the file */
    file = fopen(other, "r");
    assert_non_null(fgets(text, sizeof text, file));
    assert_string_equal(text, "untouched");
    fclose(file);
    assert_int_equal(unlink(other), 0);
}

/* Says so on stderr. */
static void without_room_for_its_file(void **state)
{
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    struct fixture *f = *state;
    struct rlimit limit, none;
    char beside[80];

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    gate_announced(f->gate, f->kubelet);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, before);
    assert_true(gate_armed(f->gate, f->kubelet));
    assert_false(has_file(f)); /* neither half a one */
    snprintf(beside, sizeof beside, "%s.new", f->file);
    assert_int_equal(access(beside, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_armed_outlives_the_daemon),
        TEST(a_file_that_cannot_be_is_left_out),
        TEST(without_a_file),
        TEST(with_something_else_in_the_place_of_its_file),
        TEST(its_file_is_its_own),
        TEST(without_room_for_its_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
