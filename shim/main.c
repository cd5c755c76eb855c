/*
 * cri-device-shim: its arguments, and what they ask for.
 */
#include <argp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/compare.h"
#include "config/config.h"
#include "devicemgr/kubelet_file/kubelet_checkpoint.h"
#include "shim/daemon.h"
#include "shim/kubelet_import.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/offline/offline.h"
#include "shim/settings.h"
#include "shim/standard_fds.h"
#include "shim/token_list.h"
#include "shim/version.h"

/* What is asked for in place of the daemon, and then ends. */
enum work {
    WORK_NONE,
    WORK_CHECK_CONFIG,
    WORK_IMPORT_KUBELET,
    WORK_TOKENS,
    WORK_SETTING,
    WORK_SHUTDOWN_TIME,
    WORK_VERIFY,
    WORK_EXPORT,
    WORK_IMPORT,
};

/* Keys of options without a letter. */
enum {
    KEY_SETTING = 256,
    KEY_SHUTDOWN_TIME,
    KEY_VERIFY,
    KEY_EXPORT,
    KEY_IMPORT,
    KEY_DRY_RUN,
};

struct arguments {
    const char *config; /* NULL: the default path, if it is there */
    enum work work;
    const char *what; /* a file, or a setting's name; NULL: neither */
    bool dry_run;
    enum offline_output output;
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
     "List the containers whose devices the kubelet knows through the shim only, and the pods with "
     "claims of plugins.cri-device-shim, and exit",
     0},
    {"setting", KEY_SETTING, "NAME", 0,
     "Say what a setting is, such as \"bridge.enabled\", also where it has its default, and exit",
     0},
    {"shutdown-time", KEY_SHUTDOWN_TIME, NULL, 0,
     "Say how many microseconds [shutdown] of the settings may take, and exit", 0},
    {"verify-checkpoint", KEY_VERIFY, "FILE", 0,
     "Say whether FILE, a checkpoint that no daemon has open, or one as \"checkpoint export\" "
     "wrote it, is sound, and exit",
     1},
    {"export-checkpoint", KEY_EXPORT, "FILE", 0, "Write what such a FILE has as JSON, and exit", 1},
    {"import-checkpoint", KEY_IMPORT, "FILE", 0,
     "Make what such a FILE has the checkpoint in the state directory of the settings, all of "
     "it or nothing, and exit; the daemon must not run",
     1},
    {"dry-run", KEY_DRY_RUN, NULL, 0, "Of an import: only say what would be done", 1},
    {"output", 'o', "FORMAT", 0, "Of these: text, json or name", 1},
    {0},
};

/* One thing at a time. */
static error_t take_work(struct argp_state *state, enum work work, const char *what)
{
    struct arguments *args = state->input;

    if (args->work != WORK_NONE)
        argp_error(state, "only one thing can be asked for");
    args->work = work;
    args->what = what;
    return 0;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct arguments *args = state->input;

    switch (key) {
    case 'c':
        args->config = value;
        return 0;
    case 'C':
        return take_work(state, WORK_CHECK_CONFIG, value);
    case 'I':
        return take_work(state, WORK_IMPORT_KUBELET, value);
    case 'T':
        return take_work(state, WORK_TOKENS, NULL);
    case KEY_SETTING:
        return take_work(state, WORK_SETTING, value);
    case KEY_SHUTDOWN_TIME:
        return take_work(state, WORK_SHUTDOWN_TIME, NULL);
    case KEY_VERIFY:
        return take_work(state, WORK_VERIFY, value);
    case KEY_EXPORT:
        return take_work(state, WORK_EXPORT, value);
    case KEY_IMPORT:
        return take_work(state, WORK_IMPORT, value);
    case KEY_DRY_RUN:
        args->dry_run = true;
        return 0;
    case 'o':
        if (!offline_output_parse(value, &args->output))
            argp_error(state, "unknown format \"%s\"", value);
        return 0;
    case ARGP_KEY_END:
        if (args->dry_run && args->work != WORK_IMPORT)
            argp_error(state, "--dry-run goes with --import-checkpoint");
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

/* For who is to go by the same settings (config/node/config.sh). */
static int tell_setting(const char *name, const struct config *config)
{
    char *value = must(malloc(CONFIG_FILE_BYTES_MAX));
    bool known = config_value(config, name, value);

    if (known)
        printf("%s\n", value);
    else
        log_error("there is no setting \"%s\"", name);
    free(value);
    return known ? 0 : -1;
}

/* For who has logind wait as long (config/node/logind.sh). */
static int tell_shutdown_time(const struct config_shutdown *shutdown)
{
    printf("%llu\n", (unsigned long long)config_shutdown_ms(shutdown) * 1000);
    return 0;
}

static int do_work(const struct arguments *args, const struct config *config)
{
    switch (args->work) {
    case WORK_IMPORT_KUBELET:
        return import_kubelet_checkpoint(args->what, config->state_dir);
    case WORK_SETTING:
        return tell_setting(args->what, config);
    case WORK_SHUTDOWN_TIME:
        return tell_shutdown_time(&config->shutdown);
    case WORK_VERIFY:
        return offline_verify(args->what, config, args->output);
    case WORK_EXPORT:
        return offline_export(args->what, config);
    case WORK_IMPORT:
        return offline_import(args->what, config, args->dry_run, args->output);
    default:
        return token_list_print(config->bridge.kubelet_plugin_dir,
                                config->dra.kubelet_registry_dir);
    }
}

/* What is done beside the daemon, or before its first start. */
static int run_work(const struct arguments *args)
{
    struct config config;
    int status;

    if (settings_load_strict(args->config, &config) < 0)
        return EXIT_FAILURE;
    settings_apply_log(&config);
    status = do_work(args, &config);
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

    standard_fds_open();
    if (argp_parse(&ARGP, argc, argv, 0, NULL, &args) != 0)
        must(NULL); /* as in config_argument.c */
    if (args.work == WORK_CHECK_CONFIG)
        return check_config(args.what);
    signal(SIGPIPE, SIG_IGN);
    return args.work != WORK_NONE ? run_work(&args) : run_daemon(args.config);
}
