/*
 * cri-device-shimctl node: has this node's kubelet use the shim, or not. A script does it, which
 * lies where a package or config/install.sh has put it; this program becomes that.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/ctl/beside.h"
#include "shim/ctl/commands.h"
#include "shim/rpc/rpc.h"

#define SCRIPT "../lib/cri-device-shim/node.sh"

/* clang-format off */
#define NODE_DRY_RUN {"dry-run", 0, NULL, "show every change as a diff and every command; touch nothing"}
#define NODE_ROOT {"root", 0, "PATH", "the node's root directory: for images; nothing is started"}
/* clang-format on */

/* Its words, and the options that were given, as the script takes them: by their own names. */
static void collect(const struct command_run *run, char *verb, char **argv)
{
    static char names[COMMAND_OPTIONS_MAX][32];
    size_t len = 1;

    argv[len++] = verb;
    for (size_t i = 0; i < command_options_len(run->command); i++) {
        if (!run->options[i])
            continue;
        snprintf(names[i], sizeof names[i], "--%s", run->command->options[i].name);
        argv[len++] = names[i];
        if (run->command->options[i].value)
            argv[len++] = (char *)(uintptr_t)run->options[i];
    }
    argv[len] = NULL;
}

/* Returns only if it has failed. */
static bool become(const struct command_run *run, char *verb, struct client_failure *failure)
{
    char path[PATH_MAX], *argv[2 * COMMAND_OPTIONS_MAX + 3] = {path};

    if (run->show.format != SHOW_TABLE)
        return client_fail(failure, RPC_INVALID_ARGUMENT, "%s has no other output than its words",
                           run->command->name);
    if (!beside_find(path, SCRIPT, failure))
        return false;
    collect(run, verb, argv);
    signal(SIGPIPE, SIG_DFL); /* what is ignored stays so in a program that is executed */
    execv(path, argv);
    return client_fail(failure, RPC_UNKNOWN, "%.400s: %s", path, strerror(errno));
}

static bool run_enable(const struct command_run *run, struct client_failure *failure)
{
    return become(run, (char[]){"enable"}, failure);
}

static bool run_disable(const struct command_run *run, struct client_failure *failure)
{
    return become(run, (char[]){"disable"}, failure);
}

const struct command node_enable_command = {
    .name = "node enable",
    .arguments = "",
    .summary = "have this node's kubelet use its runtime through the shim",
    .options =
        {
            NODE_DRY_RUN,
            NODE_ROOT,
            {"runtime-endpoint", 0, "PATH", "the runtime's socket, in place of the kubelet's"},
            {"no-kubelet", 0, NULL, "leave the kubelet's settings alone"},
        },
    .changes = true,
    .run = run_enable,
};

const struct command node_disable_command = {
    .name = "node disable",
    .arguments = "",
    .summary = "have this node as it was before",
    .options =
        {
            NODE_DRY_RUN,
            NODE_ROOT,
            {"force", 0, NULL, "even if running pods lose their devices by it"},
        },
    .changes = true,
    .run = run_disable,
};
