#include "tests/unit/gate_fixture.h"

#include <unistd.h>

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

static void on_told(void *user, const char *word, const char *words)
{
    struct fixture *f = user;

    assert_true(words[0] != '\0');
    f->told = word;
}

static const struct gate_ops OPS = {
    .taken = on_taken, .release = on_release, .waits = on_waits, .told = on_told};

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

void start(struct fixture *f)
{
    f->gate = gate_start(&f->world->loop, &f->config, &OPS, f);
    assert_non_null(f->gate);
}

void stop(struct fixture *f)
{
    f->stopped = false;
    gate_stop(f->gate, on_stopped, f);
    assert_false(f->stopped);
    WAIT(f->world, f->stopped);
}

int setup(void **state)
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

int teardown(void **state)
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

void again(struct fixture *f)
{
    stop(f);
    start(f);
}

bool has_file(const struct fixture *f)
{
    return access(f->file, F_OK) == 0;
}

void assert_held(struct fixture *f)
{
    world_settle(f->world);
    assert_int_equal(f->released_len, 0);
}
