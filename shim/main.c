/*
 * cri-device-shim: wiring only. Settings in, rooms made and bound, signals out.
 */
#include <argp.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <uv.h>

#include "config/config.h"
#include "devicemgr/kubelet_checkpoint.h"
#include "shim/import.h"
#include "shim/kubelet/feed.h"
#include "shim/kubelet/gate.h"
#include "shim/log.h"
#include "shim/plugins/manager.h"
#include "shim/relay/calls.h"
#include "shim/relay/relay.h"
#include "shim/rpc/keeper.h"
#include "shim/service_manager.h"
#include "shim/settings.h"
#include "shim/signals.h"
#include "shim/tokens.h"
#include "shim/version.h"

/* What a stop takes besides "drain". */
#define STOP_EXTRA_MS 10000

struct arguments {
    const char *config; /* NULL: the default path, if it is there */
    const char *check;  /* only check this file */
    const char *import; /* only import this file */
    bool tokens;        /* only list them */
};

struct daemon {
    uv_loop_t loop;
    struct config config;
    struct calls *calls;
    struct manager *manager;
    struct feed *feed;     /* NULL: not yet, no more, or no bridge is wanted */
    struct gate *gate;     /* NULL: not yet, or no more */
    struct relay *relay;   /* the same */
    struct keeper *keeper; /* of the relay's socket */
    bool ready;            /* the relay has begun to listen */
    struct signals signals;
    bool stopping;
};

/* ---- arguments ---- */

static void print_version(FILE *out, struct argp_state *state)
{
    (void)state;
    fprintf(out, "cri-device-shim %s\n", version_text);
}

void (*argp_program_version_hook)(FILE *out, struct argp_state *state) = print_version;

static const struct argp_option OPTIONS[] = {
    {"config", 'c', "FILE", 0, "Settings; default: " CONFIG_PATH_DEFAULT ", or none", 0},
    {"check-config", 'C', "FILE", 0, "Check FILE, say what is wrong with it, and exit", 0},
    {"import-kubelet-checkpoint", 'I', "FILE", 0,
     "Add what the kubelet's " KUBELET_CHECKPOINT_FILE
     " holds to the state directory of the settings, and exit; the daemon must not run",
     0},
    {"list-tokens", 'T', NULL, 0,
     "List the containers whose devices the kubelet knows through the shim only, and exit", 0},
    {0},
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct arguments *args = state->input;

    switch (key) {
    case 'c':
        args->config = value;
        return 0;
    case 'C':
        args->check = value;
        return 0;
    case 'I':
        args->import = value;
        return 0;
    case 'T':
        args->tokens = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse_option,
    .doc = "Sits between the kubelet and the container runtime and gives containers their devices.",
};

static int check_config(const char *path)
{
    struct config config;
    struct config_error err;

    if (config_load(path, &config, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return EXIT_FAILURE;
    }
    config_fini(&config);
    printf("%s: OK\n", path);
    return EXIT_SUCCESS;
}

/* ---- stopping ---- */

static void on_manager_stopped(void *user)
{
    struct daemon *d = user;

    signals_close(&d->signals);
}

static void stop_manager(void *user)
{
    struct daemon *d = user;

    manager_stop(d->manager, on_manager_stopped, d);
}

static void stop_feed(void *user)
{
    struct daemon *d = user;
    struct feed *feed = d->feed;

    d->feed = NULL;
    if (feed)
        feed_stop(feed, stop_manager, d);
    else
        stop_manager(d);
}

static void stop_gate(struct daemon *d)
{
    struct gate *gate = d->gate;

    d->gate = NULL;
    if (gate)
        gate_stop(gate, stop_feed, d);
    else
        stop_feed(d);
}

static void on_relay_stopped(void *user)
{
    struct daemon *d = user;

    d->relay = NULL;
    stop_gate(d);
}

/* systemd is to wait as long as "drain" says, whatever its own limit. */
static void tell_stopping(const struct daemon *d)
{
    char state[64];

    snprintf(state, sizeof state, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
             (d->config.drain_ms + STOP_EXTRA_MS) * 1000);
    service_manager_notify(state);
}

static void on_asked_to_stop(void *user, int number)
{
    struct daemon *d = user;

    if (!d->stopping) {
        d->stopping = true;
        log_info("stopping: %s", strsignal(number));
        tell_stopping(d);
        keeper_stop(d->keeper);
        if (d->relay)
            relay_stop(d->relay, d->config.drain_ms, on_relay_stopped, d);
        else
            stop_gate(d);
    } else if (d->relay) {
        relay_stop_now(d->relay); /* asked twice: at once */
    }
}

/* ---- starting ---- */

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    struct daemon *d = user;

    calls_verdict(d->calls, create, verdict);
}

static void on_preferred(void *user, uint64_t number, const char *const *ids, size_t ids_len)
{
    struct daemon *d = user;

    if (d->feed)
        feed_preferred(d->feed, number, ids, ids_len);
}

static void on_kicked(void *user)
{
    struct daemon *d = user;

    if (d->feed)
        feed_look(d->feed);
}

static void on_feed_changed(void *user)
{
    struct daemon *d = user;

    if (d->gate)
        gate_changed(d->gate);
}

static const struct feed_ops FEED_OPS = {.changed = on_feed_changed};

static void on_gate_asks(void *user, pid_t kubelet, struct taken *out)
{
    struct daemon *d = user;

    if (d->feed)
        feed_taken(d->feed, kubelet, out);
    else
        *out = (struct taken){.words = "nothing serves the bridge"};
}

static void on_gate_release(void *user, uint64_t hold)
{
    struct daemon *d = user;

    calls_gate_released(d->calls, hold);
}

/* What is shown to a kubelet that has just started is shown until it has admitted its pods. */
static void on_gate_waits(void *user)
{
    struct daemon *d = user;

    devicemgr_kubelet_started(manager_core(d->manager), manager_now_ms());
    manager_kick(d->manager);
}

static const struct gate_ops GATE_OPS = {
    .taken = on_gate_asks, .release = on_gate_release, .waits = on_gate_waits};

/* Who is a kubelet, and the gate until it has what it is shown. */
static void start_gate(struct daemon *d)
{
    d->gate = gate_start(&d->loop, &d->config, &GATE_OPS, d);
    calls_bind_gate(d->calls, d->gate);
}

/* What stands in for the plugins at the kubelet. */
static void start_feed(struct daemon *d)
{
    if (!d->config.bridge.enabled)
        return;
    d->feed = feed_start(&d->loop, &d->config, d->manager, &FEED_OPS, d);
}

static int serve_relay(void *user)
{
    struct daemon *d = user;
    int result = relay_listen(d->relay);

    if (result >= 0 && !d->ready) {
        d->ready = true;
        log_info("cri-device-shim %s: %s -> %s, plugins register in %s", version_text,
                 d->config.listen, d->config.runtime_endpoint, d->config.plugin_dir);
        service_manager_notify("READY=1");
    }
    return result;
}

static void start_relay(struct daemon *d)
{
    char what[PATH_MAX + 64];

    start_gate(d);
    d->relay = relay_start(&d->loop, d->config.listen, service_manager_socket(),
                           d->config.runtime_endpoint, d->calls);
    snprintf(what, sizeof what, "listen = \"%s\"", d->config.listen);
    d->keeper = keeper_start(&d->loop, what, serve_relay, d);
}

/* The relay goes first if the checkpoint cannot be read, and at once behind it if it can: no create
 * is to be refused for the few milliseconds that takes. */
static void on_delayed(void *user)
{
    struct daemon *d = user;

    if (!d->stopping)
        start_relay(d);
}

static void on_ready(void *user)
{
    struct daemon *d = user;

    if (d->stopping)
        return;
    start_feed(d);
    if (!d->relay)
        start_relay(d);
}

static const struct manager_ops MANAGER_OPS = {.verdict = on_verdict,
                                               .preferred = on_preferred,
                                               .ready = on_ready,
                                               .delayed = on_delayed,
                                               .kicked = on_kicked};

/* Runs until it is told to stop. */
static int run(struct daemon *d)
{
    d->calls = calls_new();
    if (!d->calls) {
        log_error("out of memory");
        return EXIT_FAILURE;
    }
    signals_start(&d->signals, &d->loop, on_asked_to_stop, d);
    d->manager = manager_start(&d->loop, &d->config, &MANAGER_OPS, d);
    calls_bind(d->calls, d->manager);
    if (d->config.bridge.redirect_plugin_mounts)
        calls_set_redirect(d->calls, d->config.bridge.kubelet_plugin_dir, d->config.plugin_dir);
    uv_run(&d->loop, UV_RUN_DEFAULT);
    calls_free(d->calls);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct arguments args = {0};
    static struct daemon d;
    int status;

    argp_parse(&ARGP, argc, argv, 0, NULL, &args);
    if (args.check)
        return check_config(args.check);
    if (settings_load(args.config, &d.config) < 0)
        return EXIT_FAILURE;
    log_set_level((enum log_level)d.config.log_level);
    if (args.import || args.tokens) {
        status = args.import ? import_kubelet_checkpoint(args.import, d.config.state_dir)
                             : tokens_list(d.config.bridge.kubelet_plugin_dir);
        config_fini(&d.config);
        return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    signal(SIGPIPE, SIG_IGN);
    umask(022); /* the modes of what is made are its maker's matter */
    uv_loop_init(&d.loop);
    status = run(&d);
    uv_loop_close(&d.loop);
    config_fini(&d.config);
    return status;
}
