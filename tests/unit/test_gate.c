/* shim/kubelet/gate.c: the real gate on a real loop, with child processes for kubelets; what they
 * have taken is the test's to say. */
#include "tests/unit/test_wait.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/boot.h"
#include "shim/kubelet/gate.h"
#include "shim/kubelet/process.h"
#include "shim/plugins/manager.h"
#include "tests/unit/named_process.h"

#define NEVER UINT64_MAX

/* In the place of the manager's clock, which this is, and what the test has skipped. */
static uint64_t skipped_ms;

uint64_t manager_now_ms(void)
{
    return boot_now_ms() + skipped_ms;
}

struct fixture {
    struct world *world;
    struct config config;
    char socket[64], file[64];
    char *names[1];
    struct gate *gate;
    struct taken taken;
    unsigned asked; /* ops.taken */
    unsigned waits;
    uint64_t released[16];
    size_t released_len;
    uint64_t cancels; /* when it is released: gate_cancelled() of this one; 0: none */
    bool stopped;
    pid_t kubelet;
};

static void on_taken(void *user, pid_t kubelet, struct taken *out)
{
    struct fixture *f = user;

    (void)kubelet;
    f->asked++;
    *out = f->taken;
}

static void on_release(void *user, uint64_t hold)
{
    struct fixture *f = user;

    f->released[f->released_len++] = hold;
    if (f->cancels)
        gate_cancelled(f->gate, f->cancels);
}

static void on_waits(void *user)
{
    struct fixture *f = user;

    f->waits++;
}

static const struct gate_ops OPS = {.taken = on_taken, .release = on_release, .waits = on_waits};

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

static void start(struct fixture *f)
{
    f->gate = gate_start(&f->world->loop, &f->config, &OPS, f);
    assert_non_null(f->gate);
}

static void stop(struct fixture *f)
{
    f->stopped = false;
    gate_stop(f->gate, on_stopped, f);
    assert_false(f->stopped);
    WAIT(f->world, f->stopped);
}

static int setup(void **state)
{
    struct fixture *f;

    if (world_setup(state) < 0)
        return -1;
    f = calloc(1, sizeof *f);
    f->world = *state;
    snprintf(f->socket, sizeof f->socket, "%s/feed.sock", f->world->dir);
    snprintf(f->file, sizeof f->file, "%s/" GATE_FILE, f->world->dir);
    f->names[0] = (char *)"kubelet";
    f->taken.bridge = true;
    f->config.bridge = (struct config_bridge){.enabled = true,
                                              .socket = f->socket,
                                              .kubelet_plugin_dir = f->world->dir,
                                              .gate = true,
                                              .gate_timeout_ms = 60000,
                                              .kubelet_processes = f->names,
                                              .kubelet_processes_len = 1};
    snprintf(f->taken.words, sizeof f->taken.words, "what the test says");
    f->kubelet = named_process("kubelet");
    start(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *world = f->world;
    int r;

    stop(f);
    named_process_kill(f->kubelet);
    unlink(f->file);
    free(f);
    r = world_teardown(&world);
    return r;
}

static void again(struct fixture *f)
{
    stop(f);
    start(f);
}

static bool has_file(const struct fixture *f)
{
    return access(f->file, F_OK) == 0;
}

/* Nothing was let go, and nothing is about to be. */
static void assert_held(struct fixture *f)
{
    world_settle(f->world);
    assert_int_equal(f->released_len, 0);
}

static void only_kubelets_are_watched(void **state)
{
    struct fixture *f = *state;
    pid_t crictl = named_process("crictl");

    assert_true(gate_watches(f->gate, f->kubelet));
    assert_false(gate_watches(f->gate, crictl));
    assert_false(gate_watches(f->gate, 0));
    gate_announced(f->gate, crictl);
    gate_announced(f->gate, 0);
    assert_false(gate_armed(f->gate, crictl));
    assert_false(gate_armed(f->gate, 0));
    assert_false(gate_hold(f->gate, crictl, NEVER, 1));
    assert_false(gate_hold(f->gate, 0, NEVER, 1));
    assert_false(has_file(f));
    named_process_kill(crictl);
}

static void a_kubelet_that_has_not_just_started_passes(void **state)
{
    struct fixture *f = *state;

    assert_false(gate_armed(f->gate, f->kubelet));
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 1));
    gate_answered(f->gate, f->kubelet);
    assert_int_equal(f->asked, 0);
}

static void holds_until_all_is_taken(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    assert_true(gate_armed(f->gate, f->kubelet));
    assert_true(has_file(f));
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 7));
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 8));
    gate_changed(f->gate);
    assert_held(f);
    assert_int_equal(f->asked, 3);
    f->taken.all = true;
    gate_changed(f->gate);
    assert_int_equal(f->released_len, 0); /* from the loop only */
    WAIT(f->world, f->released_len == 2);
    assert_int_equal(f->released[0], 7);
    assert_int_equal(f->released[1], 8);
    assert_false(has_file(f));
    /* And that is all for this process. */
    f->taken.all = false;
    gate_announced(f->gate, f->kubelet);
    assert_false(gate_armed(f->gate, f->kubelet));
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 9));
    gate_answered(f->gate, f->kubelet);
}

static void what_is_taken_already_is_not_held(void **state)
{
    struct fixture *f = *state;

    f->taken.all = true;
    gate_announced(f->gate, f->kubelet);
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_false(gate_armed(f->gate, f->kubelet));
    assert_held(f);
}

/* Seen when a second call comes: the first goes on, too. */
static void one_that_finds_it_taken_frees_the_others(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    f->taken.all = true;
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 2));
    assert_int_equal(f->released_len, 0);
    WAIT(f->world, f->released_len == 1);
    assert_int_equal(f->released[0], 1);
}

/* kubelet.sock, as a kubelet that starts makes it: without what was there before. */
static void make_socket(struct fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s/kubelet.sock", f->world->dir);
    unlink(address.sun_path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd); /* its name stays, as after a crash */
}

static void remove_socket(struct fixture *f)
{
    char path[64];

    snprintf(path, sizeof path, "%s/kubelet.sock", f->world->dir);
    assert_int_equal(unlink(path), 0);
}

/* Held for some times the limit and the looks at the socket, whatever comes and goes. */
static void assert_held_on(struct fixture *f)
{
    uint64_t end_ms = manager_now_ms() + 3 * GATE_LOOK_MS;

    while (manager_now_ms() < end_ms) {
        gate_changed(f->gate);
        uv_run(&f->world->loop, UV_RUN_NOWAIT);
        assert_int_equal(f->released_len, 0);
    }
}

static void the_time_limit_counts_from_the_socket(void **state)
{
    struct fixture *f = *state;
    uint64_t made_ms;

    f->config.bridge.gate_timeout_ms = 30;
    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_held_on(f);
    made_ms = manager_now_ms();
    make_socket(f);
    WAIT(f->world, f->released_len == 1);
    assert_true(manager_now_ms() - made_ms >= 30);
    assert_false(has_file(f));
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 2));
    remove_socket(f);
}

/* An earlier kubelet's is no sign, also not to a daemon that was started in between. */
static void a_socket_from_before_does_not_count(void **state)
{
    struct fixture *f = *state;

    f->config.bridge.gate_timeout_ms = 30;
    make_socket(f);
    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_held_on(f);
    again(f);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_held_on(f);
    make_socket(f);
    WAIT(f->world, f->released_len == 1);
    remove_socket(f);
}

/* The bridge has seen it where the daemon does not, in another mount namespace perhaps. */
static void a_bridge_that_has_reached_it_has_seen_the_socket(void **state)
{
    struct fixture *f = *state;

    f->config.bridge.gate_timeout_ms = 30;
    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_held_on(f);
    f->taken.reached = true;
    gate_changed(f->gate);
    WAIT(f->world, f->released_len == 1);
}

static void without_a_bridge_the_time_limit_counts_at_once(void **state)
{
    struct fixture *f = *state;
    uint64_t gone_ms;

    f->config.bridge.gate_timeout_ms = 30;
    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_held_on(f);
    gone_ms = manager_now_ms();
    f->taken.bridge = false;
    gate_changed(f->gate);
    WAIT(f->world, f->released_len == 1);
    assert_true(manager_now_ms() - gone_ms >= 30);
}

/* A bridge that comes back in time ends that. */
static void a_bridge_that_restarts_is_waited_for(void **state)
{
    struct fixture *f = *state;

    f->config.bridge.gate_timeout_ms = 3 * GATE_LOOK_MS;
    f->taken.bridge = false;
    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    f->taken.bridge = true;
    gate_changed(f->gate);
    assert_held_on(f);
    assert_held_on(f);
}

/* It counts from the first call, also if that is given up. */
static void the_time_limit_goes_on_between_calls(void **state)
{
    struct fixture *f = *state;
    uint64_t number = 0;

    f->config.bridge.gate_timeout_ms = 30;
    f->taken.reached = true;
    gate_announced(f->gate, f->kubelet);
    while (gate_hold(f->gate, f->kubelet, NEVER, ++number))
        gate_cancelled(f->gate, number);
    assert_true(number > 1);
    assert_false(gate_armed(f->gate, f->kubelet));
    assert_held(f);
}

static void a_clients_deadline_comes_first(void **state)
{
    struct fixture *f = *state;
    uint64_t now_ms = manager_now_ms();

    gate_announced(f->gate, f->kubelet);
    /* Too near to be worth it: passes, and nothing else changes. */
    assert_false(gate_hold(f->gate, f->kubelet, 0, 1));
    assert_false(gate_hold(f->gate, f->kubelet, now_ms + GATE_MARGIN_MS - 1, 1));
    assert_true(gate_armed(f->gate, f->kubelet));
    /* One that was given up counts no more. */
    assert_true(gate_hold(f->gate, f->kubelet, now_ms + GATE_MARGIN_MS + 10000, 2));
    gate_cancelled(f->gate, 2);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 3));
    assert_held(f);
    while (!gate_hold(f->gate, f->kubelet, manager_now_ms() + GATE_MARGIN_MS + 30, 4)) {
        /* 30 ms passed within the call */
    }
    WAIT(f->world, f->released_len == 2); /* all together */
    assert_false(gate_armed(f->gate, f->kubelet));
}

/* One that has no deadline is not held for ever. */
static void without_a_deadline_there_is_a_limit(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    skipped_ms += GATE_HOLD_MS_MAX / 2;
    gate_changed(f->gate);
    assert_held(f);
    skipped_ms += GATE_HOLD_MS_MAX / 2;
    WAIT(f->world, f->released_len == 1);
}

/* While it is held, whatever happens, and once more when it is let go. */
static void that_a_kubelet_waits_is_told(void **state)
{
    struct fixture *f = *state;
    unsigned waits;

    f->taken.reached = true;
    gate_announced(f->gate, f->kubelet);
    assert_int_equal(f->waits, 0);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_int_equal(f->waits, 1);
    WAIT(f->world, f->waits == 4);
    assert_held(f);
    f->taken.all = true;
    waits = f->waits;
    gate_changed(f->gate);
    WAIT(f->world, f->released_len == 1);
    assert_int_equal(f->waits, waits + 1);
    world_settle(f->world);
    gate_changed(f->gate);
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 2));
    world_settle(f->world);
    assert_int_equal(f->waits, waits + 1);
}

static void an_answered_relist_disarms(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    gate_answered(f->gate, f->kubelet);
    assert_false(gate_armed(f->gate, f->kubelet));
    assert_false(has_file(f));
    WAIT(f->world, f->released_len == 1);
}

static void a_call_given_up_is_not_released(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    for (uint64_t hold = 1; hold <= 4; hold++)
        assert_true(gate_hold(f->gate, f->kubelet, NEVER, hold));
    gate_cancelled(f->gate, 2);
    gate_cancelled(f->gate, 99); /* never heard of */
    f->taken.all = true;
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 5));
    gate_cancelled(f->gate, 1); /* let go, but not told yet */
    f->cancels = 4;             /* and while it is told */
    WAIT(f->world, f->released_len == 1);
    world_settle(f->world);
    assert_int_equal(f->released_len, 1);
    assert_int_equal(f->released[0], 3);
}

static void kubelets_are_apart(void **state)
{
    struct fixture *f = *state;
    pid_t other = named_process("kubelet");

    gate_announced(f->gate, f->kubelet);
    gate_announced(f->gate, other);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_true(gate_hold(f->gate, other, NEVER, 2));
    gate_answered(f->gate, other);
    WAIT(f->world, f->released_len == 1);
    assert_int_equal(f->released[0], 2);
    assert_true(gate_armed(f->gate, f->kubelet));
    named_process_kill(other);
    assert_false(gate_armed(f->gate, other));
}

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

static void a_dead_kubelet_is_forgotten(void **state)
{
    struct fixture *f = *state;
    pid_t dead = named_process("kubelet");

    gate_announced(f->gate, dead);
    assert_true(has_file(f));
    named_process_kill(dead);
    assert_false(gate_armed(f->gate, dead));
    assert_false(gate_hold(f->gate, dead, NEVER, 1));
    again(f);
    assert_false(has_file(f));
}

/* More of them than are kept. */
static void kubelets_that_crash_at_once_take_no_room(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    for (int i = 0; i < 3 * GATE_PROCESSES_MAX; i++) {
        pid_t pid = named_process("kubelet");

        gate_announced(f->gate, pid);
        assert_true(gate_armed(f->gate, pid));
        named_process_kill(pid);
    }
    assert_true(gate_armed(f->gate, f->kubelet));
}

static void the_oldest_goes_when_too_many_live(void **state)
{
    struct fixture *f = *state;
    pid_t pids[GATE_PROCESSES_MAX];

    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    for (size_t i = 0; i < GATE_PROCESSES_MAX; i++) {
        pids[i] = named_process("kubelet");
        gate_announced(f->gate, pids[i]);
        assert_true(gate_armed(f->gate, pids[i]));
    }
    assert_true(gate_armed(f->gate, f->kubelet)); /* it waits */
    assert_false(gate_armed(f->gate, pids[0]));
    assert_true(gate_armed(f->gate, pids[1]));
    for (size_t i = 0; i < GATE_PROCESSES_MAX; i++)
        named_process_kill(pids[i]);
}

/* A node cannot have that; the one too many goes on without a gate. */
static void nobody_goes_while_all_wait(void **state)
{
    struct fixture *f = *state;
    pid_t pids[GATE_PROCESSES_MAX];

    for (size_t i = 0; i < GATE_PROCESSES_MAX; i++) {
        pids[i] = named_process("kubelet");
        gate_announced(f->gate, pids[i]);
        assert_true(gate_hold(f->gate, pids[i], NEVER, i + 1));
    }
    gate_announced(f->gate, f->kubelet);
    assert_false(gate_armed(f->gate, f->kubelet));
    assert_true(gate_armed(f->gate, pids[0]));
    for (size_t i = 0; i < GATE_PROCESSES_MAX; i++)
        named_process_kill(pids[i]);
    f->taken.all = true; /* also of those that are dead, as long as their calls are there */
    gate_changed(f->gate);
    WAIT(f->world, f->released_len == GATE_PROCESSES_MAX);
}

static void there_is_a_most_of_held_calls(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    for (uint64_t hold = 1; hold <= GATE_HOLDS_MAX; hold++)
        assert_true(gate_hold(f->gate, f->kubelet, NEVER, hold));
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, GATE_HOLDS_MAX + 1));
    gate_cancelled(f->gate, 5);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 5));
}

static void write_file(const struct fixture *f, const char *format, ...)
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

/* Who is a kubelet is known all the same. */
static void there_may_be_no_gate(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        stop(f);
        f->config.bridge.gate = i == 0;
        f->config.bridge.enabled = i == 1;
        start(f);
        assert_true(gate_watches(f->gate, f->kubelet));
        assert_true(gate_announced(f->gate, f->kubelet));
        assert_false(gate_announced(f->gate, f->kubelet));
        assert_false(gate_armed(f->gate, f->kubelet));
        assert_false(gate_hold(f->gate, f->kubelet, NEVER, 1));
        gate_answered(f->gate, f->kubelet);
        assert_false(has_file(f));
    }
    assert_int_equal(f->asked, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_kubelets_are_watched),
        TEST(a_kubelet_that_has_not_just_started_passes),
        TEST(holds_until_all_is_taken),
        TEST(what_is_taken_already_is_not_held),
        TEST(one_that_finds_it_taken_frees_the_others),
        TEST(the_time_limit_counts_from_the_socket),
        TEST(a_socket_from_before_does_not_count),
        TEST(a_bridge_that_has_reached_it_has_seen_the_socket),
        TEST(without_a_bridge_the_time_limit_counts_at_once),
        TEST(a_bridge_that_restarts_is_waited_for),
        TEST(the_time_limit_goes_on_between_calls),
        TEST(a_clients_deadline_comes_first),
        TEST(without_a_deadline_there_is_a_limit),
        TEST(that_a_kubelet_waits_is_told),
        TEST(an_answered_relist_disarms),
        TEST(a_call_given_up_is_not_released),
        TEST(kubelets_are_apart),
        TEST(what_is_armed_outlives_the_daemon),
        TEST(a_dead_kubelet_is_forgotten),
        TEST(kubelets_that_crash_at_once_take_no_room),
        TEST(the_oldest_goes_when_too_many_live),
        TEST(nobody_goes_while_all_wait),
        TEST(there_is_a_most_of_held_calls),
        TEST(a_file_that_cannot_be_is_left_out),
        TEST(without_a_file),
        TEST(with_something_else_in_the_place_of_its_file),
        TEST(its_file_is_its_own),
        TEST(without_room_for_its_file),
        TEST(there_may_be_no_gate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
