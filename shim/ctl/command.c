#include "shim/ctl/command.h"

#include <string.h>

#include "shim/ctl/status.h"
#include "shim/ctl/why.h"
#include "shim/rpc/rpc.h"

static const struct command COMMANDS[] = {
    {"status", "", "the processes, what is not as it should be, and settings that differ", 0, 0,
     status_run},
    {"why", "POD [CONTAINER]",
     "what a container waits for, what would end that, what it was refused", 1, 2, why_run},
};

const struct command *command_at(size_t n)
{
    return n < sizeof COMMANDS / sizeof *COMMANDS ? &COMMANDS[n] : NULL;
}

const struct command *command_find(const char *name)
{
    const struct command *command;

    for (size_t i = 0; (command = command_at(i)); i++) {
        if (strcmp(command->name, name) == 0)
            return command;
    }
    return NULL;
}

enum command_exit command_exit_of(const struct client_failure *failure)
{
    switch (failure->code) {
    case RPC_NOT_FOUND:
        return COMMAND_NOT_FOUND;
    case RPC_UNAVAILABLE:
    case RPC_DEADLINE_EXCEEDED:
        return COMMAND_UNREACHABLE;
    case RPC_PERMISSION_DENIED:
        return COMMAND_DENIED;
    default:
        return COMMAND_FAILED;
    }
}
