/*
 * cri-device-shim: its arguments, and what they ask for.
 */
#include <argp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"
#include "devicemgr/kubelet_file/kubelet_checkpoint.h"
#include "shim/daemon.h"
#include "shim/import.h"
#include "shim/log.h"
#include "shim/settings.h"
#include "shim/tokens.h"
#include "shim/version.h"

struct arguments {
    const char *config; /* NULL: the default path, if it is there */
    const char *check;  /* only check this file */
    const char *import; /* only import this file */
    bool tokens;        /* only list them */
};

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

/* What is done beside the daemon, or before its first start. */
static int run_command(const struct arguments *args)
{
    struct config config;
    int status;

    if (settings_load_strict(args->config, &config) < 0)
        return EXIT_FAILURE;
    settings_apply_log(&config);
    status = args->import ? import_kubelet_checkpoint(args->import, config.state_dir)
                          : tokens_list(config.bridge.kubelet_plugin_dir);
    config_fini(&config);
    return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_daemon(const char *path)
{
    struct settings settings;
    int status;

    if (settings_load(path, &settings) < 0)
        return EXIT_FAILURE;
    settings_apply_log(&settings.config);
    status = daemon_run(&settings);
    settings_fini(&settings);
    return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct arguments args = {0};

    argp_parse(&ARGP, argc, argv, 0, NULL, &args);
    if (args.check)
        return check_config(args.check);
    signal(SIGPIPE, SIG_IGN);
    return args.import || args.tokens ? run_command(&args) : run_daemon(args.config);
}
